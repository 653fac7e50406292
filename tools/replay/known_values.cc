// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/known_values.h"

#include <algorithm>

namespace understudy::command {

namespace {

constexpr uint64_t kNear = uint64_t{1} << 20;

}  // namespace

std::optional<uint32_t> KnownValues::find_handle(char kind, uint64_t value) const {
  const auto found = handles_.find({kind, value});
  if (found == handles_.end()) return std::nullopt;
  return found->second;
}

void KnownValues::add_range(uint64_t address, uint64_t size, uint32_t thing) {
  size = std::max<uint64_t>(std::min(size, UINT64_MAX - address), 1);
  auto next = ranges_.upper_bound(address);
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    if (address - before->first < before->second.size) next = before;
  }
  while (next != ranges_.end() && next->first < address + size) next = ranges_.erase(next);
  ranges_[address] = {size, thing, false};
}

std::optional<KnownThing> KnownValues::find_near(uint64_t address) const {
  const auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return std::nullopt;
  const auto& [base, range] = *std::prev(next);
  const uint64_t offset = address - base;
  if (offset >= range.size && offset - range.size >= kNear) return std::nullopt;
  return KnownThing{range.thing, offset, range.has_ended};
}

std::optional<KnownThing> KnownValues::find_address(uint64_t address) const {
  const auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return std::nullopt;
  const auto& [base, range] = *std::prev(next);
  if (address - base >= range.size) return std::nullopt;
  return KnownThing{range.thing, address - base, range.has_ended};
}

void KnownValues::end_range(uint64_t address) {
  const auto found = ranges_.find(address);
  if (found != ranges_.end()) found->second.has_ended = true;
}

}  // namespace understudy::command
