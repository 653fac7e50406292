// SPDX-License-Identifier: Apache-2.0
#include "memory/advice_map.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace understudy {
namespace {

void prefer(AdviceMap& map, uint64_t begin, uint64_t end, int32_t device) {
  map.apply(begin, end, {}, [&](UsageAdvice& advice) {
    advice.preferred = {AdvisedLocation::Kind::kDevice, device};
  });
}

TEST(AdviceMap, WhatWasSaidAboutAPartIsKnownOfThatPart) {
  AdviceMap map(8);
  EXPECT_EQ(map.common(0, 8), UsageAdvice{});
  prefer(map, 2, 5, 3);
  EXPECT_EQ(map.count_runs(), 3u);
  EXPECT_EQ(map.common(2, 5).preferred.id, 3);
  EXPECT_EQ(map.common(1, 3).preferred, AdvisedLocation{});
  EXPECT_EQ(map.common(5, 8), UsageAdvice{});
}

TEST(AdviceMap, EqualNeighborsAreOneRun) {
  AdviceMap map(8);
  for (uint64_t i = 0; i < 8; ++i) prefer(map, i, i + 1, 1);
  EXPECT_EQ(map.count_runs(), 1u);
  prefer(map, 7, 8, 2);
  prefer(map, 0, 1, 2);
  EXPECT_EQ(map.count_runs(), 3u);
  prefer(map, 1, 7, 2);
  EXPECT_EQ(map.count_runs(), 1u);
}

TEST(AdviceMap, RandomAdviceIsThatOfAPlainArray) {
  constexpr uint64_t kGranules = 40;
  std::mt19937 random(7);
  AdviceMap map(kGranules);
  std::vector<UsageAdvice> expected(kGranules);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t begin = random() % kGranules;
    const uint64_t end = begin + 1 + random() % (kGranules - begin);
    const uint32_t what = random() % 4;
    const auto device = static_cast<int32_t>(random() % 3);
    const auto change = [&](UsageAdvice& advice) {
      if (what == 0) advice.read_mostly = device != 0;
      if (what == 1) advice.accessed_by_devices ^= 1U << device;
      if (what == 2) advice.preferred = {AdvisedLocation::Kind::kDevice, device};
      if (what == 3) advice.last_prefetch = {AdvisedLocation::Kind::kHost, 0};
    };
    map.apply(begin, end, {}, change);
    for (uint64_t granule = begin; granule < end; ++granule) change(expected[granule]);
    const uint64_t from = random() % kGranules;
    const uint64_t to = from + 1 + random() % (kGranules - from);
    UsageAdvice common = expected[from];
    for (uint64_t granule = from; granule < to; ++granule) {
      common = common.common_with(expected[granule]);
    }
    ASSERT_EQ(map.common(from, to), common);
  }
  uint64_t runs = 1;
  for (uint64_t i = 1; i < kGranules; ++i) runs += expected[i] != expected[i - 1] ? 1 : 0;
  EXPECT_EQ(map.count_runs(), runs);
}

}  // namespace
}  // namespace understudy
