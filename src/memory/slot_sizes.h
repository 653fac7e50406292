// SPDX-License-Identifier: Apache-2.0
//
// The sizes that small allocations are given, in normal pages. A slab holds slots of one size.
#pragma once

#include <array>
#include <cstdint>

#include "base/sizes.h"

namespace understudy {

inline constexpr unsigned kPagesPerSlab = kGranule / kNormalPage;
inline constexpr unsigned kMaxSlotPages = kPagesPerSlab / 2;
inline constexpr uint64_t kMaxSlotBytes = kMaxSlotPages * kNormalPage;

// Small ones in steps of an eighth to a quarter; large ones are what 16, 15, ... 2 slots leave of a
// slab, so that nothing at its end is wasted.
inline constexpr std::array<uint16_t, 30> kSlotPages = {1,  2,  3,  4,  5,  6,  7,   8,   10,  12,
                                                        14, 16, 20, 24, 28, 32, 34,  36,  39,  42,
                                                        46, 51, 56, 64, 73, 85, 102, 128, 170, 256};
inline constexpr unsigned kSlotSizes = kSlotPages.size();
static_assert(kSlotPages.back() == kMaxSlotPages);

namespace slot_sizes_detail {
constexpr std::array<uint8_t, kMaxSlotPages + 1> smallest_fit() {
  std::array<uint8_t, kMaxSlotPages + 1> fit{};
  unsigned size = 0;
  for (unsigned pages = 1; pages <= kMaxSlotPages; ++pages) {
    if (pages > kSlotPages[size]) ++size;
    fit[pages] = static_cast<uint8_t>(size);
  }
  return fit;
}
inline constexpr auto kSmallestFit = smallest_fit();
}  // namespace slot_sizes_detail

// Which of the sizes is the smallest that holds `bytes`. REQUIRES: 0 < bytes <= kMaxSlotBytes.
constexpr unsigned slot_size_for(uint64_t bytes) {
  return slot_sizes_detail::kSmallestFit[(bytes + kNormalPage - 1) / kNormalPage];
}

}  // namespace understudy
