// SPDX-License-Identifier: Apache-2.0
#include "base/mutex.h"

#include "base/invariant.h"

namespace understudy {

void Mutex::wait_and_lock() {
  // Whoever slept cannot know whether others still do, so it takes the lock as waited for.
  while (state_.exchange(kWaitedFor, std::memory_order_acquire) != kFree) {
    state_.wait(kWaitedFor, std::memory_order_relaxed);
  }
}

#if defined(US_CHECK_INVARIANTS)

namespace {
// Bit r is set while this thread holds a lock of rank r.
thread_local uint32_t held_ranks = 0;

uint32_t bit_of(LockRank rank) { return uint32_t{1} << static_cast<unsigned>(rank); }
}  // namespace

void note_lock_taken(LockRank rank) {
  US_INVARIANT(held_ranks < bit_of(rank), "a lock of rank %u was taken while ranks 0x%x were held",
               static_cast<unsigned>(rank), held_ranks);
  held_ranks |= bit_of(rank);
}

void note_lock_released(LockRank rank) { held_ranks &= ~bit_of(rank); }

#endif

}  // namespace understudy
