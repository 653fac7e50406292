// SPDX-License-Identifier: Apache-2.0
//
// ExtentAllocator: the backing files of one device (or of the host, or of a NUMA node), and
// which part of them is free. A ladder of backing file kinds is tried for each request: giant pages
// of the hugetlb pool for giant blocks, huge pages of the pool, ordinary shared memory. Freed
// extents are used again as they are: the contents of fresh memory are undefined. First from a
// short list per shard, which costs one uncontended lock, then best fit from the free extents of
// the backing files. What is free and committed is bounded; the rest goes back to the system at
// once, what no request has wanted for a while later, and all of it under pressure. It goes back in
// small portions, each of which is nobody's meanwhile, so that no request waits for the system.
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
#include "memory/backing_file.h"
#include "memory/decay.h"
#include "memory/extent_map.h"
#include "memory/host_budget.h"
#include "memory/kept_granules.h"

namespace understudy {

// A part of a backing file. Its owner may use its bytes; multiples of the granule.
struct Extent {
  BackingFile* backing = nullptr;
  uint64_t offset = 0;
  uint64_t size = 0;
};

struct ExtentAllocatorOptions {
  std::string name;
  uint64_t file_size = 0;  // of a new backing file, less where the host refuses
  Backing backing = Backing::kAuto;
  Poison poison = Poison::kOff;
  std::optional<unsigned> numa_node;
  const ProcessSlots* slots = nullptr;
  const OwnFigures* figures = nullptr;
  // Bytes that may stay committed while no one has them; without, what suits the host.
  std::optional<uint64_t> max_free_committed;
  bool is_written_by_transfers = false;  // and by nothing else, so that the check `init` knows it
  Decay* decay = nullptr;                // woken when memory is kept; null: it stays
};

// How much memory that no one has may be kept for the next request on this host. Asks it.
uint64_t free_memory_to_keep();

class ExtentAllocator {
 public:
  ExtentAllocator(ExtentAllocatorOptions options, HostBudget& budget);

  // An extent with undefined contents, cold where it was never used.
  Result<Extent> take(uint64_t size, PageKind kind);
  void give_back(const Extent& extent) noexcept;

  // Gives all committed memory that is free back to the system. Returns how many bytes.
  uint64_t trim();
  // Gives back what was free during the whole time since the last call. Returns how much free
  // memory is committed still.
  uint64_t give_back_idle();

  // What is behind the backing files on the host, and how much of that is free.
  HostBacking backing() const;
  uint64_t free_committed_bytes() const;

 private:
  static constexpr unsigned kMaxRecycled = 16;
  static constexpr uint64_t kMaxRecycledBytes = 128 * kMiB;

  // Recently freed extents, newest last.
  struct alignas(64) Recycler {
    mutable Mutex mutex{LockRank::kRecycledExtents};
    std::array<Extent, kMaxRecycled> extents US_GUARDED_BY(mutex);
    unsigned count US_GUARDED_BY(mutex) = 0;
    uint64_t bytes US_GUARDED_BY(mutex) = 0;
    unsigned idle US_GUARDED_BY(mutex) = 0;  // the oldest ones that were there at the last look

    bool has_room_locked(uint64_t size) const US_REQUIRES(mutex) {
      return count < kMaxRecycled && bytes + size <= kMaxRecycledBytes;
    }
    void put_locked(const Extent& extent) US_REQUIRES(mutex) {
      extents[count++] = extent;
      bytes += extent.size;
      extent.backing->prefetch_state(extent.offset);  // for when it leaves
    }
    // Takes some out from a place on.
    void remove_locked(unsigned first, unsigned some) US_REQUIRES(mutex);
  };
  // Extents on their way from a recycler to their backing files.
  struct Spilled {
    std::array<Extent, kMaxRecycled + 1> extents;
    unsigned count = 0;
    void add(const Extent& extent) { extents[count++] = extent; }
  };
  struct Part {
    std::unique_ptr<BackingFile> backing;
    ExtentMap free;
    KeptGranules kept;  // of the free ones
  };
  // How far a search for kept memory has come.
  struct Search {
    size_t tier = 0;
    size_t part = 0;
    uint64_t offset = 0;
  };
  struct Tier {
    platform::FileKind kind;
    std::vector<Part> parts;
    bool was_short = false;  // it had no pages once, and the log was told
  };

  std::optional<Extent> take_recycled(uint64_t size, PageKind kind);
  // Keeps an extent for the next request of its size, if no other has to leave for it.
  bool try_recycle(const Extent& extent);
  // The same in any case; what has to leave for it is in `spilled`.
  void recycle(const Extent& extent, Spilled& spilled);
  static void spill_oldest_locked(Recycler& recycler, unsigned some, Spilled& spilled)
      US_REQUIRES(recycler.mutex);
  // An extent was just kept: it is given back if no request comes for it.
  void note_kept(const Extent& extent) noexcept;

  void look_at_host_locked() US_REQUIRES(mutex_);
  Result<Extent> take_from_tier_locked(Tier& tier, uint64_t size) US_REQUIRES(mutex_);
  // Nothing if no free part is that large, which is no error yet: another file may have one.
  std::optional<Result<Extent>> take_from_part_locked(Part& part, uint64_t size)
      US_REQUIRES(mutex_);
  Result<void> add_backing_file_locked(Tier& tier, uint64_t at_least) US_REQUIRES(mutex_);
  void give_back_to_file(const Extent& extent) noexcept US_EXCLUDES(mutex_);
  // No lock is held while the system takes memory back. Until the extent is entered as free, no
  // other thread can have it.
  void give_back_decommitted(const Extent& extent) noexcept US_EXCLUDES(mutex_);
  void add_free(const Extent& extent) noexcept US_EXCLUDES(mutex_);
  void add_free_locked(const Extent& extent) noexcept US_REQUIRES(mutex_);
  // Gives so much kept memory back to the system, or all there is. Returns how much that was.
  uint64_t give_back_kept(uint64_t most) noexcept US_EXCLUDES(mutex_);
  // Takes the next kept memory out of its backing file, a portion at most.
  std::optional<Extent> take_kept_locked(Search& search, uint64_t most) US_REQUIRES(mutex_);
  // A free extent of a file is taken: what it keeps is not free any more.
  void note_taken_locked(Part& part, uint64_t offset, uint64_t size) US_REQUIRES(mutex_);
  Part& part_of_locked(const BackingFile* backing) US_REQUIRES(mutex_);

  const ExtentAllocatorOptions options_;
  HostBudget& budget_;
  std::array<Recycler, kShards> recyclers_;
  mutable Mutex mutex_{LockRank::kExtentAllocator};
  // These two depend on the host, which is looked at when the first extent is wanted: most devices
  // of a server are never used, and the files of the kernel take longer than all else of a start.
  std::vector<Tier> tiers_ US_GUARDED_BY(mutex_);  // empty as long as there is none
  uint64_t max_free_committed_ US_GUARDED_BY(mutex_) = 0;
  uint64_t kept_ US_GUARDED_BY(mutex_) = 0;  // free and committed in the files, not in recyclers
  uint64_t least_kept_ US_GUARDED_BY(mutex_) = 0;  // since the last look
};

}  // namespace understudy
