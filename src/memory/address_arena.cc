// SPDX-License-Identifier: Apache-2.0
#include "memory/address_arena.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "platform/host_facts.h"

namespace understudy {

namespace {

// Most programs need one. Where the address space is limited, it is not ours to fill.
uint64_t part_size() {
  constexpr uint64_t kUsual = 64 * kGiB;
  return std::clamp(align_down(platform::address_space_limit() / 16, kGiB), kGiB, kUsual);
}

}  // namespace

Result<Arena> AddressArena::take(uint64_t size, uint64_t alignment) {
  if (const auto found = take_from_parts(size, alignment)) return *found;
  MutexLock growth(growth_mutex_);
  // Another thread may have been here first.
  if (const auto found = take_from_parts(size, alignment)) return *found;
  {
    MutexLock lock(mutex_);
    parts_.reserve(parts_.size() + 1);
  }
  const std::optional<uint64_t> least = align_up(size, kGiB);
  if (!least || *least > PageTable::kEnd) return reservations_.add_arena(part_size(), size, hold_);
  // Before there is an arena, which cannot be taken back: what needs memory.
  Part part{{}, ExtentMap(std::max(part_size(), *least), kGranule)};
  US_TRY_ASSIGN(part.arena, reservations_.add_arena(part_size(), size, hold_));
  part.free.shrink(part.arena.range.size);
  // Arenas start at multiples of 1 GiB and no alignment is larger.
  (void)part.free.take(size, alignment);
  const Arena taken{{part.arena.range.base, size}, part.arena.reservation};
  MutexLock lock(mutex_);
  parts_.push_back(std::move(part));
  return taken;
}

std::optional<Arena> AddressArena::take_from_parts(uint64_t size, uint64_t alignment) {
  MutexLock lock(mutex_);
  for (Part& part : parts_) {
    if (const auto offset = part.free.take(size, alignment)) {
      return Arena{{part.arena.range.base + *offset, size}, part.arena.reservation};
    }
  }
  return std::nullopt;
}

std::optional<VirtualRange> AddressArena::range_at(size_t n) const {
  MutexLock lock(mutex_);
  if (n >= parts_.size()) return std::nullopt;
  return parts_[n].arena.range;
}

void AddressArena::give_back(VirtualRange range) noexcept {
  MutexLock lock(mutex_);
  for (Part& part : parts_) {
    if (!part.arena.range.contains(range.base)) continue;
    part.free.give_back(range.base - part.arena.range.base, range.size);
    return;
  }
}

}  // namespace understudy
