// SPDX-License-Identifier: Apache-2.0
#include "memory/extent_map.h"

#include "base/sizes.h"

namespace understudy {

void ExtentMap::insert(uint64_t offset, uint64_t size) {
  by_offset_.emplace(offset, size);
  by_size_.emplace(size, offset);
  free_bytes_ += size;
}

void ExtentMap::erase(std::map<uint64_t, uint64_t>::iterator part) {
  free_bytes_ -= part->second;
  by_size_.erase({part->second, part->first});
  by_offset_.erase(part);
}

std::optional<uint64_t> ExtentMap::take(uint64_t size, uint64_t alignment) {
  for (auto candidate = by_size_.lower_bound({size, 0}); candidate != by_size_.end(); ++candidate) {
    const auto [part_size, part_offset] = *candidate;
    const uint64_t offset = *align_up(part_offset, alignment);
    const uint64_t skipped = offset - part_offset;
    if (skipped > part_size || part_size - skipped < size) continue;
    erase(by_offset_.find(part_offset));
    if (skipped > 0) insert(part_offset, skipped);
    if (part_size - skipped > size) insert(offset + size, part_size - skipped - size);
    return offset;
  }
  return std::nullopt;
}

void ExtentMap::give_back(uint64_t offset, uint64_t size) {
  const auto next = by_offset_.lower_bound(offset);
  if (next != by_offset_.end() && offset + size == next->first) {
    size += next->second;
    erase(next);
  }
  auto previous = by_offset_.lower_bound(offset);
  if (previous != by_offset_.begin()) {
    --previous;
    if (previous->first + previous->second == offset) {
      offset = previous->first;
      size += previous->second;
      erase(previous);
    }
  }
  insert(offset, size);
}

}  // namespace understudy
