// SPDX-License-Identifier: Apache-2.0
#include "base/thread_shard.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "unit/run_on_threads.h"

namespace understudy {
namespace {

TEST(ThreadShard, StaysTheSameForAThread) { EXPECT_EQ(thread_shard(), thread_shard()); }

TEST(ThreadShard, SixteenThreadsInARowNeverMeet) {
  std::array<unsigned, kShards> shards{};
  run_on_threads(kShards, [&](int i) { shards[static_cast<size_t>(i)] = thread_shard(); });
  const std::set<unsigned> distinct(shards.begin(), shards.end());
  EXPECT_EQ(distinct.size(), kShards);
  EXPECT_EQ(*distinct.rbegin(), kShards - 1);
}

TEST(ThreadShard, NoTwoThreadsHaveANumber) {
  constexpr size_t kThreads = 3 * kShards;
  std::array<unsigned, kThreads> numbers{};
  run_on_threads(kThreads, [&](int i) { numbers[static_cast<size_t>(i)] = thread_number(); });
  std::set<unsigned> distinct(numbers.begin(), numbers.end());
  distinct.insert(thread_number());
  EXPECT_EQ(distinct.size(), kThreads + 1);
}

}  // namespace
}  // namespace understudy
