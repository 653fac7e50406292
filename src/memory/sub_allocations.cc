// SPDX-License-Identifier: Apache-2.0
#include "memory/sub_allocations.h"

#include <bit>

namespace understudy {

SubAllocations::SubAllocations(uint32_t pool, uint64_t granules)
    : pool_(pool),
      starts_(std::make_unique<std::atomic<uint64_t>[]>((granules + kWordBits - 1) / kWordBits)),
      counts_(std::make_unique<std::atomic<uint32_t>[]>(granules)) {}

void SubAllocations::add(uint64_t first, uint64_t count) {
  counts_[first].store(static_cast<uint32_t>(count), std::memory_order_relaxed);
  starts_[first / kWordBits].fetch_or(uint64_t{1} << first % kWordBits, std::memory_order_release);
}

void SubAllocations::remove(uint64_t first) {
  starts_[first / kWordBits].fetch_and(~(uint64_t{1} << first % kWordBits),
                                       std::memory_order_release);
}

std::optional<SubAllocations::Part> SubAllocations::around(uint64_t granule) const {
  uint64_t word = granule / kWordBits;
  // Starts up to the granule, then those of the words before.
  uint64_t mask = ~uint64_t{0} >> (kWordBits - 1 - granule % kWordBits);
  while (true) {
    const uint64_t starts = starts_[word].load(std::memory_order_acquire) & mask;
    if (starts != 0) {
      const uint64_t first =
          word * kWordBits + kWordBits - 1 - static_cast<uint64_t>(std::countl_zero(starts));
      const uint64_t count = counts_[first].load(std::memory_order_relaxed);
      if (granule - first >= count) return std::nullopt;
      return Part{first, count};
    }
    if (word == 0) return std::nullopt;
    --word;
    mask = ~uint64_t{0};
  }
}

}  // namespace understudy
