// SPDX-License-Identifier: Apache-2.0
#include "memory/backing_pools.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "unit/memory/memory_rig.h"
#include "unit/platform/planned_fault.h"

namespace understudy {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kBudget = 4 * kGranule;

Settings tight_settings() {
  Settings settings = rig_settings();
  settings.host_budget = kBudget;
  return settings;
}

class BackingPoolsTest : public testing::Test {
 protected:
  Extent take(Location location, uint64_t size) {
    return value_of(pools_.take(location, size, PageKind::kHuge));
  }
  Result<void> commit(const Extent& extent) {
    return pools_.commit(*extent.backing, extent.offset, extent.size);
  }
  // Fills the budget with memory that nobody has.
  void cache(Location location, uint64_t bytes) {
    const Extent extent = take(location, bytes);
    ASSERT_TRUE(is_ok(commit(extent)));
    pools_.of(location).give_back(extent);
    ASSERT_EQ(pools_.of(location).free_committed_bytes(), bytes);
  }

  BackingPools pools_{tight_settings(), rig_server()};
};

TEST_F(BackingPoolsTest, EveryLocationHasAStorageOfItsOwn) {
  const Location node{LocationKind::kHostNuma, 0};
  EXPECT_NE(&pools_.of(kDevice0), &pools_.of(kDevice1));
  EXPECT_NE(&pools_.of(kDevice0), &pools_.of(kHostLocation));
  EXPECT_NE(&pools_.of(node), &pools_.of(kHostLocation));
  EXPECT_EQ(&pools_.of(node), &pools_.of(node));
  EXPECT_EQ(&pools_.of(kDevice1), &pools_.of(kDevice1));
}

TEST_F(BackingPoolsTest, BudgetFullOfFreedMemoryStillServesAnotherSize) {
  cache(kDevice0, kBudget);
  const Extent other = take(kDevice0, kGranule);
  ASSERT_FALSE(other.backing->is_committed_at(other.offset));
  EXPECT_TRUE(is_ok(commit(other)));
  EXPECT_EQ(pools_.budget().taken(), kGranule);
}

TEST_F(BackingPoolsTest, FreedMemoryOfOneLocationServesAnother) {
  for (const Location cached : {kDevice0, kHostLocation, Location{LocationKind::kHostNuma, 0}}) {
    Result<Extent> extent = pools_.take(cached, kBudget, PageKind::kHuge);
    if (!extent.ok()) continue;  // a machine that does not let us bind memory to its node
    ASSERT_TRUE(is_ok(commit(extent.value())));
    pools_.of(cached).give_back(extent.value());

    const Extent other = take(kDevice1, kBudget);
    EXPECT_TRUE(is_ok(commit(other)));
    EXPECT_EQ(pools_.budget().taken(), kBudget);
    pools_.of(kDevice1).give_back(other);
    pools_.of(kDevice1).trim();
  }
}

TEST_F(BackingPoolsTest, MemoryInUseIsNeverTakenAway) {
  const Extent used = take(kDevice0, kBudget - kGranule);
  ASSERT_TRUE(is_ok(commit(used)));
  const Extent other = take(kDevice1, 2 * kGranule);
  EXPECT_TRUE(fails_with(commit(other), ErrorCode::kOutOfMemory));
  EXPECT_EQ(used.backing->committed_bytes_in(used.offset, used.size), used.size);
  EXPECT_EQ(pools_.budget().taken(), kBudget - kGranule);
}

TEST_F(BackingPoolsTest, CommitThatTheHostRefusesIsTriedAgainOnceMemoryWasGivenBack) {
  const Extent wanted = take(kDevice1, kGranule);
  cache(kDevice0, kGranule);
  const platform::PlannedFault fault(platform::SystemCall::kCommit, 1, ENOSPC);
  EXPECT_TRUE(is_ok(commit(wanted)));
  EXPECT_TRUE(fault.happened());
  EXPECT_EQ(pools_.budget().taken(), kGranule);
}

// Polls; how long it may take is the business of whoever runs the tests.
TEST_F(BackingPoolsTest, FreedMemoryGoesBackWithoutACall) {
  const Extent live = take(kDevice0, kGranule);
  ASSERT_TRUE(is_ok(commit(live)));
  auto* const byte = static_cast<uint8_t*>(to_pointer(live.backing->alias(live.offset)));
  *byte = 0x5A;
  // Twice: the thread that gives it back ends in between, or does not.
  for (int round = 0; round < 2; ++round) {
    cache(kDevice1, kGranule);
    cache(kHostLocation, 2 * kGranule);
    while (pools_.budget().taken() > kGranule) std::this_thread::sleep_for(10ms);
    EXPECT_EQ(*byte, 0x5A);
  }
}

TEST_F(BackingPoolsTest, BlockThatIsUsedAgainMeanwhileKeepsItsBytes) {
  const Extent first = take(kDevice0, kGranule);
  const Extent second = take(kDevice0, 2 * kGranule);
  ASSERT_TRUE(is_ok(commit(first)));
  ASSERT_TRUE(is_ok(commit(second)));
  pools_.of(kDevice0).give_back(first);
  pools_.of(kDevice0).give_back(second);
  const Extent again = take(kDevice0, kGranule);
  auto* const bytes = static_cast<uint8_t*>(to_pointer(again.backing->alias(again.offset)));
  std::fill_n(bytes, kGranule, uint8_t{0x3C});
  while (pools_.budget().taken() > kGranule) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(std::count(bytes, bytes + kGranule, 0x3C), static_cast<std::ptrdiff_t>(kGranule));
}

TEST_F(BackingPoolsTest, HostWithoutAThreadKeepsFreedMemoryUntilOneCanBeHad) {
  {
    const platform::PlannedFault fault(platform::SystemCall::kStartThread, 1, EAGAIN);
    cache(kDevice0, kGranule);
    EXPECT_TRUE(fault.happened());
  }
  EXPECT_EQ(pools_.budget().taken(), kGranule);
  cache(kHostLocation, 2 * kGranule);
  while (pools_.budget().taken() > 0) std::this_thread::sleep_for(10ms);
}

TEST_F(BackingPoolsTest, BudgetFollowsTheSettings) {
  Settings settings = rig_settings();
  settings.host_budget = std::nullopt;
  settings.host_budget_unlimited = true;
  BackingPools unlimited(settings, rig_server());
  const Extent extent = value_of(unlimited.take(kDevice0, kGranule, PageKind::kHuge));
  EXPECT_TRUE(is_ok(unlimited.commit(*extent.backing, extent.offset, extent.size)));
  EXPECT_EQ(unlimited.budget().taken(), kGranule);

  settings.host_budget_unlimited = false;
  settings.host_budget = 0;
  BackingPools nothing(settings, rig_server());
  const Extent cold = value_of(nothing.take(kDevice0, kGranule, PageKind::kHuge));
  EXPECT_TRUE(
      fails_with(nothing.commit(*cold.backing, cold.offset, cold.size), ErrorCode::kOutOfMemory));
}

}  // namespace
}  // namespace understudy
