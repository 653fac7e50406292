// SPDX-License-Identifier: Apache-2.0
//
// Byte counts and the arithmetic on them. Every rounding that can overflow says so in its type:
// a size comes from a caller, and SIZE_MAX is a size.
#pragma once

#include <cstdint>
#include <optional>

namespace understudy {

inline constexpr uint64_t kKiB = uint64_t{1} << 10;
inline constexpr uint64_t kMiB = uint64_t{1} << 20;
inline constexpr uint64_t kGiB = uint64_t{1} << 30;
inline constexpr uint64_t kTiB = uint64_t{1} << 40;

// The three page sizes a device knows.
inline constexpr uint64_t kNormalPage = 4 * kKiB;
inline constexpr uint64_t kHugePage = 2 * kMiB;
inline constexpr uint64_t kGiantPage = kGiB;

// A granule is the unit in which memory is mapped, stored and committed.
inline constexpr uint64_t kGranule = kHugePage;
inline constexpr unsigned kGranuleShift = 21;

// REQUIRES: unit is a power of two.
constexpr bool is_aligned(uint64_t value, uint64_t unit) { return (value & (unit - 1)) == 0; }
constexpr uint64_t align_down(uint64_t value, uint64_t unit) { return value & ~(unit - 1); }

// Nothing if the rounded value does not fit 64 bits.
constexpr std::optional<uint64_t> align_up(uint64_t value, uint64_t unit) {
  uint64_t raised = 0;
  if (__builtin_add_overflow(value, unit - 1, &raised)) return std::nullopt;
  return align_down(raised, unit);
}

// Pages of 4 KiB that hold so many bytes.
constexpr uint64_t normal_pages_of(uint64_t bytes) {
  return bytes / kNormalPage + (bytes % kNormalPage != 0 ? 1 : 0);
}

// Never below 0: for figures that other threads change between two looks.
constexpr uint64_t subtract_to_zero(uint64_t value, uint64_t by) {
  return value > by ? value - by : 0;
}

}  // namespace understudy
