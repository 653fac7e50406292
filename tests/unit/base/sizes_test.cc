// SPDX-License-Identifier: Apache-2.0
#include "base/sizes.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace understudy {
namespace {

TEST(Sizes, AlignUpGoesToTheNextMultipleAndStaysOnOne) {
  EXPECT_EQ(align_up(0, kHugePage), 0u);
  EXPECT_EQ(align_up(1, kHugePage), kHugePage);
  EXPECT_EQ(align_up(kHugePage - 1, kHugePage), kHugePage);
  EXPECT_EQ(align_up(kHugePage, kHugePage), kHugePage);
  EXPECT_EQ(align_up(kHugePage + 1, kHugePage), 2 * kHugePage);
}

TEST(Sizes, AlignUpPastSixtyFourBitsIsNothing) {
  EXPECT_EQ(align_up(UINT64_MAX, 2), std::nullopt);
  EXPECT_EQ(align_up(UINT64_MAX, kGiB), std::nullopt);
  // One byte past the last multiple there is.
  EXPECT_EQ(align_up(UINT64_MAX - kNormalPage + 2, kNormalPage), std::nullopt);
}

TEST(Sizes, AlignUpReachesTheLastMultipleThereIs) {
  const uint64_t last = UINT64_MAX - kNormalPage + 1;
  EXPECT_EQ(align_up(last, kNormalPage), last);
  EXPECT_EQ(align_up(last - 1, kNormalPage), last);
  EXPECT_EQ(align_up(UINT64_MAX, 1), UINT64_MAX);
}

TEST(Sizes, AlignDownNeverGoesUp) {
  EXPECT_EQ(align_down(0, kGiB), 0u);
  EXPECT_EQ(align_down(kGiB - 1, kGiB), 0u);
  EXPECT_EQ(align_down(kGiB, kGiB), kGiB);
  EXPECT_EQ(align_down(UINT64_MAX, kGiB), UINT64_MAX - kGiB + 1);
}

TEST(Sizes, OnlyMultiplesAreAligned) {
  EXPECT_TRUE(is_aligned(0, kGranule));
  EXPECT_TRUE(is_aligned(3 * kGranule, kGranule));
  EXPECT_FALSE(is_aligned(kGranule - 1, kGranule));
  EXPECT_FALSE(is_aligned(kGranule / 2, kGranule));
}

TEST(Sizes, GranuleAndItsShiftAgree) { EXPECT_EQ(uint64_t{1} << kGranuleShift, kGranule); }

}  // namespace
}  // namespace understudy
