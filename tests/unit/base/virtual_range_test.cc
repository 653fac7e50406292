// SPDX-License-Identifier: Apache-2.0
#include "base/virtual_range.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace understudy {
namespace {

constexpr uint64_t kLast = UINT64_MAX;
constexpr VirtualRange kRange{0x1000, 0x1000};

TEST(VirtualRange, RangeThatWrapsAroundTheEndOfAllAddressesIsNone) {
  EXPECT_FALSE(VirtualRange::make(kLast, 2));
  EXPECT_FALSE(VirtualRange::make(2, kLast));
  EXPECT_FALSE(VirtualRange::make(kLast, kLast));
  // The end itself must be a number, too.
  EXPECT_FALSE(VirtualRange::make(kLast, 1));
}

TEST(VirtualRange, RangeUpToTheLastNumberIsMade) {
  EXPECT_EQ(VirtualRange::make(0, kLast), (VirtualRange{0, kLast}));
  EXPECT_EQ(VirtualRange::make(kLast - 1, 1)->end(), kLast);
  EXPECT_EQ(VirtualRange::make(kLast, 0), (VirtualRange{kLast, 0}));
}

TEST(VirtualRange, IsHalfOpen) {
  EXPECT_FALSE(kRange.contains(0xFFF));
  EXPECT_TRUE(kRange.contains(0x1000));
  EXPECT_TRUE(kRange.contains(0x1FFF));
  EXPECT_FALSE(kRange.contains(0x2000));
  EXPECT_FALSE((VirtualRange{0x1000, 0}).contains(0x1000));
}

TEST(VirtualRange, ContainsItselfAndItsPartsAndNothingLarger) {
  EXPECT_TRUE(kRange.contains(kRange));
  EXPECT_TRUE(kRange.contains(VirtualRange{0x1000, 1}));
  EXPECT_TRUE(kRange.contains(VirtualRange{0x1FFF, 1}));
  EXPECT_FALSE(kRange.contains(VirtualRange{0xFFF, 2}));
  EXPECT_FALSE(kRange.contains(VirtualRange{0x1FFF, 2}));
  EXPECT_FALSE(kRange.contains(VirtualRange{0xFFF, 0x1002}));
}

TEST(VirtualRange, ContainsEmptyRangesFromItsStartToItsEnd) {
  EXPECT_TRUE(kRange.contains(VirtualRange{0x1000, 0}));
  EXPECT_TRUE(kRange.contains(VirtualRange{0x2000, 0}));
  EXPECT_FALSE(kRange.contains(VirtualRange{0x2001, 0}));
  EXPECT_FALSE(kRange.contains(VirtualRange{0xFFF, 0}));
}

TEST(VirtualRange, ContainsIsNotFooledByARangeThatWouldWrap) {
  EXPECT_FALSE(kRange.contains(VirtualRange{0x1800, kLast}));
  EXPECT_FALSE(kRange.contains(VirtualRange{0x1800, kLast - 0x7FF}));
}

TEST(VirtualRange, NeighboursDoNotOverlap) {
  const VirtualRange before{0, 0x1000};
  const VirtualRange behind{0x2000, 0x1000};
  EXPECT_FALSE(kRange.overlaps(before));
  EXPECT_FALSE(before.overlaps(kRange));
  EXPECT_FALSE(kRange.overlaps(behind));
  EXPECT_FALSE(behind.overlaps(kRange));
}

TEST(VirtualRange, OneSharedByteIsAnOverlapEitherWayRound) {
  for (const VirtualRange other : {VirtualRange{0, 0x1001}, VirtualRange{0x1FFF, 1},
                                   VirtualRange{0x1800, 1}, VirtualRange{0, 0x8000}, kRange}) {
    EXPECT_TRUE(kRange.overlaps(other)) << std::hex << other.base;
    EXPECT_TRUE(other.overlaps(kRange)) << std::hex << other.base;
  }
}

TEST(VirtualRange, EmptyRangesOverlapNothing) {
  const VirtualRange empty{0x1800, 0};
  EXPECT_FALSE(kRange.overlaps(empty));
  EXPECT_FALSE(empty.overlaps(kRange));
  EXPECT_FALSE(empty.overlaps(empty));
}

TEST(VirtualRange, AddressesSurviveTheWayThroughAPointer) {
  const int something = 0;
  EXPECT_EQ(to_pointer(to_address(&something)), &something);
  EXPECT_EQ(to_address(nullptr), 0u);
}

}  // namespace
}  // namespace understudy
