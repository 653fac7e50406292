// SPDX-License-Identifier: Apache-2.0
//
// The pages of one pool of a device, as the processes of a server take them. Each process has its
// words of the ledger (DeviceUse) and there is no common total: what all have is summed over the
// slots. What a dead process has goes with its slot.
//
// A process has pages that it uses and a lease: pages that were granted to it ahead. A charge that
// the lease has room for, and every credit, change one word of the process's own. Else it asks:
//
//   1. It publishes in `pending` how many pages it may be granted in a moment.
//   2. It sums what all processes were granted and what is pending. All steps are sequentially
//      consistent: of two processes that ask for the last pages at least one sees the other.
//   3. If the sum fits, it is granted the pages, in its word; then nothing is pending any more.
//
// Any process may revoke any lease, by compare and exchange: what was not used yet is no longer
// granted. So a lease never keeps pages from another process, even if its own is stopped.
//
// Where that does not help, charge_slow asks under the ledger's lock, for one or more accounts: it
// holds the pages back, so that others are granted no more, revokes leases, and waits until nothing
// is pending that would not fit. A process that does not get on is invalidated: its word says so,
// and step 3 fails for what it has pending.
//
// Any thread may call anything. One thread of the process at a time asks.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/deadline.h"
#include "base/mutex.h"
#include "server/ledger_file.h"
#include "server/ledger_mutex.h"
#include "server/pool_word.h"
#include "server/process_slots.h"

namespace understudy {

class PageAccount {
 public:
  // Of a device, by its number on the server.
  PageAccount(const LedgerFile& file, const ProcessSlots& slots, unsigned device, unsigned pool)
      : file_(file), slots_(slots), device_(device), pool_(pool) {}
  PageAccount(const PageAccount&) = delete;
  PageAccount& operator=(const PageAccount&) = delete;

  // Pages that processes can have together.
  uint64_t usable() const {
    return file_.header().usable_pages[device_ == kHostWindow ? kPools : pool_];
  }
  // Pages that all processes use, and those that they share.
  uint64_t used() const { return count().used; }
  // Those that this process uses. REQUIRES, like all below: it has a slot.
  uint64_t own_used() const { return PoolWord(own_word().load()).used(); }

  // Takes pages. False, and nothing taken, if that needs the ledger's lock. Waits for no process.
  bool charge(uint64_t pages) { return spend(pages) || ask(pages); }
  // Gives pages back that were charged, to the lease.
  void credit(uint64_t pages);
  // Adds the number of pages that this process uses to `remembered`, then gives them back.
  // REQUIRES: no other thread of the process charges or credits.
  void credit_all(std::atomic<uint64_t>& remembered);

  // Pages of an account that are charged together with those of others.
  struct Demand {
    PageAccount* account = nullptr;
    uint64_t pages = 0;
  };
  // Takes what all of them demand, or nothing: where it is short, what dead processes had comes
  // first, then leases, and what is pending elsewhere does not count in the end. Waits for the
  // ledger's lock until the deadline.
  static bool charge_slow(std::span<const Demand> demands, ProcessSlots& slots, Deadline deadline);

  // Gives up what a process had that has ended.
  static void clear(DeviceUse& use);

 private:
  // What processes use, and with it what they were granted, what is pending and what is held back.
  struct Count {
    uint64_t used = 0;
    uint64_t claimed = 0;
  };
  Count count() const;

  // Most pages of a lease. Small enough that the leases of a few processes are no shortage.
  uint64_t most_leased() const;

  bool spend(uint64_t pages) {
    std::atomic<uint64_t>& word = own_word();
    uint64_t seen = word.load(std::memory_order_relaxed);
    while (PoolWord(seen).leased() >= pages) {
      if (word.compare_exchange_weak(seen, PoolWord(seen).spent(pages).word())) [[likely]]
        return true;
    }
    return false;
  }
  bool ask(uint64_t pages);
  bool request(uint64_t pages, uint64_t ahead);
  bool take_granted(uint64_t pages, uint64_t ahead);

  void revoke_leases();
  void invalidate_pending();
  bool fits(uint64_t claimed) const { return claimed <= usable(); }

  template <typename Visit>
  void for_each_use(Visit visit) const;
  std::atomic<uint64_t>& own_word() const { return slots_.own_use(device_).words[pool_]; }
  std::atomic<uint64_t>& shared() const { return file_.header().shared[device_].words[pool_]; }
  std::atomic<uint64_t>& held_back() const {
    return file_.header().held_back[device_].words[pool_];
  }

  const LedgerFile& file_;
  const ProcessSlots& slots_;
  const unsigned device_;
  const unsigned pool_;
  Mutex asking_{LockRank::kPageAccount};
};

}  // namespace understudy
