// SPDX-License-Identifier: Apache-2.0
//
// Storage: the stores of one device (or of the host, or of a NUMA node), and who has which part.
// A ladder of store kinds is tried for each request: giant pages of the hugetlb pool for giant
// blocks, huge pages of the pool, ordinary shared memory. Freed extents are used again as they are:
// the contents of fresh memory are undefined. First from a short list per shard, which costs one
// uncontended lock, then best fit from the free extents of the stores. What is free and warm is
// bounded; the rest goes back to the system at once, and all of it under pressure.
//
// Any thread may call anything.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread_shard.h"
#include "device/page_kind.h"
#include "device/settings.h"
#include "memory/extent_map.h"
#include "memory/host_budget.h"
#include "memory/store.h"

namespace understudy {

// A part of a store. Whoever has it may use its bytes; multiples of the granule.
struct Extent {
  Store* store = nullptr;
  uint64_t offset = 0;
  uint64_t size = 0;
};

struct StorageOptions {
  std::string name;
  uint64_t store_size = 0;  // of a new store, less where the host refuses
  Backing backing = Backing::kAuto;
  Poison poison = Poison::kOff;
  std::optional<unsigned> numa_node;
  const Ledger* ledger = nullptr;
  uint64_t max_free_warm = 0;  // bytes that may stay warm while no one has them
};

class Storage {
 public:
  Storage(StorageOptions options, HostBudget& budget);

  // An extent with undefined contents, cold where it was never used.
  Result<Extent> take(uint64_t size, PageKind kind);
  void give_back(const Extent& extent) noexcept;

  // Gives all warm memory that no one has back to the system. Returns how many bytes.
  uint64_t trim();

  // What is behind this storage on the host, and how much of that no one has.
  HostBacking backing() const;
  uint64_t free_warm_bytes() const;

 private:
  static constexpr unsigned kMaxRecycled = 16;
  static constexpr uint64_t kMaxRecycledBytes = 128 * kMiB;

  // Recently freed extents, newest last.
  struct alignas(64) Recycler {
    mutable Mutex mutex{LockRank::kRecycledExtents};
    std::array<Extent, kMaxRecycled> extents US_GUARDED_BY(mutex);
    unsigned count US_GUARDED_BY(mutex) = 0;
    uint64_t bytes US_GUARDED_BY(mutex) = 0;
  };
  // Extents on their way from a recycler to their stores.
  struct Spilled {
    std::array<Extent, kMaxRecycled + 1> extents;
    unsigned count = 0;
    void add(const Extent& extent) { extents[count++] = extent; }
  };
  struct Part {
    std::unique_ptr<Store> store;
    ExtentMap free;
  };
  struct Tier {
    platform::FileKind kind;
    std::vector<Part> parts;
  };

  std::optional<Extent> take_recycled(uint64_t size, PageKind kind);
  // Keeps an extent for the next request of its size; what has to leave for it is in `spilled`.
  void recycle(const Extent& extent, Spilled& spilled);
  static void drain(Recycler& recycler, Spilled& spilled);

  Result<Extent> take_from_tier_locked(Tier& tier, uint64_t size) US_REQUIRES(mutex_);
  Result<Extent> take_from_part_locked(Part& part, uint64_t size) US_REQUIRES(mutex_);
  Result<void> add_store_locked(Tier& tier, uint64_t at_least) US_REQUIRES(mutex_);
  void give_back_to_store_locked(const Extent& extent) noexcept US_REQUIRES(mutex_);
  Part& part_of_locked(const Store* store) US_REQUIRES(mutex_);

  const StorageOptions options_;
  HostBudget& budget_;
  std::array<Recycler, kShards> recyclers_;
  mutable Mutex mutex_{LockRank::kStorage};
  std::vector<Tier> tiers_ US_GUARDED_BY(mutex_);
  uint64_t free_warm_ US_GUARDED_BY(mutex_) = 0;  // in the stores, not in the recyclers
};

}  // namespace understudy
