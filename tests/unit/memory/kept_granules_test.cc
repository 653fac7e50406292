// SPDX-License-Identifier: Apache-2.0
#include "memory/kept_granules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace understudy {
namespace {

using Runs = std::vector<std::pair<uint64_t, uint64_t>>;  // in granules

constexpr auto kAll = [](uint64_t) { return true; };

Runs runs_of(const KeptGranules& kept, uint64_t most) {
  Runs runs;
  uint64_t from = 0;
  while (const auto run = kept.next(from, most * kGranule)) {
    runs.emplace_back(run->offset / kGranule, run->size / kGranule);
    from = run->offset + run->size;
  }
  return runs;
}

TEST(KeptGranules, HasNoneAtFirst) {
  KeptGranules kept(kGiB);
  EXPECT_EQ(kept.bytes(), 0u);
  EXPECT_EQ(runs_of(kept, 100), Runs{});
  EXPECT_EQ(kept.remove(0, kGiB), 0u);
}

TEST(KeptGranules, AddsThoseThatAreCommitted) {
  KeptGranules kept(kGiB);
  EXPECT_EQ(kept.add(60 * kGranule, 8 * kGranule, [](uint64_t at) { return at != 62 * kGranule; }),
            7 * kGranule);
  EXPECT_EQ(kept.bytes(), 7 * kGranule);
  EXPECT_EQ(runs_of(kept, 100), (Runs{{60, 2}, {63, 5}}));
}

TEST(KeptGranules, RunsAreCutToTheMostThatIsAskedFor) {
  KeptGranules kept(kGiB);
  kept.add(61 * kGranule, 7 * kGranule, kAll);
  EXPECT_EQ(runs_of(kept, 3), (Runs{{61, 3}, {64, 3}, {67, 1}}));
}

TEST(KeptGranules, RemovesWhatIsInARangeAndNothingElse) {
  KeptGranules kept(kGiB);
  kept.add(0, 130 * kGranule, kAll);
  EXPECT_EQ(kept.remove(63 * kGranule, 66 * kGranule), 66 * kGranule);
  EXPECT_EQ(kept.remove(63 * kGranule, 66 * kGranule), 0u);
  EXPECT_EQ(runs_of(kept, 500), (Runs{{0, 63}, {129, 1}}));
  EXPECT_EQ(kept.remove(100 * kGranule, kGiB - 100 * kGranule), kGranule);
  EXPECT_EQ(kept.bytes(), 63 * kGranule);
}

TEST(KeptGranules, AgreesWithAListOfBooleans) {
  constexpr uint64_t kGranules = 300;
  KeptGranules kept(kGranules * kGranule);
  std::vector<bool> model(kGranules, false);
  std::mt19937_64 random(99);
  for (int step = 0; step < 3000; ++step) {
    const uint64_t first = random() % kGranules;
    const uint64_t count = 1 + random() % std::min<uint64_t>(kGranules - first, 90);
    uint64_t changed = 0;
    if (random() % 2 == 0) {
      const auto is_new = [&](uint64_t at) { return at % 3 != 1 && !model[at]; };
      const uint64_t added = kept.add(first * kGranule, count * kGranule,
                                      [&](uint64_t offset) { return is_new(offset / kGranule); });
      for (uint64_t at = first; at < first + count; ++at) {
        if (!is_new(at)) continue;
        ++changed;
        model[at] = true;
      }
      ASSERT_EQ(added, changed * kGranule);
    } else {
      const uint64_t removed = kept.remove(first * kGranule, count * kGranule);
      for (uint64_t at = first; at < first + count; ++at) {
        changed += model[at] ? 1 : 0;
        model[at] = false;
      }
      ASSERT_EQ(removed, changed * kGranule);
    }
    Runs expected;
    for (uint64_t at = 0; at < kGranules; ++at) {
      if (!model[at]) continue;
      if (at == 0 || !model[at - 1]) expected.emplace_back(at, 0);
      ++expected.back().second;
    }
    ASSERT_EQ(runs_of(kept, kGranules), expected);
    ASSERT_EQ(kept.bytes(),
              static_cast<uint64_t>(std::count(model.begin(), model.end(), true)) * kGranule);
  }
}

}  // namespace
}  // namespace understudy
