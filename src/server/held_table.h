// SPDX-License-Identifier: Apache-2.0
//
// A table of the ledger whose entries live until no process holds them: one process makes an entry,
// others come to hold it by its token while its maker lives and has not closed it. The type of the
// entries has the fields that EntryTable needs and `owner`, the slot of the maker. Any thread may
// call anything.
#pragma once

#include <cstdint>

#include "base/deadline.h"
#include "base/kill_point.h"
#include "base/result.h"
#include "server/entry_table.h"
#include "server/ledger_file.h"
#include "server/ledger_table.h"
#include "server/process_slots.h"

namespace understudy {

template <typename Entry>
class HeldTable : private LedgerTable {
 public:
  HeldTable(const HeldTable&) = delete;
  HeldTable& operator=(const HeldTable&) = delete;

  // This process holds it from now on. False if there is no such entry.
  Result<bool> hold(ShareToken token, Deadline deadline = ledger_deadline()) {
    const LedgerLock lock(slots_.mutex(), deadline);
    US_TRY(lock.taken());
    Entry* const entry = find_open(token);
    if (entry == nullptr) return false;
    if (!entry->holders.has(slots_.own_slot())) {
      entry->holders.add(slots_.own_slot());
      US_KILL_POINT("held.hold.held");
      slots_.count_hold(slots_.own_slot());
    }
    return true;
  }
  // It holds it no longer. False, and nothing changed, if the ledger's lock was not to be had.
  bool drop(uint32_t number, Deadline deadline = ledger_deadline()) {
    // Others took this process for dead, and dropped all it had.
    if (!slots_.has_own_slot()) return true;
    const LedgerLock lock(slots_.mutex(), deadline);
    if (!lock.taken().ok()) return false;
    Entry& entry = entries_[number];
    entry.holders.remove(slots_.own_slot());
    US_KILL_POINT("held.drop.dropped");
    slots_.count_drop(slots_.own_slot());
    US_KILL_POINT("held.drop.counted");
    if (entry.holders.empty()) entries_.free(number);
    return true;
  }
  // Whether its maker has not closed it, and other processes did not find that one dead.
  bool is_open(ShareToken token) const { return entries_.find(token) != nullptr; }
  // No new holder comes in from now on. By its maker.
  void close(uint32_t number) noexcept { entries_[number].secret.store(0); }

 protected:
  // Registers with the slots.
  HeldTable(LedgerFile& file, ProcessSlots& slots, TableHead& head, Entry* entries, uint32_t most)
      : slots_(slots), entries_(file, head, entries, most) {
    slots.add_table(*this);
  }
  ~HeldTable() = default;

  // Makes an entry, which this process holds. describe(entry) writes all that no other process may
  // see of an earlier one.
  template <typename Describe>
  Result<ShareToken> add_entry(Describe describe, Deadline deadline) {
    const uint64_t secret = make_secret();
    const LedgerLock lock(slots_.mutex(), deadline);
    US_TRY(lock.taken());
    US_TRY_ASSIGN(const uint32_t number, entries_.take());
    Entry& entry = entries_[number];
    describe(entry);
    entry.owner = static_cast<uint16_t>(slots_.own_slot());
    US_KILL_POINT("held.add.described");
    entry.holders.add(slots_.own_slot());
    US_KILL_POINT("held.add.held");
    slots_.count_hold(slots_.own_slot());
    slots_.count_export();
    US_KILL_POINT("held.add.counted");
    entry.live.store(1);
    US_KILL_POINT("held.add.live");
    entry.secret.store(secret);
    US_KILL_POINT("held.add.open");
    return ShareToken(number, secret);
  }
  // The entry of a token by which processes can still come in.
  Entry* find_open(ShareToken token) const US_REQUIRES(ledger_held) {
    Entry* const entry = entries_.find(token);
    return entry != nullptr && slots_.is_slot_alive(entry->owner) ? entry : nullptr;
  }

  ProcessSlots& slots_;
  EntryTable<Entry> entries_;

 private:
  // LedgerTable
  void drop_holds(unsigned slot) override US_REQUIRES(ledger_held) {
    if (!slots_.may_hold(slot)) return;
    for (uint32_t number = 0; number < entries_.count(); ++number) {
      Entry& entry = entries_[number];
      if (entry.live.load() == 0) continue;
      if (entry.owner == slot) entry.secret.store(0);
      if (!entry.holders.has(slot)) continue;
      entry.holders.remove(slot);
      US_KILL_POINT("held.clear.dropped");
      if (entry.holders.empty()) entries_.free(number);
    }
  }
  void repair() override US_REQUIRES(ledger_held) {
    for (uint32_t number = 0; number < entries_.count(); ++number) {
      Entry& entry = entries_[number];
      if (entry.live.load() == 0) continue;
      if (entry.holders.empty()) {
        entry.live.store(0);
        continue;
      }
      for (unsigned slot = 0; slot < slots_.count(); ++slot) {
        if (entry.holders.has(slot)) slots_.count_hold(slot);
      }
    }
    entries_.relist();
  }
};

}  // namespace understudy
