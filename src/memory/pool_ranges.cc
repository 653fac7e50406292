// SPDX-License-Identifier: Apache-2.0
#include "memory/pool_ranges.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace understudy {

namespace {

bool is_indexed(RangeUse use) { return use == RangeUse::kBare || use == RangeUse::kFree; }

}  // namespace

PoolRanges::PoolRanges() { spares_.reserve(kMostSpares); }

PoolRanges::ByBase::node_type PoolRanges::make_node() {
  ByBase one;
  const Place place = one.try_emplace(0).first;
  BySize size;
  size.emplace();
  place->second.size_node = size.extract(size.begin());
  ByPosition position;
  position.emplace();
  place->second.position_node = position.extract(position.begin());
  return one.extract(place);
}

PoolRanges::SizeKey PoolRanges::size_key(ByBase::const_iterator place) {
  const Node& node = place->second;
  return {node.use == RangeUse::kBare ? kBareOwner : node.mark.owner, node.size, place->first};
}

PoolRanges::PositionKey PoolRanges::position_key(ByBase::const_iterator place) {
  const Node& node = place->second;
  return {node.mark.owner, node.mark.position, place->first};
}

PoolRange PoolRanges::as_range(ByBase::const_iterator place) {
  const Node& node = place->second;
  return {{place->first, node.size}, node.use, node.mark, node.segment};
}

// ---- Segments ----

void PoolRanges::prepare_cut() {
  if (spares_.empty()) spares_.push_back(make_node());
}

void PoolRanges::add_segment(PoolSegment& segment) {
  ByBase::node_type fresh = make_node();
  fresh.key() = segment.range.base;
  fresh.mapped().size = segment.range.size;
  fresh.mapped().segment = &segment;
  bare_ += segment.range.size;
  link(by_base_.insert(std::move(fresh)).position);
}

void PoolRanges::remove_segment(const PoolSegment& segment) {
  for (VirtualAddress base = segment.range.base; base < segment.range.end();) {
    const Place place = take(base);
    const uint64_t size = place->second.size;
    figure_of(place->second.use) -= size;
    drop_node(place);
    base += size;
  }
}

// ---- Looking ----

std::optional<PoolRange> PoolRanges::at(VirtualAddress base) const {
  const auto found = by_base_.find(base);
  if (found == by_base_.end()) return std::nullopt;
  return as_range(found);
}

std::optional<PoolRange> PoolRanges::best_fit(uint64_t owner, uint64_t size) const {
  const auto found = by_size_.lower_bound({owner, size, 0});
  if (found == by_size_.end() || found->owner != owner) return std::nullopt;
  return as_range(by_base_.find(found->base));
}

std::optional<PoolRange> PoolRanges::best_fit_until(uint64_t owner, uint64_t size,
                                                    uint64_t latest) const {
  // The few that fit best: what is left out is not wrong to leave free.
  constexpr unsigned kMostLooks = 16;
  auto found = by_size_.lower_bound({owner, size, 0});
  for (unsigned looks = 0; looks < kMostLooks; ++looks, ++found) {
    if (found == by_size_.end() || found->owner != owner) break;
    const auto place = by_base_.find(found->base);
    if (place->second.mark.position <= latest) return as_range(place);
  }
  return std::nullopt;
}

std::optional<PoolRange> PoolRanges::best_bare(uint64_t size) const {
  return best_fit(kBareOwner, size);
}

std::optional<PoolRange> PoolRanges::oldest(uint64_t owner) const {
  const auto found = by_position_.lower_bound({owner, 0, 0});
  if (found == by_position_.end() || found->owner != owner) return std::nullopt;
  return as_range(by_base_.find(found->base));
}

std::optional<uint64_t> PoolRanges::first_owner() const {
  if (by_position_.empty()) return std::nullopt;
  return by_position_.begin()->owner;
}

std::optional<uint64_t> PoolRanges::owner_after(uint64_t owner) const {
  const auto found = by_position_.upper_bound({owner, UINT64_MAX, UINT64_MAX});
  if (found == by_position_.end()) return std::nullopt;
  return found->owner;
}

std::optional<PoolRange> PoolRanges::used_from(VirtualAddress address) const {
  const auto found =
      std::find_if(by_base_.lower_bound(address), by_base_.end(),
                   [](const auto& each) { return each.second.use == RangeUse::kUsed; });
  if (found == by_base_.end()) return std::nullopt;
  return as_range(found);
}

bool PoolRanges::is_alone(VirtualAddress base) const {
  const auto place = by_base_.find(base);
  const VirtualRange whole = place->second.segment->range;
  const auto next = std::next(place);
  // Bare neighbours are merged: if they reach the ends of the segment, there is nothing else.
  const bool from_start = base == whole.base || (std::prev(place)->first == whole.base &&
                                                 std::prev(place)->second.use == RangeUse::kBare);
  const VirtualAddress end = base + place->second.size;
  const bool to_end = end == whole.end() || (next->second.use == RangeUse::kBare &&
                                             end + next->second.size == whole.end());
  return from_start && to_end;
}

// ---- Changes ----

