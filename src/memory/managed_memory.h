// SPDX-License-Identifier: Apache-2.0
//
// Managed memory: memory of the process at an address that the CPU and all devices use. Its bytes
// are where its address says: the software MMU translates the address to itself, and the kernel
// makes a page when it is first touched, by whichever side. No device is charged for it. Where a
// program advises it to be, or has it moved to, is remembered and makes no difference.
//
// An allocation belongs to the device of the context it was made with and ends with that device's
// reset, if it was not freed before. Its pages and addresses go when no copy uses it any more.
//
// What devices write is taken from the host budget first, a granule at a time, so that a full host
// is an error code; what the CPU touches is between the program and the kernel, as with mmap.
// Rules: MANAGED, FREE-02, PTR-05. Any thread may call anything.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/virtual_range.h"
#include "device/settings.h"
#include "memory/address_arena.h"
#include "memory/advice_map.h"
#include "memory/allocation_placement.h"
#include "memory/backing_pools.h"
#include "memory/physical_memory.h"
#include "memory/retire_list.h"
#include "memory/translation.h"

namespace understudy {

// A location as a program names it.
enum class LocationRequest : uint8_t { kNone, kDevice, kHost, kHostNuma, kHostNumaCurrent };

enum class Advice : uint8_t {
  kSetReadMostly,
  kUnsetReadMostly,
  kSetPreferredLocation,
  kUnsetPreferredLocation,
  kSetAccessedBy,
  kUnsetAccessedBy,
};

struct PrefetchRequest {
  VirtualRange range;
  AdvisedLocation location;
};

class ManagedMemory final : public ManagedMemoryOwner {
 public:
  static constexpr uint64_t kMost = 3 * kTiB;  // MANAGED-22

  ManagedMemory(const Settings& settings, PhysicalMemory& physical, BackingPools& pools,
                const Translation& translation, Reservations& reservations, RetireList& retired,
                AllocationPlacement& placement);

  // AllocationPlacement::end frees it.
  Result<VirtualAddress> allocate(uint64_t size, unsigned device);
  // Ends all allocations that belong to a device. Allocates nothing.
  void free_all(unsigned device);

  // Refuses locations that do not exist.
  Result<AdvisedLocation> locate(LocationRequest request, int32_t id) const;
  // REQUIRES, for all ranges below: they are not empty.
  Result<void> advise(VirtualRange range, Advice advice, AdvisedLocation location);
  // What was said about all of a range.
  Result<UsageAdvice> advice_on(VirtualRange range);

  // A prefetch takes effect for queries when it is queued (MANAGED-18), which the caller does
  // between the two: planning may refuse, committing cannot.
  class PrefetchPlan {
    friend class ManagedMemory;
    struct Step {
      PrefetchRequest request;
      AdviceMap::Spare spare;
    };
    std::vector<Step> steps_;
  };
  Result<PrefetchPlan> plan_prefetch(std::span<const PrefetchRequest> requests);
  void commit(PrefetchPlan plan) noexcept;

  // Makes sure that there is host memory for a range before a device writes to it.
  // REQUIRES: the range is inside an allocation that the calling thread has pinned.
  Result<void> commit(VirtualRange range);
  bool is_committed(VirtualRange range);

  void on_managed_unreferenced(VirtualRange range) noexcept override;

 private:
  struct Allocation {
    Allocation(uint64_t bytes, unsigned of_device)
        : size(bytes), device(of_device), committed(bytes / kGranule), advice(bytes / kGranule) {}
    const uint64_t size;
    const unsigned device;
    std::vector<bool> committed;  // by granule: taken from the host budget
    AdviceMap advice;
  };
  // The granules of an allocation that a range touches.
  struct Granules {
    Allocation* allocation;
    uint64_t begin;
    uint64_t end;
  };

  Result<void> count(uint64_t size);
  void discount(uint64_t size) noexcept;
  Result<void> check_whole_granules(uint64_t size) const;
  // Refuses ranges that are not all in one allocation.
  Result<Granules> find_locked(VirtualRange range) US_REQUIRES(mutex_);
  Granules granules_locked(VirtualRange range) US_REQUIRES(mutex_);
  uint64_t count_cold_locked(const Granules& granules) US_REQUIRES(mutex_);

  const Settings& settings_;
  PhysicalMemory& physical_;
  BackingPools& pools_;
  const Translation& translation_;
  RetireList& retired_;
  AllocationPlacement& placement_;
  AddressArena arena_;
  Mutex mutex_{LockRank::kManagedMemory};
  // By address, until no copy uses it any more.
  std::map<VirtualAddress, Allocation> allocations_ US_GUARDED_BY(mutex_);
  uint64_t total_ US_GUARDED_BY(mutex_) = 0;
};

}  // namespace understudy
