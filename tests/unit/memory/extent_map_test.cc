// SPDX-License-Identifier: Apache-2.0
#include "memory/extent_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/sizes.h"

namespace understudy {
namespace {

using Parts = std::vector<std::pair<uint64_t, uint64_t>>;

Parts parts_of(ExtentMap& map) {
  Parts parts;
  map.for_each([&](uint64_t offset, uint64_t size) { parts.emplace_back(offset, size); });
  std::sort(parts.begin(), parts.end());
  return parts;
}

TEST(ExtentMap, BeginsAsOneFreePart) {
  ExtentMap map(100, 1);
  EXPECT_EQ(parts_of(map), (Parts{{0, 100}}));
  EXPECT_EQ(map.free_bytes(), 100u);
}

TEST(ExtentMap, TakesFromTheFrontUntilNothingIsLeft) {
  ExtentMap map(100, 1);
  EXPECT_EQ(map.take(60, 1), 0u);
  EXPECT_EQ(map.take(60, 1), std::nullopt);
  EXPECT_EQ(map.take(40, 1), 60u);
  EXPECT_EQ(map.free_bytes(), 0u);
  EXPECT_EQ(map.take(1, 1), std::nullopt);
  EXPECT_EQ(parts_of(map), Parts{});
}

TEST(ExtentMap, TakesTheSmallestPartThatFits) {
  ExtentMap map(100, 1);
  ASSERT_EQ(map.take(100, 1), 0u);
  map.give_back(0, 30);
  map.give_back(40, 10);
  map.give_back(60, 20);
  EXPECT_EQ(map.take(10, 1), 40u);
  EXPECT_EQ(map.take(15, 1), 60u);
  EXPECT_EQ(map.take(25, 1), 0u);
}

TEST(ExtentMap, NeighboursMergeWhateverTheOrderTheyComeBackIn) {
  const std::vector<std::vector<uint64_t>> orders = {{0, 10, 20}, {20, 10, 0}, {0, 20, 10},
                                                     {20, 0, 10}, {10, 0, 20}, {10, 20, 0}};
  for (const std::vector<uint64_t>& order : orders) {
    ExtentMap map(30, 1);
    ASSERT_EQ(map.take(30, 1), 0u);
    for (const uint64_t offset : order) map.give_back(offset, 10);
    EXPECT_EQ(parts_of(map), (Parts{{0, 30}}));
    EXPECT_EQ(map.free_bytes(), 30u);
  }
}

TEST(ExtentMap, PartsThatDoNotTouchStayApart) {
  ExtentMap map(30, 1);
  ASSERT_EQ(map.take(30, 1), 0u);
  map.give_back(0, 9);
  map.give_back(11, 19);
  EXPECT_EQ(parts_of(map), (Parts{{0, 9}, {11, 19}}));
}

TEST(ExtentMap, AlignmentLeavesTheSkippedBytesFree) {
  ExtentMap map(100, 1);
  ASSERT_EQ(map.take(3, 1), 0u);
  EXPECT_EQ(map.take(16, 16), 16u);
  EXPECT_EQ(parts_of(map), (Parts{{3, 13}, {32, 68}}));
}

TEST(ExtentMap, PartThatFitsOnlyUnalignedIsPassedOver) {
  ExtentMap map(128, 1);
  ASSERT_EQ(map.take(128, 1), 0u);
  map.give_back(8, 20);   // large enough, but not from a multiple of 16 on
  map.give_back(50, 40);  // 64 fits
  EXPECT_EQ(map.take(16, 16), 64u);
  EXPECT_EQ(map.take(16, 16), std::nullopt);
  EXPECT_EQ(map.take(20, 1), 8u);
}

TEST(ExtentMap, NothingIsLargerThanTheWhole) {
  ExtentMap map(100, 1);
  EXPECT_EQ(map.take(101, 1), std::nullopt);
  EXPECT_EQ(map.take(UINT64_MAX, 1), std::nullopt);
  EXPECT_EQ(map.free_bytes(), 100u);
}

TEST(ExtentMap, CountsInUnits) {
  ExtentMap map(16 * kMiB, kHugePage);
  EXPECT_EQ(map.take(4 * kMiB, kHugePage), 0u);
  EXPECT_EQ(map.take(2 * kMiB, 8 * kMiB), 8 * kMiB);
  EXPECT_EQ(parts_of(map), (Parts{{4 * kMiB, 4 * kMiB}, {10 * kMiB, 6 * kMiB}}));
  EXPECT_EQ(map.free_bytes(), 10 * kMiB);
}

TEST(ExtentMap, ShrinksWhileEverythingIsFree) {
  ExtentMap map(100, 1);
  map.shrink(70);
  EXPECT_EQ(parts_of(map), (Parts{{0, 70}}));
  EXPECT_EQ(map.take(70, 1), 0u);
  EXPECT_EQ(map.take(1, 1), std::nullopt);
}

// A list of one bin has parts of several sizes; those behind the first few are found, too.
TEST(ExtentMap, FindsTheOneLargePartAmongManyOfItsBin) {
  ExtentMap map(100 * 140, 1);
  ASSERT_EQ(map.take(100 * 140, 1), 0u);
  map.give_back(0, 131);
  for (uint64_t i = 1; i < 100; ++i) map.give_back(i * 140, 128);
  EXPECT_EQ(map.take(131, 1), 0u);
  EXPECT_EQ(map.take(129, 1), std::nullopt);
}

// More pieces than are put aside, in an order in which hardly any finds a neighbour.
TEST(ExtentMap, ManyPiecesInAnyOrderAreOnePartAtTheEnd) {
  constexpr uint64_t kPieces = 1000;
  ExtentMap map(3 * kPieces, 1);
  ASSERT_EQ(map.take(3 * kPieces, 1), 0u);
  for (uint64_t i = 0; i < kPieces; ++i) map.give_back(i * 377 % kPieces * 3, 3);
  EXPECT_EQ(map.free_bytes(), 3 * kPieces);
  EXPECT_EQ(map.take(3 * kPieces, 1), 0u);
}

TEST(ExtentMap, RequestThatFitsOnlyWhatIsMergedSucceeds) {
  ExtentMap map(4, 1);
  ASSERT_EQ(map.take(4, 1), 0u);
  map.give_back(2, 1);
  map.give_back(0, 1);
  map.give_back(1, 1);
  EXPECT_EQ(map.take(3, 1), 0u);
}

TEST(ExtentMap, ExactPlaceIsCutOutOfThePartAroundIt) {
  ExtentMap map(1000, 1);
  map.take_at(400, 100);
  EXPECT_EQ(parts_of(map), (Parts{{0, 400}, {500, 500}}));
  map.take_at(500, 10);
  map.take_at(390, 10);
  EXPECT_EQ(parts_of(map), (Parts{{0, 390}, {510, 490}}));
  map.take_at(0, 390);
  map.take_at(990, 10);
  EXPECT_EQ(parts_of(map), (Parts{{510, 480}}));
  map.give_back(0, 510);
  map.give_back(990, 10);
  EXPECT_EQ(parts_of(map), (Parts{{0, 1000}}));
}

class ExtentMapModel : public testing::TestWithParam<uint64_t> {};

// A bitmap of units is always right.
TEST_P(ExtentMapModel, AgreesWithABitmap) {
  constexpr uint64_t kUnits = 1024;
  ExtentMap map(kUnits, 1);
  std::vector<bool> taken(kUnits, false);
  Parts held;
  std::mt19937_64 random(4711);

  const auto longest_free = [&](uint64_t alignment) {
    uint64_t longest = 0;
    for (uint64_t at = 0; at < kUnits; at += alignment) {
      uint64_t end = at;
      while (end < kUnits && !taken[end]) ++end;
      longest = std::max(longest, end - at);
    }
    return longest;
  };
  for (int step = 0; step < 5000; ++step) {
    if (random() % 8 == 0) {
      const uint64_t place = random() % kUnits;
      uint64_t size = 0;
      while (place + size < kUnits && size < GetParam() && !taken[place + size]) ++size;
      if (size == 0) continue;
      map.take_at(place, size);
      std::fill_n(taken.begin() + static_cast<std::ptrdiff_t>(place), size, true);
      held.emplace_back(place, size);
    } else if (held.empty() || random() % 5 < 3) {
      const uint64_t size = 1 + random() % GetParam();
      const uint64_t alignment = uint64_t{1} << random() % 5;
      const std::optional<uint64_t> offset = map.take(size, alignment);
      ASSERT_EQ(offset.has_value(), longest_free(alignment) >= size);
      if (!offset) continue;
      ASSERT_EQ(*offset % alignment, 0u);
      ASSERT_LE(*offset + size, kUnits);
      for (uint64_t at = *offset; at < *offset + size; ++at) {
        ASSERT_FALSE(taken[at]);
        taken[at] = true;
      }
      held.emplace_back(*offset, size);
    } else {
      const size_t victim = random() % held.size();
      std::swap(held[victim], held.back());
      const auto [offset, size] = held.back();
      held.pop_back();
      map.give_back(offset, size);
      for (uint64_t at = offset; at < offset + size; ++at) taken[at] = false;
    }
    ASSERT_EQ(map.free_bytes(),
              static_cast<uint64_t>(std::count(taken.begin(), taken.end(), false)));
    // Seldom, because a look merges what was put aside.
    if (step % 50 != 49) continue;
    // The free parts are exactly the runs of the bitmap: none is missing, split or in two places.
    Parts expected;
    for (uint64_t at = 0; at < kUnits; ++at) {
      if (taken[at]) continue;
      if (at == 0 || taken[at - 1]) expected.emplace_back(at, 0);
      ++expected.back().second;
    }
    ASSERT_EQ(parts_of(map), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ExtentMapModel, testing::Values(24, 200));

}  // namespace
}  // namespace understudy
