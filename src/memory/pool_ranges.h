// SPDX-License-Identifier: Apache-2.0
//
// The addresses of a pool: which of them have memory, which of those are in use, and who freed the
// others. Segments are cut into ranges; a range lies in one segment. Neighbours of one kind are
// merged, and free ranges are found best fit. Everything takes logarithmic time.
//
// A free range has a mark: its owner, who may use it again at once, and the position from which on
// anyone may. Positions of an owner rise. What owners and positions are is the caller's affair.
//
// Changes of use cannot fail: what a cut needs is taken by prepare_cut() before. Not synchronized.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "base/virtual_range.h"
#include "memory/pool_segment.h"

namespace understudy {

enum class RangeUse : uint8_t {
  kBare,    // addresses without memory
  kFree,    // with memory, not in use
  kUsed,    // an allocation
  kMoving,  // a thread gives it memory, or takes the memory away
};

struct FreeMark {
  // The owner of what anyone may use at once.
  static constexpr uint64_t kAnyone = 0;

  uint64_t owner = kAnyone;  // neither 0 nor UINT64_MAX, but for the above
  uint64_t position = 0;
};

struct PoolRange {
  VirtualRange range;
  RangeUse use = RangeUse::kBare;
  FreeMark mark;  // of a free one
  PoolSegment* segment = nullptr;
};

class PoolRanges {
 public:
  PoolRanges();

  // Enters the addresses of a segment, all of them bare. May throw std::bad_alloc and has changed
  // nothing then.
  void add_segment(PoolSegment& segment);
  // REQUIRES: nothing of it is in use or moves.
  void remove_segment(const PoolSegment& segment);
  // The next change that cuts a range needs no memory. May throw std::bad_alloc.
  void prepare_cut();

  // The range that starts at an address.
  std::optional<PoolRange> at(VirtualAddress base) const;
  // The smallest range of an owner that has so many bytes; the same among those that anyone may use
  // from a position up to `latest` on.
  std::optional<PoolRange> best_fit(uint64_t owner, uint64_t size) const;
  std::optional<PoolRange> best_fit_until(uint64_t owner, uint64_t size, uint64_t latest) const;
  std::optional<PoolRange> best_bare(uint64_t size) const;
  // The free range of an owner with the lowest position.
  std::optional<PoolRange> oldest(uint64_t owner) const;
  // The owner of free ranges that comes next, in no order of meaning; from any owner on, all are
  // found.
  std::optional<uint64_t> first_owner() const;
  std::optional<uint64_t> owner_after(uint64_t owner) const;
  // The first allocation at an address or behind it.
  std::optional<PoolRange> used_from(VirtualAddress address) const;
  // Whether nothing else of the range's segment has memory.
  bool is_alone(VirtualAddress base) const;

  // ---- Changes. `base` starts a range of the use that is named; `size` is at most the range's,
  // and the rest stays as it is. REQUIRES prepare_cut() where there is a rest.
  void use(VirtualAddress base, uint64_t size);            // free: becomes used
  void free(VirtualAddress base, const FreeMark& mark);    // used: becomes free
  void release_to_anyone(VirtualAddress base);             // free: becomes anyone's
  void begin_growth(VirtualAddress base, uint64_t size);   // bare: becomes moving
  void finish_growth(VirtualAddress base);                 // moving: becomes used
  void begin_release(VirtualAddress base, uint64_t size);  // free: becomes moving
  void cancel_release(VirtualAddress base);                // moving: becomes free, anyone's
  // moving: becomes bare. The bare range around it.
  PoolRange make_bare(VirtualAddress base);

  uint64_t used_bytes() const { return used_; }
  uint64_t free_bytes() const { return free_; }
  uint64_t moving_bytes() const { return moving_; }
  uint64_t backed_bytes() const { return used_ + free_ + moving_; }

  // Checks that all of this fits together; for tests.
  bool is_consistent() const;

 private:
  // Bare ranges are in the same index as those of owners.
  static constexpr uint64_t kBareOwner = UINT64_MAX;
  // Parts of ranges that were merged, for the next cuts.
  static constexpr size_t kMostSpares = 16;

  struct SizeKey {
    uint64_t owner = 0;
    uint64_t size = 0;
    VirtualAddress base = 0;
    friend bool operator<(const SizeKey& one, const SizeKey& other) {
      return std::tie(one.owner, one.size, one.base) <
             std::tie(other.owner, other.size, other.base);
    }
  };
  struct PositionKey {
    uint64_t owner = 0;
    uint64_t position = 0;
    VirtualAddress base = 0;
    friend bool operator<(const PositionKey& one, const PositionKey& other) {
      return std::tie(one.owner, one.position, one.base) <
             std::tie(other.owner, other.position, other.base);
    }
  };
  using BySize = std::set<SizeKey>;          // bare and free ranges
  using ByPosition = std::set<PositionKey>;  // free ranges
  // A range knows its places in the indexes, and keeps what they are made of while it is not there.
  struct Node {
    uint64_t size = 0;
    RangeUse use = RangeUse::kBare;
    FreeMark mark;
    PoolSegment* segment = nullptr;
    BySize::iterator in_size;
    ByPosition::iterator in_position;
    BySize::node_type size_node;
    ByPosition::node_type position_node;
  };
  using ByBase = std::map<VirtualAddress, Node>;  // all ranges
  using Place = ByBase::iterator;

  static ByBase::node_type make_node();
  static SizeKey size_key(ByBase::const_iterator place);
  static PositionKey position_key(ByBase::const_iterator place);
  static bool merges(ByBase::const_iterator first, ByBase::const_iterator second);
  static PoolRange as_range(ByBase::const_iterator place);

  // Into the indexes, and out of them.
  void link(Place place);
  void unlink(Place place);
  uint64_t& figure_of(RangeUse use);
  // REQUIRES: not in the indexes.
  void cut(Place place, uint64_t size);
  // Changes the use of a range that is not in the indexes, merges it with its neighbours, and
  // enters the result.
  Place change(Place place, RangeUse use, const FreeMark& mark);
  Place merge(Place place);
  void drop_node(Place place);
  // The range that starts at an address, out of the indexes.
  Place take(VirtualAddress base);
  Place take_part(VirtualAddress base, uint64_t size);

  ByBase by_base_;
  BySize by_size_;
  ByPosition by_position_;
  std::vector<ByBase::node_type> spares_;
  uint64_t bare_ = 0;
  uint64_t free_ = 0;
  uint64_t used_ = 0;
  uint64_t moving_ = 0;
};

}  // namespace understudy
