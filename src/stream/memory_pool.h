// SPDX-License-Identifier: Apache-2.0
//
// A stream-ordered pool of device memory. Slots are type-stable. After the end of a pool its slot
// stays taken until all of its memory is given back: tasks that were queued before a free may still
// use it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/handle.h"
#include "base/mutex.h"
#include "memory/pool_ranges.h"
#include "memory/pool_segment.h"
#include "stream/pool_reuse.h"

namespace understudy {

struct MemoryPool {
  std::atomic<uint32_t> state{0};  // a SlotState; changed under the lock
  uint32_t index = 0;
  uint32_t pool_next = 0;
  SlotLife life() const { return SlotState::life(state.load(std::memory_order_acquire)); }
  // Constant while it lives; atomic for threads that hold a stale handle.
  std::atomic<uint32_t> device{0};
  // Whether allocations may queue a task.
  std::atomic<bool> may_add_waits{false};

  Mutex mutex{LockRank::kMemoryPool};
  uint64_t max_size US_GUARDED_BY(mutex) = 0;
  ReuseRules reuse US_GUARDED_BY(mutex);
  uint64_t release_threshold US_GUARDED_BY(mutex) = 0;
  uint64_t reserved_high US_GUARDED_BY(mutex) = 0;
  uint64_t used_high US_GUARDED_BY(mutex) = 0;
  // Null while there is no pool in the slot.
  std::unique_ptr<PoolRanges> ranges US_GUARDED_BY(mutex);
  std::vector<std::unique_ptr<PoolSegment>> segments US_GUARDED_BY(mutex);
  // Threads that get memory from the device or give some back, and how often one has ended that.
  unsigned movers US_GUARDED_BY(mutex) = 0;
  std::atomic<uint32_t> moves{0};
};

// A pool as a caller found it.
struct PoolReference {
  MemoryPool* pool = nullptr;
  uint32_t state = 0;

  bool valid() const { return pool->state.load(std::memory_order_acquire) == state; }
};

}  // namespace understudy
