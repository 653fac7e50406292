// SPDX-License-Identifier: Apache-2.0
#include "memory/copy_method_selector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

namespace understudy {
namespace {

constexpr unsigned kWays = 3;
constexpr int kTrials = 3 * kWays;
constexpr int kRetry = 257;
constexpr size_t kBytes = 1024;

bool has_all(unsigned) { return true; }

class CopyMethodSelectorTest : public testing::Test {
 protected:
  // Takes a turn: what the chosen way costs is learnt.
  unsigned turn() {
    const unsigned way = selector_.choose(has_all);
    selector_.record_sample(way, costs_[way], kBytes);
    return way;
  }
  void take_turns(int count) {
    for (int i = 0; i < count; ++i) turn();
  }
  // What is used as a rule, past a turn that looks again.
  unsigned favourite() {
    std::array<int, kWays> chosen{};
    for (int i = 0; i < 5; ++i) ++chosen[turn()];
    return static_cast<unsigned>(std::max_element(chosen.begin(), chosen.end()) - chosen.begin());
  }

  CopyMethodSelector<kWays> selector_;
  std::array<uint64_t, kWays> costs_{300, 100, 200};
};

TEST_F(CopyMethodSelectorTest, TriesEachWayThreeTimes) {
  std::array<int, kWays> tried{};
  for (int i = 0; i < kTrials; ++i) ++tried[turn()];
  EXPECT_EQ(tried, (std::array<int, kWays>{3, 3, 3}));
}

TEST_F(CopyMethodSelectorTest, UsesTheCheapestThen) {
  take_turns(kTrials);
  for (int i = kTrials; i < kRetry; ++i) ASSERT_EQ(turn(), 1u);
}

TEST_F(CopyMethodSelectorTest, CostIsThatOfAByte) {
  for (int i = 0; i < kTrials; ++i) {
    const unsigned way = selector_.choose(has_all);
    selector_.record_sample(way, 100 * (way + 1), kBytes * (way == 2 ? 10 : 1));
  }
  EXPECT_EQ(selector_.choose(has_all), 2u);
}

TEST_F(CopyMethodSelectorTest, LooksAgainAtEachWayNowAndThen) {
  take_turns(kTrials);
  std::set<unsigned> seen;
  for (int i = 0; i < static_cast<int>(kWays) * kRetry; ++i) seen.insert(turn());
  EXPECT_EQ(seen.size(), kWays);
}

TEST_F(CopyMethodSelectorTest, LearnsThatAnotherWayHasBecomeCheaper) {
  take_turns(kTrials);
  ASSERT_EQ(favourite(), 1u);
  costs_ = {20, 100, 200};
  take_turns(60 * kRetry);
  EXPECT_EQ(favourite(), 0u);
}

TEST_F(CopyMethodSelectorTest, LearnsThatTheCheapestHasBecomeDear) {
  take_turns(kTrials);
  costs_[1] = 1000;
  take_turns(20);
  EXPECT_EQ(favourite(), 2u);
}

TEST_F(CopyMethodSelectorTest, OneVeryBadExperienceChangesNothing) {
  take_turns(kTrials + 1);
  selector_.record_sample(1, UINT32_MAX, kBytes);
  EXPECT_EQ(favourite(), 1u);
}

TEST_F(CopyMethodSelectorTest, FirstTouchOfPagesDoesNotCountInTheTrials) {
  for (int i = 0; i < kTrials; ++i) {
    const unsigned way = selector_.choose(has_all);
    selector_.record_sample(way, i < static_cast<int>(kWays) ? 100000 : costs_[way], kBytes);
  }
  EXPECT_EQ(favourite(), 1u);
}

TEST_F(CopyMethodSelectorTest, WayThatDoesNotExistIsNeverChosen) {
  for (int i = 0; i < 3 * kRetry; ++i) {
    const unsigned way = selector_.choose([](unsigned each) { return each != 1; });
    ASSERT_NE(way, 1u);
    selector_.record_sample(way, costs_[way], kBytes);
  }
}

TEST_F(CopyMethodSelectorTest, WithoutMeasuringAnyExistingWayWillDo) {
  for (int i = 0; i < 2 * kRetry; ++i) ASSERT_LT(selector_.choose(has_all), kWays);
  EXPECT_EQ(selector_.choose([](unsigned way) { return way == 0; }), 0u);
}

}  // namespace
}  // namespace understudy