uint64_t& PoolRanges::figure_of(RangeUse use) {
  switch (use) {
    case RangeUse::kBare:
      break;
    case RangeUse::kFree:
      return free_;
    case RangeUse::kUsed:
      return used_;
    case RangeUse::kMoving:
      return moving_;
  }
  return bare_;
}

void PoolRanges::link(Place place) {
  Node& node = place->second;
  node.size_node.value() = size_key(place);
  node.in_size = by_size_.insert(std::move(node.size_node)).position;
  if (node.use != RangeUse::kFree) return;
  node.position_node.value() = position_key(place);
  node.in_position = by_position_.insert(std::move(node.position_node)).position;
}

void PoolRanges::unlink(Place place) {
  Node& node = place->second;
  node.size_node = by_size_.extract(node.in_size);
  if (node.use == RangeUse::kFree) node.position_node = by_position_.extract(node.in_position);
}

PoolRanges::Place PoolRanges::take(VirtualAddress base) {
  const Place place = by_base_.find(base);
  if (is_indexed(place->second.use)) unlink(place);
  return place;
}

PoolRanges::Place PoolRanges::take_part(VirtualAddress base, uint64_t size) {
  const Place place = take(base);
  cut(place, size);
  return place;
}

void PoolRanges::cut(Place place, uint64_t size) {
  Node& node = place->second;
  if (size == node.size) return;
  ByBase::node_type rest = std::move(spares_.back());
  spares_.pop_back();
  rest.key() = place->first + size;
  rest.mapped().size = node.size - size;
  rest.mapped().use = node.use;
  rest.mapped().mark = node.mark;
  rest.mapped().segment = node.segment;
  node.size = size;
  link(by_base_.insert(std::next(place), std::move(rest)));
}

void PoolRanges::drop_node(Place place) {
  ByBase::node_type node = by_base_.extract(place);
  if (spares_.size() < kMostSpares) spares_.push_back(std::move(node));
}

PoolRanges::Place PoolRanges::change(Place place, RangeUse use, const FreeMark& mark) {
  Node& node = place->second;
  figure_of(node.use) -= node.size;
  figure_of(use) += node.size;
  node.use = use;
  node.mark = mark;
  if (!is_indexed(use)) return place;
  place = merge(place);
  link(place);
  return place;
}

bool PoolRanges::merges(ByBase::const_iterator first, ByBase::const_iterator second) {
  const Node& one = first->second;
  const Node& other = second->second;
  return one.segment == other.segment && one.use == other.use && one.mark.owner == other.mark.owner;
}

PoolRanges::Place PoolRanges::merge(Place place) {
  const auto absorb = [&](Place into, Place from) {
    into->second.size += from->second.size;
    into->second.mark.position = std::max(into->second.mark.position, from->second.mark.position);
    drop_node(from);
  };
  const Place next = std::next(place);
  if (next != by_base_.end() && merges(place, next)) {
    unlink(next);
    absorb(place, next);
  }
  if (place == by_base_.begin()) return place;
  const Place previous = std::prev(place);
  if (!merges(previous, place)) return place;
  unlink(previous);
  absorb(previous, place);
  return previous;
}

void PoolRanges::use(VirtualAddress base, uint64_t size) {
  change(take_part(base, size), RangeUse::kUsed, {});
}

void PoolRanges::free(VirtualAddress base, const FreeMark& mark) {
  change(take(base), RangeUse::kFree, mark);
}

void PoolRanges::release_to_anyone(VirtualAddress base) { change(take(base), RangeUse::kFree, {}); }

void PoolRanges::begin_growth(VirtualAddress base, uint64_t size) {
  change(take_part(base, size), RangeUse::kMoving, {});
}

void PoolRanges::finish_growth(VirtualAddress base) { change(take(base), RangeUse::kUsed, {}); }

void PoolRanges::begin_release(VirtualAddress base, uint64_t size) {
  change(take_part(base, size), RangeUse::kMoving, {});
}

void PoolRanges::cancel_release(VirtualAddress base) { change(take(base), RangeUse::kFree, {}); }

PoolRange PoolRanges::make_bare(VirtualAddress base) {
  return as_range(change(take(base), RangeUse::kBare, {}));
}

bool PoolRanges::is_consistent() const {
  uint64_t sums[4] = {};
  size_t indexed = 0;
  size_t marked = 0;
  for (auto place = by_base_.begin(); place != by_base_.end(); ++place) {
    const Node& node = place->second;
    sums[static_cast<size_t>(node.use)] += node.size;
    if (node.size == 0 || !node.segment->range.contains(VirtualRange{place->first, node.size})) {
      return false;
    }
    if (is_indexed(node.use)) {
      ++indexed;
      if (!by_size_.contains(size_key(place))) return false;
    }
    if (node.use == RangeUse::kFree) {
      ++marked;
      if (!by_position_.contains(position_key(place))) return false;
    }
    const auto next = std::next(place);
    if (next == by_base_.end()) continue;
    if (place->first + node.size > next->first) return false;
    if (is_indexed(node.use) && merges(place, next)) return false;
  }
  return indexed == by_size_.size() && marked == by_position_.size() && sums[0] == bare_ &&
         sums[1] == free_ && sums[2] == used_ && sums[3] == moving_;
}

}  // namespace understudy
