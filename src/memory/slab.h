// SPDX-License-Identifier: Apache-2.0
//
// A slab: one granule divided into slots of equal size for small allocations. Every slot has a
// record of one word, which tells without a lock whether the slot is taken and how much of it may
// be used. Slabs are type-stable: a reader that finds one through an old entry of a translation
// table looks at the record and the entry again.
//
// Records change under the lock of the slab's home; any thread reads them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/virtual_range.h"
#include "memory/extent_allocator.h"
#include "memory/slot_sizes.h"

namespace understudy {

// What the record of a slot says: it is live, or free and a link of its slab's list, or freed but
// kept for other processes that have it.
class SlotRecord {
 public:
  static constexpr uint32_t kNoSlot = 0xFFFF;

  constexpr SlotRecord() = default;
  constexpr explicit SlotRecord(uint64_t word) : word_(word) {}
  static constexpr SlotRecord make_live(uint64_t usable, uint8_t tag) {
    return SlotRecord(kLive | uint64_t{tag} << kTagShift | usable);
  }
  static constexpr SlotRecord make_kept() { return SlotRecord(kKept); }
  // Of a slot that never was live, and of one that was.
  static constexpr SlotRecord make_fresh(uint32_t next) { return SlotRecord(next); }
  static constexpr SlotRecord make_freed(uint32_t next) { return SlotRecord(kFreed | next); }

  constexpr uint64_t word() const { return word_; }
  constexpr bool live() const { return (word_ & kLive) != 0; }
  constexpr bool kept() const { return (word_ & kKept) != 0; }
  // An allocation was there and has ended.
  constexpr bool was_freed() const { return (word_ & (kFreed | kKept)) != 0; }
  // Of a live slot: other processes may have it.
  constexpr bool shared() const { return (word_ & kShared) != 0; }
  constexpr SlotRecord with_share() const { return SlotRecord(word_ | kShared); }
  constexpr SlotRecord without_share() const { return SlotRecord(word_ & ~kShared); }
  // Of a live slot: the bytes that may be used, and a byte of its owner's.
  constexpr uint64_t usable() const { return word_ & kUsableMask; }
  constexpr uint8_t tag() const { return static_cast<uint8_t>(word_ >> kTagShift); }
  // Of a free slot: the next free slot of the slab, or kNoSlot.
  constexpr uint32_t next_free() const { return static_cast<uint32_t>(word_ & kNoSlot); }
  constexpr SlotRecord with_next_free(uint32_t next) const {
    return SlotRecord((word_ & ~uint64_t{kNoSlot}) | next);
  }

  friend constexpr bool operator==(SlotRecord, SlotRecord) = default;

 private:
  static constexpr uint64_t kUsableMask = (uint64_t{1} << 21) - 1;
  static constexpr unsigned kTagShift = 24;
  static constexpr uint64_t kLive = uint64_t{1} << 63;
  static constexpr uint64_t kShared = uint64_t{1} << 62;
  static constexpr uint64_t kKept = uint64_t{1} << 61;
  static constexpr uint64_t kFreed = uint64_t{1} << 60;
  static_assert(kMaxSlotBytes <= kUsableMask);

  uint64_t word_ = 0;
};

struct SlabShard;

struct Slab {
  uint32_t index = 0;
  uint32_t pool_next = 0;
  // Whose lock guards the slab; null while it is not in use.
  std::atomic<SlabShard*> home{nullptr};
  // Constant while it has a home; atomic for readers that hold an old entry.
  std::atomic<VirtualAddress> base{0};
  std::atomic<uint32_t> slot_pages{0};
  std::atomic<uint32_t> slot_reciprocal{0};
  // What is behind it: an extent of device memory, or the number of a chunk of host memory.
  Extent extent;
  uint32_t chunk = 0;
  bool has_host_mapping = false;  // the CPU can look at it

  // Under the lock of its home.
  uint32_t slots = 0;
  uint32_t live = 0;
  uint32_t first_free = SlotRecord::kNoSlot;
  Slab* next = nullptr;  // in its home's list of slabs with free slots
  Slab* previous = nullptr;

  std::array<std::atomic<uint64_t>, kPagesPerSlab> records{};

  // Number of the slot around an address of the slab; one without a live record where the slab's
  // last pages are no slot.
  uint32_t slot_around(VirtualAddress address) const {
    const auto page = static_cast<uint32_t>(address % kGranule / kNormalPage);
    return page * slot_reciprocal.load(std::memory_order_relaxed) >> kReciprocalBits;
  }
  uint64_t slot_bytes() const { return slot_pages.load(std::memory_order_relaxed) * kNormalPage; }
  VirtualAddress slot_start(uint32_t slot) const {
    return base.load(std::memory_order_relaxed) + slot * slot_bytes();
  }
  SlotRecord record(uint32_t slot) const { return SlotRecord(records[slot].load()); }

  // Whether a reader still copies to or from a slot that was freed.
  bool is_pinned() const;
  // Gives the slab its slots, all of them free.
  void divide(VirtualAddress at, unsigned slot_size);

 private:
  // page / pages is page * (2^20 / pages + 1) / 2^20 for all pages of a slab.
  static constexpr unsigned kReciprocalBits = 20;
};

}  // namespace understudy
