// SPDX-License-Identifier: Apache-2.0
//
// The lock of the ledger, in the ledger itself. Its word names the process that has it; who finds
// that process dead takes the lock over. What the kernel offers for this (robust mutexes) goes by
// thread numbers, which mean different threads in different namespaces.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace understudy {

enum class LedgerLocking : uint8_t {
  kTaken,
  kTakenFromTheDead,  // what the lock protects may be half changed: repair it
  kTimedOut,
};

class LedgerMutex {
 public:
  // Who may have the lock: numbers from 1 on, of less than 31 bits.
  using Holder = uint32_t;

  // Knows who lives.
  class Census {
   public:
    virtual bool is_alive(Holder holder) const = 0;

   protected:
    ~Census() = default;
  };

  LedgerLocking lock(Holder self, const Census& census, Deadline deadline) {
    uint32_t free = 0;
    if (word_.compare_exchange_strong(free, self)) [[likely]]
      return LedgerLocking::kTaken;
    return wait(self, census, deadline);
  }
  void unlock() {
    if ((word_.exchange(0) & kAwaited) != 0) wake();
  }

 private:
  static constexpr uint32_t kAwaited = uint32_t{1} << 31;

  LedgerLocking wait(Holder self, const Census& census, Deadline deadline);
  void wake();

  std::atomic<uint32_t> word_{0};
};

}  // namespace understudy
