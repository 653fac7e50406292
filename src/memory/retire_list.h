// SPDX-License-Identifier: Apache-2.0
//
// Where mappings end. One that no reader has pinned ends at once; one that a reader still copies
// through waits on the list, and its bytes with it, until a later call finds it unpinned. The
// capacity of its block is credited in either case. Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"
#include "base/object_pool.h"
#include "memory/mapping.h"
#include "memory/physical_memory.h"

namespace understudy {

class RetireList {
 public:
  RetireList(ObjectPool<Mapping>& mappings, PhysicalMemory& physical)
      : mappings_(mappings), physical_(physical) {}

  // Ends a mapping whose entries were cleared, and drops its reference to the block.
  // REQUIRES: the calling thread holds no lock of a reservation.
  void retire(Mapping& mapping);
  // Ends the mappings of the list that are no longer pinned.
  void reclaim();

 private:
  void add_locked(Mapping& mapping) US_REQUIRES(mutex_);
  // No reader can find or hold it any more.
  void give_back(Mapping& mapping);

  ObjectPool<Mapping>& mappings_;
  PhysicalMemory& physical_;
  Mutex mutex_{LockRank::kRetireList};
  // The number + 1 of the first, which leads to the others; changed under the lock, read without it
  // to see that there is none.
  std::atomic<uint32_t> first_{0};
};

}  // namespace understudy
