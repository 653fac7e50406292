// SPDX-License-Identifier: Apache-2.0
#include "memory/extent_map.h"

#include "base/sizes.h"

namespace understudy {

ExtentMap::ExtentMap(uint64_t size) { add(0, size); }

void ExtentMap::add(uint64_t offset, uint64_t size) {
  const auto part = by_offset_.emplace(offset, size).first;
  try {
    by_size_.emplace(size, offset);
  } catch (...) {
    by_offset_.erase(part);
    throw;
  }
  free_bytes_ += size;
}

void ExtentMap::change(Part part, uint64_t offset, uint64_t size) {
  auto sized = by_size_.extract({part->second, part->first});
  auto placed = by_offset_.extract(part);
  free_bytes_ += size - placed.mapped();
  placed.key() = offset;
  placed.mapped() = size;
  sized.value() = {size, offset};
  by_offset_.insert(std::move(placed));
  by_size_.insert(std::move(sized));
}

void ExtentMap::shrink(uint64_t size) { change(by_offset_.begin(), 0, size); }

void ExtentMap::remove(Part part) {
  free_bytes_ -= part->second;
  by_size_.erase({part->second, part->first});
  by_offset_.erase(part);
}

std::optional<uint64_t> ExtentMap::take(uint64_t size, uint64_t alignment) {
  for (auto candidate = by_size_.lower_bound({size, 0}); candidate != by_size_.end(); ++candidate) {
    const auto [part_size, part_offset] = *candidate;
    const uint64_t offset = *align_up(part_offset, alignment);
    const uint64_t in_front = offset - part_offset;
    if (in_front > part_size || part_size - in_front < size) continue;
    const uint64_t behind = part_size - in_front - size;
    if (behind > 0 && in_front > 0) add(offset + size, behind);  // the only step that may fail
    const Part part = by_offset_.find(part_offset);
    if (in_front > 0) {
      change(part, part_offset, in_front);
    } else if (behind > 0) {
      change(part, offset + size, behind);
    } else {
      remove(part);
    }
    return offset;
  }
  return std::nullopt;
}

void ExtentMap::give_back(uint64_t offset, uint64_t size) {
  const Part next = by_offset_.lower_bound(offset);
  const bool joins_next = next != by_offset_.end() && offset + size == next->first;
  const Part previous = next == by_offset_.begin() ? by_offset_.end() : std::prev(next);
  const bool joins_previous =
      previous != by_offset_.end() && previous->first + previous->second == offset;
  if (joins_previous) {
    const uint64_t more = joins_next ? next->second : 0;
    if (joins_next) remove(next);
    change(previous, previous->first, previous->second + size + more);
  } else if (joins_next) {
    change(next, offset, next->second + size);
  } else {
    add(offset, size);
  }
}

}  // namespace understudy
