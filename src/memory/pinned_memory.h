// SPDX-License-Identifier: Apache-2.0
//
// Page-locked memory of the host, for programs. Made of chunks of whole 2 MiB, of the largest pages
// that can be had, present before they are touched and locked where the user may; small requests
// share a chunk as slots of a slab. Freed chunks are kept for the next request, within a bound,
// until memory runs short or no request has come for a while. Rules: HOST. Any thread may call
// anything.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/object_pool.h"
#include "base/result.h"
#include "base/virtual_range.h"
#include "device/settings.h"
#include "memory/backing_pools.h"
#include "memory/hazard_pointers.h"
#include "memory/page_table.h"
#include "memory/slab_heap.h"
#include "platform/host_memory.h"

namespace understudy {

// Whether a block is to have the same address on host and device.
enum class DeviceAddress : uint8_t { kOwn, kSame };

struct PinnedView {
  VirtualRange range;  // as asked for
  DeviceAddress address = DeviceAddress::kOwn;
};

struct PinnedFigures {
  uint64_t locked = 0;    // bytes that stay in main memory
  uint64_t unlocked = 0;  // present, but the user may not lock more
  uint64_t huge = 0;      // the part of both in pages that were asked to be of 2 MiB
  uint64_t cached = 0;    // the part of both that is free
};

class PinnedMemory final : public MemoryCache, private SlabSource {
 public:
  PinnedMemory(const Settings& settings, BackingPools& pools);
  ~PinnedMemory() override { pools_.remove_cache(*this); }

  Result<VirtualAddress> allocate(uint64_t size, DeviceAddress address);
  // Ends the block that starts at an address; false if none does.
  bool free(VirtualAddress address);
  // The block around an address.
  std::optional<PinnedView> find(VirtualAddress address);
  // Keeps the memory of a block from being used for anything else while the pin holds it. False if
  // the range is not in one block.
  bool pin(VirtualRange range, HazardPin& pin);
  // Whether any byte of a range is in a chunk, in use or not.
  bool overlaps(VirtualRange range);
  // Gives cached memory back that counts against the user's limit of locked memory. False if there
  // is none.
  bool trim_locked_cache();

  PinnedFigures figures() const;
  // How many blocks are alive.
  uint64_t count() const;
  void trim() override;
  bool give_back_idle() override;

 private:
  struct Chunk {
    uint32_t index = 0;
    uint32_t pool_next = 0;
    VirtualRange range;
    platform::HostPages pages = platform::HostPages::kSmall;
    bool locked = false;
    bool idle = false;  // under the lock: it was cached at the last look
    // Under the lock, while someone has it: what was asked for.
    PinnedView given;
    // Under the lock: the next of those that cannot be given back yet.
    Chunk* next_retired = nullptr;
  };
  // A bound on the number of chunks that are kept, besides that on their bytes.
  static constexpr size_t kMaxCached = 64;

  Result<Chunk*> take_chunk(uint64_t size);
  void return_chunk(Chunk& chunk) noexcept;
  Chunk* take_cached(uint64_t size);
  Result<Chunk*> make_chunk(uint64_t size);
  // The kinds of pages to try, best first. Asks the host, with the first chunk, for all that
  // depends on it.
  std::vector<platform::HostPages> find_ladder();
  // The memory of a new chunk, from one kind of pages.
  Result<void> map_chunk(Chunk& chunk, uint64_t size, platform::HostPages pages);
  Result<void> lock_chunk(Chunk& chunk);
  // Gives a free chunk back, now or when no copy uses it any more.
  void discard(Chunk& chunk) noexcept;
  void discard_retired() noexcept;
  void unmap_chunk(const Chunk& chunk) noexcept;
  enum class Change : uint8_t { kAdded, kRemoved };
  void count_locked(const Chunk& chunk, Change change) US_REQUIRES(mutex_);
  // Takes chunks out of the cache that `leaves` says, and gives them back. Returns how many.
  template <typename Leaves>
  size_t discard_cached(Leaves leaves);

  Result<VirtualAddress> allocate_chunk(uint64_t size, DeviceAddress address);
  bool free_chunk(VirtualAddress address);
  Result<void> open(Slab& slab, unsigned slot_size) override;
  bool close(Slab& slab) noexcept override;

  const Settings& settings_;
  BackingPools& pools_;
  PageTable table_;  // by host address
  ObjectPool<Chunk> chunks_;
  ObjectPool<Slab> slabs_;
  SlabHeap heap_;
  mutable Mutex mutex_{LockRank::kPinnedMemory};
  std::vector<platform::HostPages> ladder_ US_GUARDED_BY(mutex_);   // found with the first chunk
  uint64_t max_cached_ US_GUARDED_BY(mutex_) = 0;                   // bytes; the same
  std::vector<Chunk*> cached_ US_GUARDED_BY(mutex_);                // oldest first
  std::map<VirtualAddress, Chunk*> by_base_ US_GUARDED_BY(mutex_);  // all of them
  PinnedFigures figures_ US_GUARDED_BY(mutex_);
  Chunk* retired_ US_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace understudy
