// SPDX-License-Identifier: Apache-2.0
#include "memory/kept_granules.h"

#include <algorithm>
#include <bit>

namespace understudy {

uint64_t KeptGranules::remove(uint64_t offset, uint64_t size) noexcept {
  if (bytes_ == 0) return 0;
  uint64_t removed = 0;
  const uint64_t end = std::min(offset + size, end_) / kGranule;
  for (uint64_t at = offset / kGranule; at < end;) {
    const uint64_t count = std::min(kBits - at % kBits, end - at);
    const uint64_t mask = ~uint64_t{0} >> (kBits - count) << at % kBits;
    uint64_t& word = word_of(at);
    if ((word & mask) != 0) {
      removed += static_cast<uint64_t>(std::popcount(word & mask));
      word &= ~mask;
    }
    at += count;
  }
  bytes_ -= removed * kGranule;
  return removed * kGranule;
}

std::optional<KeptGranules::Run> KeptGranules::next(uint64_t from, uint64_t most) const {
  const uint64_t end = end_ / kGranule;
  const uint64_t first = find(true, from / kGranule, end);
  if (first >= end) return std::nullopt;
  const uint64_t behind = find(false, first, std::min(end, first + most / kGranule));
  return Run{first * kGranule, (behind - first) * kGranule};
}

uint64_t KeptGranules::find(bool in, uint64_t granule, uint64_t end) const {
  while (granule < end) {
    const uint64_t word = (*words_)[granule / kBits];
    const uint64_t wanted = (in ? word : ~word) >> granule % kBits;
    if (wanted != 0)
      return std::min(granule + static_cast<uint64_t>(std::countr_zero(wanted)), end);
    granule = align_down(granule, kBits) + kBits;
  }
  return end;
}

}  // namespace understudy
