// SPDX-License-Identifier: Apache-2.0
#include "device/ledger_mutex.h"

#include <algorithm>

#include "base/pause.h"
#include "platform/futex.h"
#include "platform/thread.h"

namespace understudy {

void LedgerMutex::wake() { platform::wake_all_processes(word_); }

LedgerLocking LedgerMutex::wait(Holder self, const Census& census, Deadline deadline) {
  // Most have it for less than a microsecond; whoever has it longer may be dead.
  constexpr unsigned kSpins = 200;
  constexpr std::chrono::milliseconds kLook(2);
  static const bool may_spin = platform::usable_processors() > 1;
  for (unsigned spins = may_spin ? kSpins : 0; spins > 0; --spins) {
    uint32_t seen = word_.load(std::memory_order_relaxed);
    if (seen == 0 && word_.compare_exchange_strong(seen, self)) return LedgerLocking::kTaken;
    pause_briefly();
  }
  while (true) {
    uint32_t seen = word_.load();
    if (seen == 0) {
      // Others may sleep: whoever had to wait says so for them.
      if (word_.compare_exchange_strong(seen, self | kAwaited)) return LedgerLocking::kTaken;
      continue;
    }
    const Holder holder = seen & ~kAwaited;
    if (holder != self && !census.is_alive(holder)) {
      if (word_.compare_exchange_strong(seen, self | kAwaited)) {
        return LedgerLocking::kTakenFromTheDead;
      }
      continue;
    }
    if (has_passed(deadline)) return LedgerLocking::kTimedOut;
    if ((seen & kAwaited) == 0 && !word_.compare_exchange_strong(seen, seen | kAwaited)) continue;
    platform::sleep_on_shared(word_, seen | kAwaited, std::min(deadline, Clock::now() + kLook));
  }
}

}  // namespace understudy
