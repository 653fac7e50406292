// SPDX-License-Identifier: Apache-2.0
//
// What a program describes once, in device memory, and has done any number of times. The bytes are
// the program's to overwrite: the reader of a description checks its mark, and the addresses in it
// like those of any caller.
#pragma once

#include <cstdint>

#include "base/sizes.h"
#include "base/virtual_range.h"

namespace understudy {

// The most that one described copy, or one with offsets, moves (DESC-04, DESC-10).
inline constexpr uint64_t kMostDescribedBytes = 4 * kGiB;
// Where a description may begin.
inline constexpr uint64_t kDescriptionAlignment = 64;

struct CopyDescription {
  static constexpr uint64_t kMark = 0x6e6f697470797043;
  uint64_t mark = kMark;
  VirtualAddress to = 0;
  VirtualAddress from = 0;
  uint64_t count = 0;
};
static_assert(sizeof(CopyDescription) == 32);  // DESC-02

// Memory that a cache operation is about.
struct RangeDescription {
  static constexpr uint64_t kMark = 0x6e6f697470676e52;
  uint64_t mark = kMark;
  VirtualAddress base = 0;
  uint64_t size = 0;
};

}  // namespace understudy
