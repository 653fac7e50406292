// SPDX-License-Identifier: Apache-2.0
#include "server/process_slots.h"

#include <new>
#include <utility>

#include "base/kill_point.h"
#include "platform/futex.h"
#include "platform/random_bytes.h"
#include "server/process_liveness.h"

namespace understudy {

namespace {

// A process that has no slot yet takes the ledger's lock under a number of its own with this bit.
constexpr LedgerMutexWord::Holder kJoiner = 1U << 30;

}  // namespace

ProcessSlots::ProcessSlots(LedgerFile& file)
    : file_(file),
      mutex_(file.header().mutex, *this),
      self_(platform::own_identity()),
      joiner_(kJoiner | static_cast<LedgerMutexWord::Holder>(platform::random_number() % kJoiner)) {
}

bool ProcessSlots::has_live_process() const {
  if (file_.is_locked(kSlotBytes, kProcessSlots)) return true;
  if (!file_.is_valid()) return false;
  for (unsigned slot = 0; slot < count(); ++slot) {
    if (!has_ended(slot) && !is_of_former_program(slot)) return true;
  }
  return false;
}

Result<void> ProcessSlots::take(Deadline deadline) {
  const LedgerLock lock(mutex_, deadline);
  US_TRY(lock.taken());
  reclaim();
  for (unsigned slot = 0; slot < count(); ++slot) {
    if (file_.slot(slot).taken.load() != 0 && is_of_former_program(slot)) clear(slot);
  }
  for (unsigned slot = 0; slot < kProcessSlots; ++slot) {
    if (slot < count() && file_.slot(slot).taken.load() != 0) continue;
    US_TRY(file_.back_slot(slot));
    US_TRY_ASSIGN(std::optional<platform::LifeLock> life, file_.take_for_life(kSlotBytes + slot));
    // A child of the last process may have inherited its lock, at an unlucky moment.
    if (!life) continue;
    enter(slot, std::move(*life));
    attach();
    return {};
  }
  return Error::format(ErrorCode::kOutOfResources, "process limit of the server (%u) reached",
                       kProcessSlots);
}

void ProcessSlots::leave() {
  if (own_tag_.is_none()) return;
  attachment_.reset();
  const LedgerLock lock(mutex_, kOneAttempt);
  if (lock.taken().ok()) clear(own_);
}

void ProcessSlots::enter(unsigned slot, platform::LifeLock life) {
  ProcessSlot& mine = file_.slot(slot);
  life_ = std::move(life);
  mine.process = self_.id;
  mine.birth = self_.birth;
  mine.pid_namespace = self_.pid_namespace;
  US_KILL_POINT("slot.identity");
  // From anywhere: one that others took for dead may still look at a slot of an earlier server.
  const uint64_t before = mine.generation.load();
  mine.generation.store(before != 0 ? before + 1 : 1 + (platform::random_number() >> 24));
  mine.backing_files.store(0);
  mine.listens.store(0);
  own_figures_ = new (&file_.figures(slot)) ProcessFigures{};
  own_words_ = &mine;
  own_uses_ = &file_.use(slot, 0);
  own_ = slot;
  own_tag_ = tag_of(slot);
  US_KILL_POINT("slot.generation");
  file_.header().uncounted.add(slot);
  mine.taken.store(1);
  US_KILL_POINT("slot.taken");
  if (slot >= count()) file_.header().slots.store(slot + 1);
  US_KILL_POINT("slot.counted");
}

void ProcessSlots::attach() {
  if (file_.directory() == nullptr) return;  // no other process looks
  LedgerHeader& header = file_.header();
  const bool is_first = header.counted.empty();
  // First counted: one that is killed before it has attached is missed.
  header.counted.add(own_);
  US_KILL_POINT("slot.attaching");
  if (is_first) {
    attachment_ = platform::Attachment::make(header.server);
    if (attachment_) header.segment = attachment_->segment();
  } else {
    attachment_ = platform::Attachment::join(header.segment, header.server);
  }
  US_KILL_POINT("slot.attached");
  (attachment_ ? header.uncounted : header.counted).remove(own_);
  // Of a child that was forked at an unlucky moment: it could stand for a process that has ended.
  if (attachment_ && attachment_->count() > header.counted.count()) header.counts_too_many.store(1);
}

platform::ProcessIdentity ProcessSlots::slot_identity(unsigned slot) const {
  const ProcessSlot& found = file_.slot(slot);
  return {found.process, found.birth, found.pid_namespace};
}

bool ProcessSlots::has_ended(unsigned slot) const {
  if (slot == own_) return false;
  if (file_.slot(slot).taken.load() == 0) return true;
  return has_process_ended(slot_identity(slot), [&] { return is_locked(slot); });
}

bool ProcessSlots::is_of_former_program(unsigned slot) const {
  return slot != own_ && self_.birth != 0 && slot_identity(slot) == self_ && !is_locked(slot);
}

bool ProcessSlots::is_slot_alive(unsigned slot) const {
  if (slot == own_) return true;
  if (file_.slot(slot).taken.load() == 0) return false;
  return is_locked(slot) || !has_ended(slot);
}

bool ProcessSlots::is_alive(ProcessTag process) const {
  return !process.is_none() && process.slot() < count() && tag_of(process.slot()) == process &&
         is_slot_alive(process.slot());
}

bool ProcessSlots::is_alive(ShortProcessTag process) const {
  return process.slot() < count() && ShortProcessTag(tag_of(process.slot())) == process &&
         !has_ended(process.slot());
}

bool ProcessSlots::has_slot(ProcessTag process) const {
  return process.slot() < count() && tag_of(process.slot()) == process &&
         file_.slot(process.slot()).taken.load() != 0;
}

bool ProcessSlots::is_alive(LedgerMutexWord::Holder holder) const {
  // Processes join one at a time.
  if ((holder & kJoiner) != 0) return file_.is_locked(kJoinByte);
  return is_alive(ShortProcessTag(holder - 1));
}

Result<LedgerMutexWord::Holder> ProcessSlots::holder() const {
  if (own_tag_.is_none()) return joiner_;
  if (has_own_slot()) return ShortProcessTag(own_tag_).word() + 1;
  return Error::format(ErrorCode::kConnection,
                       "other processes of the server took this one for dead and gave its slot "
                       "away");
}

void ProcessSlots::repair() {
  for (unsigned slot = 0; slot < count(); ++slot) {
    file_.slot(slot).holds = 0;
    file_.slot(slot).returned.store(0);
  }
  for (LedgerTable* const table : tables_) {
    US_KILL_POINT("repair.table");
    table->repair();
  }
  US_KILL_POINT("repair.done");
  std::atomic<uint64_t>& changes = file_.header().changes;
  if (changes.load() % 2 != 0) changes.fetch_add(1);
}

void ProcessSlots::reclaim() {
  const unsigned known = count();
  for (unsigned slot = 0; slot < known; ++slot) {
    if (file_.slot(slot).taken.load() != 0 && has_ended(slot)) clear(slot);
  }
}

bool ProcessSlots::may_have_ended() const {
  const LedgerHeader& header = file_.header();
  bool ended = false;
  header.uncounted.for_each([&](unsigned slot) {
    ended = ended || (file_.slot(slot).taken.load() != 0 && !is_slot_alive(slot));
  });
  if (ended) return true;
  const unsigned counted = header.counted.count();
  if (!attachment_ || header.counts_too_many.load() != 0) return counted != 0;
  if (counted <= 1) return false;  // that is this one
  // A process that was counted and attached in between could stand for one that has ended.
  return attachment_->count() != counted || header.counted.count() != counted;
}

void ProcessSlots::reclaim_if_any(Deadline deadline) {
  if (!may_have_ended()) return;
  LedgerHeader& header = file_.header();
  const auto is_detached = [&](unsigned slot) {
    return slot != own_ && file_.slot(slot).taken.load() != 0 && !is_locked(slot);
  };
  for (unsigned slot = 0; slot < count(); ++slot) {
    if (!is_detached(slot) || (!header.counted.has(slot) && !has_ended(slot))) continue;
    const LedgerLock lock(mutex_, deadline);
    if (!lock.taken().ok()) return;
    reclaim();
    // Those that live have executed another program.
    header.counted.for_each([&](unsigned counted) {
      if (!is_detached(counted)) return;
      header.uncounted.add(counted);
      header.counted.remove(counted);
    });
    return;
  }
}

void ProcessSlots::clear(unsigned slot) {
  ProcessSlot& dead = file_.slot(slot);
  {
    const LedgerChange change(file_);
    for (LedgerTable* const table : tables_) {
      US_KILL_POINT("clear.table");
      table->drop_holds(slot);
    }
    US_KILL_POINT("clear.dropped");
    dead.holds = 0;
    dead.exports = 0;
    dead.returned.store(0);
    if (file_.directory() != nullptr) file_.directory()->remove_socket(socket_name(slot).c_str());
    file_.header().counted.remove(slot);
    file_.header().uncounted.remove(slot);
    US_KILL_POINT("clear.counts");
    dead.taken.store(0);
    US_KILL_POINT("clear.free");
  }
  // Sums go over no more slots than they must.
  unsigned known = count();
  while (known > 0 && file_.slot(known - 1).taken.load() == 0) --known;
  file_.header().slots.store(known);
}

void ProcessSlots::ring(const SlotSet& processes) const {
  processes.for_each([&](unsigned slot) {
    ProcessSlot& rung = file_.slot(slot);
    // In this order, and a process that begins to listen does it in the other one: either this
    // thread sees that it listens, or it sees the ring. One that dies in between has rung no one.
    rung.rings.fetch_add(1);
    US_KILL_POINT("slot.rung");
    if (slot != own_ && rung.listens.load() != 0) platform::wake_all_processes(rung.rings);
  });
}

void ProcessSlots::sleep_until_rung(uint32_t seen) const {
  platform::sleep_on_shared(own().rings, seen, kNever);
}

void ProcessSlots::ring_self() const {
  own().rings.fetch_add(1);
  platform::wake_all_processes(own().rings);
}

void ProcessSlots::publish_backing_file(unsigned number, const BackingFileRecord& record) {
  if (number >= ProcessSlot::kBackingFiles) return;
  own().backing[number] = record;
  own().backing_files.store(number + 1);
}

std::optional<BackingFileRecord> ProcessSlots::backing_file(ProcessTag process,
                                                            unsigned number) const {
  const ProcessSlot& slot = file_.slot(process.slot());
  if (number >= slot.backing_files.load() || number >= ProcessSlot::kBackingFiles) return {};
  const BackingFileRecord record = slot.backing[number];
  // The slot may have become another process's while it was read.
  if (tag_of(process.slot()) != process) return {};
  return record;
}

}  // namespace understudy
