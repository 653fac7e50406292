// SPDX-License-Identifier: Apache-2.0
#include "device/ledger.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "device/share_table.h"
#include "device/shared_events.h"
#include "platform/byte_lock.h"
#include "platform/fork_sentinel.h"
#include "platform/process_identity.h"
#include "platform/random_bytes.h"

namespace understudy {

namespace {

// Locks of bytes far behind the end of the file: one for whoever joins, one per slot.
constexpr uint64_t kJoinByte = uint64_t{1} << 40;
constexpr uint64_t kSlotBytes = kJoinByte + 1;

// A process that has no slot yet has the ledger's lock under a number of its own with this bit.
constexpr LedgerMutex::Holder kJoiner = 1U << 30;

constexpr std::chrono::seconds kPatience(5);

uint64_t check_of(const LedgerHeader& header) {
  // FNV-1a: a torn or foreign header has another one.
  uint64_t hash = 0xcbf29ce484222325;
  const auto* bytes = reinterpret_cast<const unsigned char*>(&header);
  for (size_t i = 0; i < offsetof(LedgerHeader, check); ++i) {
    hash = (hash ^ bytes[i]) * 0x100000001b3;
  }
  return hash;
}

std::string text_of(const ServerShape& shape) {
  return "product " + std::string(shape.product.data()) + ", " + std::to_string(shape.devices) +
         " devices of " + SizeText(shape.memory).c_str() + ", " +
         SizeText(shape.normal_memory).c_str() + " of it in normal pages";
}

}  // namespace

LedgerLock::~LedgerLock() {
  if (ledger_ != nullptr) ledger_->header().mutex.unlock();
}

Result<std::unique_ptr<Ledger>> Ledger::join(platform::PrivateDirectory directory,
                                             const ServerShape& shape) {
  std::unique_ptr<Ledger> ledger(new Ledger());
  ledger->directory_.emplace(std::move(directory));
  US_TRY(ledger->open(shape));
  return ledger;
}

Result<std::unique_ptr<Ledger>> Ledger::make_private(const ServerShape& shape) {
  std::unique_ptr<Ledger> ledger(new Ledger());
  US_TRY_ASSIGN(ledger->mapping_, platform::SharedMapping::without_file(kLedgerBytes));
  ledger->fill_header(shape);
  US_TRY_ASSIGN(const LedgerLock lock, ledger->lock());
  US_TRY(ledger->take_slot(lock));
  return ledger;
}

Ledger::~Ledger() {
  if (file_.valid()) platform::forget_for_fork_child(file_.get());
}

Ledger::Ledger()
    : joiner_(kJoiner | static_cast<LedgerMutex::Holder>(platform::random_number() % kJoiner)) {}

Result<void> Ledger::open(const ServerShape& shape) {
  const std::string path = directory_->path() + "/ledger";
  US_TRY_ASSIGN(file_, directory_->open_file("ledger"));
  identity_ = platform::identity_of_file(file_.get());
  if (!platform::lock_byte(file_.get(), kJoinByte, Clock::now() + kPatience)) {
    return Error::format(ErrorCode::kConnection,
                         "another process has been joining the server at %s for %d seconds",
                         path.c_str(), static_cast<int>(kPatience.count()));
  }
  ScopeExit leave([&] { platform::unlock_byte(file_.get(), kJoinByte); });
  US_TRY_ASSIGN(mapping_, platform::SharedMapping::of_file(file_.get(), kLedgerBytes));
  if (!has_live_process()) {
    // Whatever is left of earlier processes is no one's.
    US_TRY(begin_server(shape));
  } else if (!is_valid()) {
    return Error::format(ErrorCode::kNoPermission,
                         "%s is not of version %u and in use by live processes", path.c_str(),
                         kLedgerVersion);
  } else if (header().shape != shape) {
    return Error::format(ErrorCode::kInvalidArgument,
                         "the live server at %s has %s; this process is configured for %s",
                         directory_->path().c_str(), text_of(header().shape).c_str(),
                         text_of(shape).c_str());
  }
  US_TRY_ASSIGN(const LedgerLock lock, this->lock());
  return take_slot(lock);
}

bool Ledger::has_live_process() const {
  return file_.valid() && platform::is_locked_by_other(file_.get(), kSlotBytes, kProcessSlots);
}

bool Ledger::is_valid() const {
  if (platform::file_size(file_.get()) < sizeof(LedgerHeader)) return false;
  const LedgerHeader& header = this->header();
  return header.magic == kLedgerMagic && header.version == kLedgerVersion &&
         header.header_bytes == sizeof(LedgerHeader) && header.check == check_of(header);
}

Result<void> Ledger::begin_server(const ServerShape& shape) {
  directory_->remove_all("process-");
  US_TRY(platform::clear_file(file_.get()));
  US_TRY(platform::back_file(file_.get(), 0, kSlotsOffset));
  fill_header(shape);
  return {};
}

void Ledger::fill_header(const ServerShape& shape) {
  auto* const header = new (mapping_.data()) LedgerHeader{};
  header->version = kLedgerVersion;
  header->header_bytes = sizeof(LedgerHeader);
  header->shape = shape;
  header->server = {platform::random_number(), platform::random_number()};
  header->magic = kLedgerMagic;
  header->check = check_of(*header);
}

Result<void> Ledger::take_slot(const LedgerLock& lock) {
  reclaim(lock);
  const uint32_t known = header().slots.load();
  for (unsigned number = 0; number < kProcessSlots; ++number) {
    if (number < known && slot(number).taken.load() != 0) continue;
    if (file_.valid()) {
      US_TRY(platform::back_file(file_.get(), kSlotsOffset + number * sizeof(ProcessSlot),
                                 sizeof(ProcessSlot)));
      if (!platform::try_lock_byte(file_.get(), kSlotBytes + number)) continue;
    }
    ProcessSlot& mine = slot(number);
    const platform::ProcessIdentity identity = platform::own_identity();
    mine.process = identity.id;
    mine.birth = identity.birth;
    // From anywhere: one that others took for dead may still look at a slot of an earlier server.
    const uint64_t before = mine.generation.load();
    mine.generation.store(before != 0 ? before + 1 : 1 + (platform::random_number() >> 24));
    mine.stores.store(0);
    own_ = number;
    own_tag_ = tag_of(number);
    mine.taken.store(1);
    if (number >= known) header().slots.store(number + 1);
    return {};
  }
  return Error::format(ErrorCode::kOutOfResources, "%u processes use the server, the most it takes",
                       kProcessSlots);
}

bool Ledger::is_slot_alive(unsigned number) const {
  if (number == own_) return true;
  if (!file_.valid() || slot(number).taken.load() == 0) return false;
  if (platform::is_locked_by_other(file_.get(), kSlotBytes + number)) return true;
  // A program may have closed the descriptor, and opened something else that has its number now.
  return platform::identity_of_file(file_.get()) != identity_;
}

bool Ledger::is_alive(ProcessTag process) const {
  return !process.is_nobody() && process.slot() < header().slots.load() &&
         tag_of(process.slot()) == process && is_slot_alive(process.slot());
}

bool Ledger::is_alive(ShortProcessTag process) const {
  return process.slot() < header().slots.load() &&
         ShortProcessTag(tag_of(process.slot())).word() == process.word() &&
         is_slot_alive(process.slot());
}

bool Ledger::has_own_slot() const { return own().taken.load() != 0 && tag_of(own_) == own_tag_; }

Result<LedgerLock> Ledger::lock() {
  if (!own_tag_.is_nobody() && !has_own_slot()) {
    return Error::format(
        ErrorCode::kConnection,
        "this process has closed the descriptor of the server's ledger, and others "
        "take it for dead");
  }
  // A process without a slot has not joined yet, and they join one at a time.
  const LedgerMutex::Holder self =
      own_tag_.is_nobody() ? joiner_ : ShortProcessTag(own_tag_).word() + 1;
  switch (header().mutex.lock(self, *this, Clock::now() + kPatience)) {
    case LedgerLocking::kTaken:
      break;
    case LedgerLocking::kTakenFromTheDead:
      repair();
      break;
    case LedgerLocking::kTimedOut:
      return Error::format(ErrorCode::kConnection,
                           "another process, which may be stopped, has kept the server's ledger "
                           "locked for %d seconds",
                           static_cast<int>(kPatience.count()));
  }
  return LedgerLock(*this);
}

bool Ledger::is_alive(LedgerMutex::Holder holder) const {
  if ((holder & kJoiner) != 0) {
    return file_.valid() && platform::is_locked_by_other(file_.get(), kJoinByte);
  }
  return is_alive(ShortProcessTag(holder - 1));
}

void Ledger::repair() {
  for (PoolWords& device : header().held_back) {
    for (auto& word : device.words) word.store(0);
  }
  repair_shares(*this);
  repair_events(*this);
  if (header().changes.load() % 2 != 0) header().changes.fetch_add(1);
}

void Ledger::reclaim(const LedgerLock&) {
  const uint32_t known = header().slots.load();
  for (unsigned number = 0; number < known; ++number) {
    if (slot(number).taken.load() != 0 && !is_slot_alive(number)) clear_slot(number);
  }
}

void Ledger::reclaim_if_any() {
  const uint32_t known = header().slots.load();
  for (unsigned number = 0; number < known; ++number) {
    if (slot(number).taken.load() == 0 || is_slot_alive(number)) continue;
    if (const Result<LedgerLock> locked = lock(); locked.ok()) reclaim(locked.value());
    return;
  }
}

void Ledger::clear_slot(unsigned number) {
  ProcessSlot& dead = slot(number);
  header().changes.fetch_add(1);
  if (dead.holds > 0 || dead.exports > 0) {
    drop_share_holds(*this, number);
    drop_event_holds(*this, number);
  }
  dead.holds = 0;
  dead.exports = 0;
  dead.returned.store(0);
  for (PoolWords& device : dead.devices) {
    for (auto& word : device.words) word.store(0);
  }
  if (directory_) directory_->remove(socket_name(number).c_str());
  dead.taken.store(0);
  header().changes.fetch_add(1);
  // Whoever sums up looks at no more slots than there must be.
  uint32_t known = header().slots.load();
  while (known > 0 && slot(known - 1).taken.load() == 0) --known;
  header().slots.store(known);
}

Result<void> Ledger::back_table(TableHead& head, uint64_t offset, uint64_t entry_bytes,
                                uint32_t most) {
  constexpr uint32_t kStep = 512;
  const uint32_t backed = head.backed.load();
  if (head.high.load() < backed) return {};
  if (backed == most) {
    return Error::format(ErrorCode::kOutOfResources,
                         "the processes of the server share %u things, the most there can be",
                         most);
  }
  if (file_.valid()) {
    US_TRY(platform::back_file(file_.get(), offset + backed * entry_bytes, kStep * entry_bytes));
  }
  head.backed.store(backed + kStep);
  return {};
}

}  // namespace understudy
