// SPDX-License-Identifier: Apache-2.0
//
// The free parts of a backing file or of a range of addresses, in units of one size: taken best
// fit, so that recently used pieces are used again before untouched ones, and merged with their
// neighbors when they come back. Both take a few steps however many parts there are. Not
// synchronized.
//
// What comes back is put aside first, and merged when there is more of it than a few pieces, or
// when a request finds none of exactly its size there. By then the tags around it are in a cache;
// those of its neighbors in their lists are fetched for all pieces at a time, not one by one.
//
// Each free part has its size in the tags of its first and its last unit, where the part beside it
// finds it, a bit at its first unit, and is on the list of its bin. Parts of less than 64 units
// have a bin per size; of larger ones 32 bins share a power of two, and the first few of a list are
// looked at. Tags that were never written take no memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/zeroed_array.h"

namespace understudy {

class ExtentMap {
 public:
  // Everything from 0 to `size` is free, a multiple of `unit`, which is a power of two. May throw
  // std::bad_alloc, and is all that does.
  ExtentMap(uint64_t size, uint64_t unit);

  // Offset of a free part of `size` bytes, now taken; a multiple of `alignment`, a power of two.
  // REQUIRES: a multiple of the unit, more than 0.
  std::optional<uint64_t> take(uint64_t size, uint64_t alignment);
  // REQUIRES: no byte of the part is free.
  void give_back(uint64_t offset, uint64_t size) noexcept;

  // Takes exactly this. REQUIRES: all of it is free.
  void take_at(uint64_t offset, uint64_t size) noexcept;

  // Forgets what lies behind `size`. REQUIRES: everything is free.
  void shrink(uint64_t size);

  uint64_t free_bytes() const { return uint64_t{free_units_} << shift_; }
  // Calls visit(offset, size) for each free part, in no order.
  template <typename Visit>
  void for_each(Visit visit) {
    merge_aside();
    for (const uint32_t first : bins_) {
      for (uint32_t link = first; link != 0; link = tag(link - 1).next) {
        visit(uint64_t{link - 1} << shift_, uint64_t{tag(link - 1).size} << shift_);
      }
    }
  }

 private:
  static constexpr uint32_t kExactBins = 64;
  static constexpr uint32_t kBinsPerPower = 32;
  static constexpr uint32_t kBins = kExactBins + (32 - 6) * kBinsPerPower;

  struct Tag {
    uint32_t size;      // in units, of the free part that begins or ends here; 0: none does
    uint32_t previous;  // in the list of its bin, by first units + 1; 0: none
    uint32_t next;
  };

  // What came back and is not merged yet.
  struct Aside {
    uint32_t first;
    uint32_t size;
  };
  static constexpr unsigned kMaxAside = 32;

  static uint32_t bin_of(uint32_t size);
  // The first bin from `bin` on that has a part; kBins if there is none.
  uint32_t next_bin(uint32_t bin) const;
  // Where in the part that begins at a unit so many units fit; nothing if they do not.
  std::optional<uint32_t> place_in(uint32_t first, uint32_t size, uint32_t alignment) const;
  // The part of a bin that they fit in, of at most so many that are looked at.
  struct Found {
    uint32_t first;
    uint32_t place;
  };
  std::optional<Found> find_in_bin(uint32_t bin, uint32_t size, uint32_t alignment,
                                   uint32_t most) const;
  std::optional<Found> find(uint32_t size, uint32_t alignment) const;
  // A piece of exactly this size that was put aside, the last one first.
  std::optional<uint32_t> take_aside(uint32_t size, uint32_t alignment) noexcept;
  void merge_aside() noexcept;
  // Adds a free part, as one with those beside it.
  void merge(uint32_t first, uint32_t size) noexcept;
  void prefetch_links(uint32_t first) const;
  // The first unit of the free part around a unit. REQUIRES: it is free and not aside.
  uint32_t part_around(uint32_t unit) const;
  // Takes units at a place out of the free part that begins at `first`.
  void cut(uint32_t first, uint32_t place, uint32_t units) noexcept;
  void add(uint32_t first, uint32_t size) noexcept;
  void remove(uint32_t first) noexcept;

  Tag& tag(uint32_t unit) { return (*tags_)[unit]; }
  const Tag& tag(uint32_t unit) const { return (*tags_)[unit]; }

  const unsigned shift_;
  uint32_t units_;
  uint32_t free_units_ = 0;  // those that are aside included
  std::unique_ptr<ZeroedArray<Tag>> tags_;
  std::unique_ptr<ZeroedArray<uint64_t>> begins_;        // bit per unit: a free part begins there
  std::array<uint32_t, kBins> bins_{};                   // the first unit of a list + 1
  std::array<uint64_t, (kBins + 63) / 64> used_bins_{};  // bit per bin
  std::array<Aside, kMaxAside> aside_;
  unsigned aside_count_ = 0;
};

}  // namespace understudy
