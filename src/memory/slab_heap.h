// SPDX-License-Identifier: Apache-2.0
//
// Small allocations of one device, or of the host: slots of slabs. Each shard of threads has slabs
// of its own, so threads do not meet; a thread that frees a slot takes the lock of the slab's home.
// Slots are used again last in, first out, while they are in a cache; one that a reader still
// copies to or from is passed over. A slab with nothing in it goes back where it came from, but for
// a few that are kept for the next allocation for a while.
//
// Any thread may call anything. The source is asked without a lock.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "base/object_pool.h"
#include "base/result.h"
#include "base/thread_shard.h"
#include "memory/decay.h"
#include "memory/slab.h"

namespace understudy {

// Where a heap's slabs come from. Enters the slab in a translation table and takes it out again.
class SlabSource {
 public:
  virtual ~SlabSource() = default;
  // Finds an address for the slab, divides it and enters it. On failure nothing was done.
  virtual Result<void> open(Slab& slab, unsigned slot_size) = 0;
  // False, and nothing done, if the slab cannot be given up now.
  // REQUIRES: no slot is live or pinned.
  virtual bool close(Slab& slab) noexcept = 0;
};

// How many small allocations are alive in all slabs of a pool.
uint64_t count_live_slots(const ObjectPool<Slab>& slabs);

class SlabHeap;

struct alignas(64) SlabShard {
  const SlabHeap* heap = nullptr;
  BriefMutex mutex{LockRank::kSlabs};
  // Slabs with a free slot, by slot size.
  std::array<Slab*, kSlotSizes> with_space US_GUARDED_BY(mutex) = {};
  unsigned empty US_GUARDED_BY(mutex) = 0;        // how many of them have nothing in them
  unsigned least_empty US_GUARDED_BY(mutex) = 0;  // since the last look
};

class SlabHeap {
 public:
  // `decay` is woken when a slab is kept; null: it stays.
  SlabHeap(SlabSource& source, ObjectPool<Slab>& slabs, Decay* decay = nullptr);

  // A slot of at least `usable` bytes. REQUIRES: 0 < usable <= kMaxSlotBytes.
  Result<VirtualAddress> allocate(uint64_t usable, uint8_t tag);
  // Frees the allocation that starts at an address of a slab of this heap. Gives its record;
  // nothing, if no live slot starts there.
  std::optional<SlotRecord> free(Slab& slab, VirtualAddress address);
  // Frees every allocation; calls freed(address, record) for each, without a lock.
  template <typename Visit>
  void free_all(Visit freed) {
    slabs_.for_each([&](Slab& slab) {
      uint32_t slot = 0;
      while (const std::optional<FreedSlot> next = free_next(slab, slot)) {
        freed(next->address, next->record);
      }
    });
  }
  // From now on, freeing the allocation that starts at an address keeps its slot until it is given
  // back. Its record, and the extent of its slab; nothing, if no live slot starts there.
  std::optional<SlotRecord> share(Slab& slab, VirtualAddress address, Extent& extent);
  void unshare(Slab& slab, VirtualAddress address);
  void give_back_kept(Slab& slab, VirtualAddress address);
  // Gives slabs with nothing in them back.
  void trim();
  // The same for those that had nothing in them since the last call. Returns whether there are
  // more.
  bool give_back_idle();

 private:
  // Empty slabs that a shard keeps.
  static constexpr unsigned kMaxEmpty = 8;

  struct FreedSlot {
    VirtualAddress address;
    SlotRecord record;
  };
  // Frees the first allocation of a slab from a slot on, and moves on behind it; nothing if there
  // is none.
  std::optional<FreedSlot> free_next(Slab& slab, uint32_t& slot);
  Result<Slab*> open_slab(unsigned slot_size);
  // The lock that guards the slab of an address, if it is one of this heap.
  SlabShard* home_of(const Slab& slab) const;
  static bool is_around_locked(const SlabShard& home, const Slab& slab, VirtualAddress address)
      US_REQUIRES(home.mutex);
  // The live slot that starts at an address.
  static std::optional<uint32_t> live_slot_locked(const SlabShard& home, const Slab& slab,
                                                  VirtualAddress address) US_REQUIRES(home.mutex);
  void adopt_locked(SlabShard& shard, Slab& slab) US_REQUIRES(shard.mutex);
  // A free slot that no reader pins; nothing if all are pinned.
  static std::optional<VirtualAddress> take_slot_locked(SlabShard& shard, Slab& slab,
                                                        unsigned slot_size, SlotRecord record)
      US_REQUIRES(shard.mutex);
  // Takes the slot behind `before` from the free list, the first one for kNoSlot.
  static VirtualAddress take_behind_locked(SlabShard& shard, Slab& slab, unsigned slot_size,
                                           uint32_t before, SlotRecord record)
      US_REQUIRES(shard.mutex);
  // What is to be done without the lock when a slot was freed.
  struct Freed {
    Slab* to_close = nullptr;
    bool keeps = false;  // a slab with nothing in it
  };
  // Ends a live slot, or keeps it if it is shared.
  static Freed end_slot_locked(SlabShard& shard, Slab& slab, uint32_t slot)
      US_REQUIRES(shard.mutex);
  static Freed free_slot_locked(SlabShard& shard, Slab& slab, uint32_t slot)
      US_REQUIRES(shard.mutex);
  void settle(const Freed& freed) noexcept;
  // Takes an empty slab out of use, unless a reader pins a slot of it.
  static Slab* give_up_locked(SlabShard& shard, Slab& slab) US_REQUIRES(shard.mutex);
  // Takes empty slabs out of use, at most so many. Gives a list of them.
  static Slab* give_up_some_locked(SlabShard& shard, unsigned most) US_REQUIRES(shard.mutex);
  static void note_used_locked(SlabShard& shard) US_REQUIRES(shard.mutex);
  // Closes a list of slabs; one that cannot be closed is used again.
  void close_all(Slab* list) noexcept;

  SlabSource& source_;
  ObjectPool<Slab>& slabs_;
  Decay* const decay_;
  std::array<SlabShard, kShards> shards_;
};

}  // namespace understudy
