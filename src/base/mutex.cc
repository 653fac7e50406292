// SPDX-License-Identifier: Apache-2.0
#include "base/mutex.h"

#include <cinttypes>
#include <limits>

#include "base/invariant.h"
#include "base/pause.h"

namespace understudy {

void Mutex::wait_and_lock() {
  // A thread that slept cannot know whether others still do, so it takes the lock as waited for.
  while (state_.exchange(kWaitedFor, std::memory_order_acquire) != kFree) {
    state_.wait(kWaitedFor, std::memory_order_relaxed);
  }
}

void BriefMutex::wait_and_lock() {
  constexpr int kSpins = 100;
  for (int tries = 0; taken_.exchange(true, std::memory_order_acquire); ++tries) {
    // Look without asking for the cache line until it seems free.
    for (int spin = 0; spin < kSpins && taken_.load(std::memory_order_relaxed); ++spin) {
      pause_briefly();
    }
    // Its holder is not running: there may be one processor only, and priorities.
    if (tries > 0) nap();
  }
}

#if defined(US_CHECK_INVARIANTS)

namespace {
// Bit r is set while this thread holds a lock of rank r.
using RankSet = uint64_t;
static_assert(kLockRanks <= std::numeric_limits<RankSet>::digits);
thread_local RankSet held_ranks = 0;

RankSet bit_of(LockRank rank) { return RankSet{1} << static_cast<unsigned>(rank); }
}  // namespace

void note_lock_taken(LockRank rank) {
  US_INVARIANT(held_ranks < bit_of(rank),
               "a lock of rank %u was taken while ranks 0x%" PRIx64 " were held",
               static_cast<unsigned>(rank), held_ranks);
  held_ranks |= bit_of(rank);
}

void note_lock_released(LockRank rank) { held_ranks &= ~bit_of(rank); }

void check_no_lock_held(const char* action) {
  US_INVARIANT(held_ranks == 0, "%s while locks of ranks 0x%" PRIx64 " are held", action,
               held_ranks);
}

#endif

}  // namespace understudy
