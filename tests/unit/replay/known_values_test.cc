// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/known_values.h"

#include <gtest/gtest.h>

namespace understudy::command {
namespace {

TEST(KnownValues, AnAddressInsideMeansItsRange) {
  KnownValues known;
  known.add_range(0x1000, 0x100, 1);
  known.add_range(0x2000, 0x100, 2);
  const auto found = known.find_address(0x2010);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->thing, 2U);
  EXPECT_EQ(found->offset, 0x10U);
  EXPECT_FALSE(known.find_address(0x1100));
  EXPECT_FALSE(known.find_address(0xfff));
}

TEST(KnownValues, WhatEndedIsKnownUntilItsPlaceIsTaken) {
  KnownValues known;
  known.add_range(0x1000, 0x1000, 1);
  known.end_range(0x1000);
  ASSERT_TRUE(known.find_address(0x1800));
  EXPECT_TRUE(known.find_address(0x1800)->has_ended);
  known.add_range(0x1400, 0x10, 2);
  EXPECT_EQ(known.find_address(0x1408)->thing, 2U);
  EXPECT_FALSE(known.find_address(0x1800));
}

TEST(KnownValues, AWrongAddressBelongsToTheRangeBeforeIt) {
  KnownValues known;
  known.add_range(0x1000, 0x100, 1);
  ASSERT_TRUE(known.find_near(0x1100));
  EXPECT_EQ(known.find_near(0x1100)->offset, 0x100U);
  EXPECT_FALSE(known.find_near(0x1100 + (uint64_t{1} << 20)));
  EXPECT_FALSE(known.find_near(0xfff));
}

TEST(KnownValues, RangesMayReachTheEndOfAllAddresses) {
  KnownValues known;
  known.add_range(UINT64_MAX - 1, UINT64_MAX, 1);
  EXPECT_TRUE(known.find_address(UINT64_MAX - 1));
  known.add_range(UINT64_MAX, 5, 2);
  known.add_range(0, UINT64_MAX, 3);
  EXPECT_EQ(known.find_address(12)->thing, 3U);
}

TEST(KnownValues, KindsOfHandlesAreApart) {
  KnownValues known;
  known.add_handle('s', 5, 1);
  known.add_handle('e', 5, 2);
  known.add_handle('e', 5, 3);
  EXPECT_EQ(known.find_handle('s', 5), 1U);
  EXPECT_EQ(known.find_handle('e', 5), 3U);
  EXPECT_FALSE(known.find_handle('n', 5));
}

}  // namespace
}  // namespace understudy::command
