// SPDX-License-Identifier: Apache-2.0
//
// The processes of a server. Each has a slot of the ledger, which is its own until it ends: the
// slot says which process that is, and the kernel whether it still exists. Where the kernel cannot
// be asked, because the process is of another pid namespace, the lock of a byte of the file tells:
// the kernel drops it when the process ends. A process that finds the slot of an ended one clears
// it. Any thread may call anything.
//
// To ask for each process takes long where there are hundreds. So those that can attach a segment
// in common (platform/attachment.h), and one question tells whether all of them still do. A process
// is in `counted` of the ledger before it attaches and until after it has detached: while as many
// are attached as are counted, none of them has ended. Those that cannot attach, because their IPC
// namespace is another one or the host does without, are in `uncounted` and asked for one by one.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/result.h"
#include "platform/attachment.h"
#include "platform/byte_lock.h"
#include "platform/process_identity.h"
#include "server/ledger_file.h"
#include "server/ledger_mutex.h"
#include "server/ledger_table.h"
#include "server/process_tag.h"

namespace understudy {

class ProcessSlots final : private LedgerMutex::Owner {
 public:
  explicit ProcessSlots(LedgerFile& file);
  ProcessSlots(const ProcessSlots&) = delete;
  ProcessSlots& operator=(const ProcessSlots&) = delete;

  // Before the first lock.
  void add_table(LedgerTable& table) { tables_.push_back(&table); }
  // The lock of the ledger.
  LedgerMutex& mutex() { return mutex_; }

  // Whether a process of the server lives, other than this one.
  bool has_live_process() const;
  // Gives this process a slot.
  Result<void> take(Deadline deadline);
  // Gives it back with all it has, before the end of the process. Does not wait: if it cannot, the
  // slot is cleared after the end, or when this process joins again.
  void leave();

  unsigned own_slot() const { return own_; }
  ProcessTag own_tag() const { return own_tag_; }
  // What the slot holds, and what goes with it. REQUIRES: the process has one.
  ProcessSlot& own() const { return *own_words_; }
  // Those of one device lie behind those that the group has of the device before.
  DeviceUse& own_use(unsigned device) const { return own_uses_[size_t{device} * UseGroup::kSlots]; }
  ProcessFigures& own_figures() const { return *own_figures_; }
  // False if others took this process for dead, which needs a damaged ledger.
  bool has_own_slot() const {
    const ProcessSlot& mine = own();
    return mine.taken.load() != 0 && mine.generation.load() == own_tag_.generation();
  }
  // One past the highest slot that was ever taken.
  unsigned count() const { return file_.header().slots.load(); }
  ProcessTag tag_of(unsigned slot) const { return {slot, file_.slot(slot).generation.load()}; }

  // A lock that is held is proof enough for these two; reclaim() asks the kernel in any case.
  bool is_slot_alive(unsigned slot) const;
  bool is_alive(ProcessTag process) const;
  // Asks the kernel.
  bool is_alive(ShortProcessTag process) const;
  // Whether it has its slot still. An ended process has until its slot is cleared.
  bool has_slot(ProcessTag process) const;
  // What the slot of a process says of it, also after its end until the next process has the slot.
  platform::ProcessIdentity identity_of(ProcessTag process) const {
    return slot_identity(process.slot());
  }
  int32_t process_id(ProcessTag process) const { return file_.slot(process.slot()).process; }
  // The file in the server's directory at which a process listens.
  static std::string socket_name(unsigned slot) { return "process-" + std::to_string(slot); }

  // Clears the slots of processes that have ended.
  void reclaim() US_REQUIRES(ledger_held);
  // The same if one may have ended and its lock is free, as soon as the ledger's can be had.
  void reclaim_if_any(Deadline deadline = ledger_deadline());

  // Where others find a backing file of this process. One thread at a time, numbers in order.
  // Those past the room for them are not published.
  void publish_backing_file(unsigned number, const BackingFileRecord& record);
  // Nothing if it was not published, or the slot is another process's by now.
  std::optional<BackingFileRecord> backing_file(ProcessTag process, unsigned number) const;

  // How many entries of the tables this process holds.
  uint32_t holds() const { return own().holds; }
  // Shares of this process that came back from others.
  const std::atomic<uint32_t>& returns() const { return own().returned; }

  // ---- Rings: how processes tell each other that something happened to what they hold.
  // Rings all processes of the set, this one included.
  void ring(const SlotSet& processes) const;
  // How often this process was rung.
  const std::atomic<uint32_t>& rings() const { return own().rings; }
  // A thread of this process sleeps on it from now on.
  void listen() { own().listens.store(1); }
  bool is_listening() const { return own().listens.load() != 0; }
  // Until it is rung more often than `seen`. May return early.
  void sleep_until_rung(uint32_t seen) const;
  // Ends that sleep.
  void ring_self() const;

  // For the tables: how much a process has that must be dropped when it ends.
  void count_hold(unsigned slot) US_REQUIRES(ledger_held) { ++file_.slot(slot).holds; }
  void count_drop(unsigned slot) US_REQUIRES(ledger_held) { --file_.slot(slot).holds; }
  void count_export() US_REQUIRES(ledger_held) { ++own().exports; }
  void count_return(unsigned slot) US_REQUIRES(ledger_held) {
    file_.slot(slot).returned.fetch_add(1);
  }
  void count_return_taken() US_REQUIRES(ledger_held) { own().returned.fetch_sub(1); }
  bool may_hold(unsigned slot) const US_REQUIRES(ledger_held) {
    return file_.slot(slot).holds > 0 || file_.slot(slot).exports > 0;
  }

 private:
  // LedgerMutex::Owner
  bool is_alive(LedgerMutexWord::Holder holder) const override;
  Result<LedgerMutexWord::Holder> holder() const override;
  void repair() override US_REQUIRES(ledger_held);

  platform::ProcessIdentity slot_identity(unsigned slot) const;
  bool is_locked(unsigned slot) const { return file_.is_locked(kSlotBytes + slot); }
  bool has_ended(unsigned slot) const;
  // False only if no process has ended whose slot is still taken.
  bool may_have_ended() const;
  // Of a slot of this very process without its lock: that of the program it was before it executed
  // the present one.
  bool is_of_former_program(unsigned slot) const;
  void enter(unsigned slot, platform::LifeLock life) US_REQUIRES(ledger_held);
  void attach() US_REQUIRES(ledger_held);
  void clear(unsigned slot) US_REQUIRES(ledger_held);

  LedgerFile& file_;
  LedgerMutex mutex_;
  const platform::ProcessIdentity self_;
  const LedgerMutexWord::Holder joiner_;  // the number of this process before it has a slot
  std::vector<LedgerTable*> tables_;      // constant after the first lock
  // Constant once there is a slot.
  platform::LifeLock life_;
  std::optional<platform::Attachment> attachment_;
  ProcessTag own_tag_;
  unsigned own_ = kProcessSlots;  // none yet
  ProcessSlot* own_words_ = nullptr;
  DeviceUse* own_uses_ = nullptr;  // of device 0; see own_use
  ProcessFigures* own_figures_ = nullptr;
};

}  // namespace understudy
