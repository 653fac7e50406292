// SPDX-License-Identifier: Apache-2.0
#include "server/ledger_mutex.h"

#include <algorithm>

#include "base/pause.h"
#include "platform/futex.h"
#include "platform/thread.h"

namespace understudy {

void LedgerMutexWord::wake() { platform::wake_all_processes(word_); }

LedgerLocking LedgerMutexWord::wait(Holder self, const Census& census, Deadline deadline) {
  // Most have it for less than a microsecond; a holder that has it longer may be dead.
  constexpr unsigned kSpins = 200;
  constexpr std::chrono::milliseconds kLook(2);
  const bool may_spin = platform::usable_processors() > 1;
  for (unsigned spins = may_spin ? kSpins : 0; spins > 0; --spins) {
    uint32_t seen = word_.load(std::memory_order_relaxed);
    if (seen == 0 && word_.compare_exchange_strong(seen, self)) return LedgerLocking::kTaken;
    pause_briefly();
  }
  while (true) {
    uint32_t seen = word_.load();
    if (seen == 0) {
      // Others may sleep: a process that had to wait says so for them.
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

Result<void> LedgerMutex::lock(Deadline deadline) {
  US_TRY_ASSIGN(const LedgerMutexWord::Holder self, owner_.holder());
  switch (word_.lock(self, owner_, deadline)) {
    case LedgerLocking::kTaken:
      break;
    case LedgerLocking::kTakenFromTheDead:
      owner_.repair();
      break;
    case LedgerLocking::kTimedOut:
      return Error::format(ErrorCode::kConnection,
                           "another process, which may be stopped, keeps the server's ledger "
                           "locked; waited for it up to %d seconds",
                           static_cast<int>(kLedgerPatience.count()));
  }
  return {};
}

LedgerLock::LedgerLock(LedgerMutex& mutex, Deadline deadline)
    : mutex_(mutex), taken_([&] {
        note_lock_taken(LockRank::kLedger);
        return mutex.lock(deadline);
      }()) {
  if (!taken_.ok()) note_lock_released(LockRank::kLedger);
}

LedgerLock::~LedgerLock() {
  if (!taken_.ok()) return;
  mutex_.unlock();
  note_lock_released(LockRank::kLedger);
}

}  // namespace understudy
