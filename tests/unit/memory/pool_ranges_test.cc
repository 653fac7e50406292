// SPDX-License-Identifier: Apache-2.0
#include "memory/pool_ranges.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace understudy {
namespace {

constexpr uint64_t kOne = 100;  // owners
constexpr uint64_t kOther = 200;
constexpr VirtualAddress kBase = 64 * kGranule;

class PoolRangesTest : public testing::Test {
 protected:
  PoolRangesTest() {
    segment_.range = {kBase, 16 * kGranule};
    ranges_.add_segment(segment_);
  }
  ~PoolRangesTest() override { EXPECT_TRUE(ranges_.is_consistent()); }

  static VirtualAddress at(uint64_t granule) { return kBase + granule * kGranule; }
  VirtualAddress grow(uint64_t granules) {
    const auto bare = ranges_.best_bare(granules * kGranule);
    EXPECT_TRUE(bare);
    ranges_.prepare_cut();
    ranges_.begin_growth(bare->range.base, granules * kGranule);
    ranges_.finish_growth(bare->range.base);
    return bare->range.base;
  }
  void use(VirtualAddress base, uint64_t granules) {
    ranges_.prepare_cut();
    ranges_.use(base, granules * kGranule);
  }
  void expect_range(VirtualAddress base, uint64_t granules, RangeUse use) {
    const auto found = ranges_.at(base);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->range.size, granules * kGranule);
    EXPECT_EQ(found->use, use);
  }

  PoolSegment segment_;
  PoolRanges ranges_;
};

TEST_F(PoolRangesTest, ASegmentIsBareAtFirst) {
  expect_range(kBase, 16, RangeUse::kBare);
  EXPECT_EQ(ranges_.backed_bytes(), 0u);
  EXPECT_FALSE(ranges_.best_fit(FreeMark::kAnyone, 1));
  EXPECT_FALSE(ranges_.first_owner());
  EXPECT_FALSE(ranges_.best_bare(17 * kGranule));
}

TEST_F(PoolRangesTest, GrowthTakesAPartOfTheBareRange) {
  const VirtualAddress first = grow(3);
  EXPECT_EQ(first, kBase);
  expect_range(at(3), 13, RangeUse::kBare);
  EXPECT_EQ(ranges_.used_bytes(), 3 * kGranule);
  ranges_.prepare_cut();
  ranges_.begin_growth(at(3), kGranule);
  EXPECT_EQ(ranges_.moving_bytes(), kGranule);
  ranges_.make_bare(at(3));
  expect_range(at(3), 13, RangeUse::kBare);
}

TEST_F(PoolRangesTest, BestFitIsTheSmallestThatIsLargeEnough) {
  const VirtualAddress large = grow(5);
  grow(1);
  const VirtualAddress small = grow(2);
  grow(1);
  const VirtualAddress middle = grow(3);
  for (const VirtualAddress base : {large, small, middle}) ranges_.free(base, {kOne, 7});
  EXPECT_EQ(ranges_.best_fit(kOne, kGranule)->range.base, small);
  EXPECT_EQ(ranges_.best_fit(kOne, 3 * kGranule)->range.base, middle);
  EXPECT_EQ(ranges_.best_fit(kOne, 4 * kGranule)->range.base, large);
  EXPECT_FALSE(ranges_.best_fit(kOne, 6 * kGranule));
  EXPECT_FALSE(ranges_.best_fit(kOther, kGranule));
}

TEST_F(PoolRangesTest, WhatIsLeftOfARangeKeepsItsMark) {
  ranges_.free(grow(4), {kOne, 7});
  use(kBase, 1);
  const auto rest = ranges_.best_fit(kOne, kGranule);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->range, (VirtualRange{at(1), 3 * kGranule}));
  EXPECT_EQ(rest->mark.position, 7u);
}

TEST_F(PoolRangesTest, NeighboursOfOneOwnerMergeAndTakeTheLaterPosition) {
  for (int i = 0; i < 3; ++i) grow(1);
  ranges_.free(at(0), {kOne, 5});
  ranges_.free(at(2), {kOne, 6});
  ranges_.free(at(1), {kOne, 9});
  const auto merged = ranges_.best_fit(kOne, 3 * kGranule);
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->mark.position, 9u);
  EXPECT_FALSE(ranges_.best_fit_until(kOne, kGranule, 8));
  EXPECT_TRUE(ranges_.best_fit_until(kOne, kGranule, 9));
}

TEST_F(PoolRangesTest, NeighboursOfDifferentOwnersStayApart) {
  grow(1);
  grow(1);
  ranges_.free(at(0), {kOne, 1});
  ranges_.free(at(1), {kOther, 1});
  EXPECT_FALSE(ranges_.best_fit(kOne, 2 * kGranule));
  EXPECT_EQ(ranges_.first_owner(), kOne);
  EXPECT_EQ(ranges_.owner_after(kOne), kOther);
  EXPECT_FALSE(ranges_.owner_after(kOther));
  // Anyone's are one range again.
  ranges_.release_to_anyone(at(0));
  ranges_.release_to_anyone(at(1));
  EXPECT_TRUE(ranges_.best_fit(FreeMark::kAnyone, 2 * kGranule));
}

