// SPDX-License-Identifier: Apache-2.0
//
// Which tasks of other streams a stream comes behind, as far as events say so. Pools ask, to give
// memory that one stream freed to another one that runs later anyway.
//
// Of each stream the last few waits are remembered, so that noting one needs no memory. What is
// forgotten is only a chance missed. A wait that may have been dropped, stopped or limited in time
// does not count. Any thread may call anything.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/mutex.h"
#include "stream/stream_waits.h"

namespace understudy {

struct Stream;

class StreamOrder {
 public:
  // From now on waits are noted. Programs without pools need none of it.
  void begin() { is_noting_.store(true, std::memory_order_relaxed); }

  // The tasks that `stream` gets from now on run after `before` has done `position`. `wait` is the
  // task that makes sure of it, 0 if it is so already.
  void note(Stream& stream, Stream& before, uint64_t position, uint64_t wait) {
    if (is_noting_.load(std::memory_order_relaxed)) [[unlikely]]
      note_wait(stream, before, position, wait);
  }

  // How far `before` is when the next task of `stream` runs, as far as is known. Finds its way over
  // other streams, too.
  uint64_t reached_before(Stream& stream, const Stream& before);

 private:
  // How many streams may lie on the way.
  static constexpr unsigned kMostSteps = 3;

  void note_wait(Stream& stream, Stream& before, uint64_t position, uint64_t wait);
  // As of the task at `at`.
  uint64_t reached_locked(Stream& stream, uint64_t at, const Stream& before, unsigned steps)
      US_REQUIRES(mutex_);
  RecentWaits& waits_locked(Stream& stream) US_REQUIRES(mutex_);

  std::atomic<bool> is_noting_{false};
  BriefMutex mutex_{LockRank::kStreamOrder};
};

}  // namespace understudy
