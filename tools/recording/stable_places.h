// SPDX-License-Identifier: Apache-2.0
//
// A stable sort of large records, most of which are in runs that are in order: each is moved once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace understudy::command {

// Sorts the records. Returns, for each, the place where it is now.
template <typename Record, typename IsBefore>
std::vector<uint32_t> sort_with_places(std::vector<Record>& records, IsBefore is_before) {
  std::vector<uint32_t> order(records.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto is_before_by_place = [&](uint32_t left, uint32_t right) {
    return is_before(records[left], records[right]);
  };
  // Runs are merged with their neighbors, two at a time.
  std::vector<size_t> ends{0};
  for (size_t end = 1; end <= records.size(); ++end) {
    if (end == records.size() || is_before(records[end], records[end - 1])) ends.push_back(end);
  }
  while (ends.size() > 2) {
    std::vector<size_t> merged{0};
    for (size_t run = 2; run < ends.size(); run += 2) {
      const auto at = [&](size_t place) { return order.begin() + static_cast<ptrdiff_t>(place); };
      std::inplace_merge(at(ends[run - 2]), at(ends[run - 1]), at(ends[run]), is_before_by_place);
      merged.push_back(ends[run]);
    }
    if (merged.back() != ends.back()) merged.push_back(ends.back());
    ends = std::move(merged);
  }
  std::vector<uint32_t> places(records.size());
  for (uint32_t place = 0; place < order.size(); ++place) places[order[place]] = place;
  // Each cycle of places by itself, so that no second copy of the records is needed.
  order = places;
  for (uint32_t first = 0; first < order.size(); ++first) {
    while (order[first] != first) {
      const uint32_t to = order[first];
      std::swap(records[first], records[to]);
      std::swap(order[first], order[to]);
    }
  }
  return places;
}

}  // namespace understudy::command
