// SPDX-License-Identifier: Apache-2.0
#include "stream/seeded_order.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace understudy {
namespace {

SeededOrder order_of(uint64_t seed, std::vector<SlowStream> slow = {}) {
  return SeededOrder({.text = "", .seed = seed, .slow = std::move(slow)});
}

// Which of the streams is the heaviest at each of the turns.
std::vector<uint32_t> winners(const SeededOrder& order, uint32_t streams, uint64_t turns) {
  std::vector<uint32_t> chosen;
  for (uint64_t turn = 0; turn < turns; ++turn) {
    uint32_t best = 0;
    for (uint32_t stream = 1; stream < streams; ++stream) {
      if (order.weight(stream, turn) > order.weight(best, turn)) best = stream;
    }
    chosen.push_back(best);
  }
  return chosen;
}

TEST(SeededOrderTest, SeedAloneDecides) {
  EXPECT_EQ(winners(order_of(7), 4, 100), winners(order_of(7), 4, 100));
  std::set<std::vector<uint32_t>> orders;
  for (uint64_t seed = 0; seed < 100; ++seed) orders.insert(winners(order_of(seed), 4, 2000));
  EXPECT_EQ(orders.size(), 100U);
}

TEST(SeededOrderTest, SeedsInARowHaveStretchesOfDifferentLength) {
  const uint64_t lengths[] = {64, 1, 4, 16};
  for (uint64_t seed = 100; seed < 108; ++seed) {
    const SeededOrder order = order_of(seed);
    const uint64_t length = lengths[seed % 4];
    EXPECT_EQ(order.weight(0, 0), order.weight(0, length - 1)) << seed;
    EXPECT_NE(order.weight(0, length - 1), order.weight(0, length)) << seed;
  }
}

TEST(SeededOrderTest, EveryStreamIsChosenAboutAsOften) {
  constexpr uint64_t kTurns = 4000;
  std::vector<int> times(4);
  for (const uint32_t stream : winners(order_of(1), 4, kTurns)) ++times[stream];
  for (const int each : times) EXPECT_NEAR(each, 1000, 150);
}

TEST(SeededOrderTest, SlowStreamIsChosenLessOften) {
  constexpr uint64_t kTurns = 5000;
  std::vector<int> times(2);
  for (const uint32_t stream : winners(order_of(1, {{1, 4}}), 2, kTurns)) ++times[stream];
  EXPECT_NEAR(times[1], 1000, 150);  // one of five, where the other one has four
  EXPECT_EQ(winners(order_of(1, {{1, 1}}), 2, 100), winners(order_of(1), 2, 100));
  EXPECT_EQ(winners(order_of(1, {{9, 4}}), 2, 100), winners(order_of(1), 2, 100));
}

TEST(SeededOrderTest, EveryOtherQueryLetsATaskRun) {
  int running = 0;
  for (uint64_t query = 0; query < 1000; ++query) {
    running += order_of(3).lets_query_run(query) ? 1 : 0;
  }
  EXPECT_NEAR(running, 500, 80);
}

}  // namespace
}  // namespace understudy