TEST_F(PoolRangesTest, TheOldestOfAnOwnerComesFirst) {
  for (int i = 0; i < 5; ++i) grow(1);
  ranges_.free(at(4), {kOne, 3});
  ranges_.free(at(0), {kOne, 4});
  ranges_.free(at(2), {kOther, 1});
  EXPECT_EQ(ranges_.oldest(kOne)->range.base, at(4));
  EXPECT_EQ(ranges_.oldest(kOther)->range.base, at(2));
  EXPECT_FALSE(ranges_.oldest(FreeMark::kAnyone));
}

TEST_F(PoolRangesTest, RangesOfDifferentSegmentsNeverMerge) {
  PoolSegment next;
  next.range = {segment_.range.end(), 4 * kGranule};  // right behind
  ranges_.add_segment(next);
  ranges_.free(grow(4), {});  // the smaller bare range: all of the new segment
  ranges_.free(grow(16), {});
  EXPECT_EQ(ranges_.best_fit(FreeMark::kAnyone, 5 * kGranule)->range.size, 16 * kGranule);
  EXPECT_FALSE(ranges_.best_fit(FreeMark::kAnyone, 17 * kGranule));
  ranges_.remove_segment(next);
  EXPECT_EQ(ranges_.free_bytes(), 16 * kGranule);
}

TEST_F(PoolRangesTest, ARangeIsAloneIfNothingElseHasMemory) {
  grow(1);
  ranges_.free(grow(2), {});
  grow(1);
  EXPECT_FALSE(ranges_.is_alone(at(1)));
  for (const uint64_t granule : {uint64_t{0}, uint64_t{3}}) {
    ranges_.free(at(granule), {kOne, 1});
    ranges_.begin_release(at(granule), kGranule);
    EXPECT_FALSE(ranges_.is_alone(at(1)));
    ranges_.make_bare(at(granule));
  }
  EXPECT_TRUE(ranges_.is_alone(at(1)));
  ranges_.remove_segment(segment_);
  EXPECT_EQ(ranges_.backed_bytes(), 0u);
  EXPECT_FALSE(ranges_.at(kBase));
}

TEST_F(PoolRangesTest, AReleaseThatIsCancelledIsFreeForAnyone) {
  ranges_.free(grow(4), {kOne, 3});
  ranges_.prepare_cut();
  ranges_.begin_release(kBase, kGranule);
  EXPECT_EQ(ranges_.moving_bytes(), kGranule);
  EXPECT_EQ(ranges_.backed_bytes(), 4 * kGranule);
  ranges_.cancel_release(kBase);
  EXPECT_EQ(ranges_.oldest(FreeMark::kAnyone)->range.base, kBase);
  EXPECT_EQ(ranges_.free_bytes(), 4 * kGranule);
}

TEST_F(PoolRangesTest, UsedRangesAreFoundInOrder) {
  grow(1);
  grow(1);
  grow(1);
  ranges_.free(at(1), {});
  EXPECT_EQ(ranges_.used_from(0)->range.base, at(0));
  EXPECT_EQ(ranges_.used_from(at(1))->range.base, at(2));
  EXPECT_FALSE(ranges_.used_from(at(3)));
}

// Random changes, next to a list of granules.
TEST(PoolRangesModel, AgreesWithAListOfGranules) {
  constexpr uint64_t kGranules = 64;
  PoolSegment segment;
  segment.range = {kBase, kGranules * kGranule};
  PoolRanges ranges;
  ranges.add_segment(segment);
  std::mt19937_64 random(7);
  std::map<VirtualAddress, uint64_t> live;
  uint64_t position = 0;
  for (int step = 0; step < 20'000; ++step) {
    const uint64_t size = (1 + random() % 8) * kGranule;
    const uint64_t owner = random() % 3 * 100;
    ranges.prepare_cut();
    if (random() % 2 == 0) {
      if (const auto fit = ranges.best_fit(owner, size)) {
        ranges.use(fit->range.base, size);
        live[fit->range.base] = size;
      } else if (const auto bare = ranges.best_bare(size)) {
        ranges.begin_growth(bare->range.base, size);
        ranges.finish_growth(bare->range.base);
        live[bare->range.base] = size;
      }
    } else if (!live.empty()) {
      const auto found = std::next(live.begin(), static_cast<ptrdiff_t>(random() % live.size()));
      ranges.free(found->first, {owner, owner == 0 ? 0 : ++position});
      live.erase(found);
    }
    if (const auto oldest = ranges.oldest(owner); oldest && random() % 8 == 0) {
      ranges.prepare_cut();
      ranges.begin_release(oldest->range.base, kGranule);
      ranges.make_bare(oldest->range.base);
    }
    uint64_t used = 0;
    VirtualAddress end = 0;
    for (const auto& [base, bytes] : live) {
      ASSERT_GE(base, end);
      end = base + bytes;
      used += bytes;
    }
    ASSERT_EQ(ranges.used_bytes(), used);
    ASSERT_TRUE(ranges.is_consistent()) << "step " << step;
  }
}

}  // namespace
}  // namespace understudy
