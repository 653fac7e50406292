// SPDX-License-Identifier: Apache-2.0
#include "memory/backing_pools.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>

#include "unit/memory/memory_rig.h"
#include "unit/platform/planned_fault.h"

namespace understudy {
namespace {

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
