// SPDX-License-Identifier: Apache-2.0
#include "memory/storage_set.h"

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

class StorageSetTest : public testing::Test {
 protected:
  Extent take(Location location, uint64_t size) {
    return value_of(storages_.take(location, size, PageKind::kHuge));
  }
  Result<void> warm(const Extent& extent) {
    return storages_.warm(*extent.store, extent.offset, extent.size);
  }
  // Fills the budget with memory that nobody has.
  void cache(Location location, uint64_t bytes) {
    const Extent extent = take(location, bytes);
    ASSERT_TRUE(is_ok(warm(extent)));
    storages_.of(location).give_back(extent);
    ASSERT_EQ(storages_.of(location).free_warm_bytes(), bytes);
  }

  StorageSet storages_{tight_settings(), rig_ledger()};
};

TEST_F(StorageSetTest, EveryLocationHasAStorageOfItsOwn) {
  const Location node{LocationKind::kHostNuma, 0};
  EXPECT_NE(&storages_.of(kDevice0), &storages_.of(kDevice1));
  EXPECT_NE(&storages_.of(kDevice0), &storages_.of(kHostLocation));
  EXPECT_NE(&storages_.of(node), &storages_.of(kHostLocation));
  EXPECT_EQ(&storages_.of(node), &storages_.of(node));
  EXPECT_EQ(&storages_.of(kDevice1), &storages_.of(kDevice1));
}

TEST_F(StorageSetTest, BudgetFullOfFreedMemoryStillServesAnotherSize) {
  cache(kDevice0, kBudget);
  const Extent other = take(kDevice0, kGranule);
  ASSERT_FALSE(other.store->is_warm_at(other.offset));
  EXPECT_TRUE(is_ok(warm(other)));
  EXPECT_EQ(storages_.budget().taken(), kGranule);
}

TEST_F(StorageSetTest, FreedMemoryOfOneLocationServesAnother) {
  for (const Location cached : {kDevice0, kHostLocation, Location{LocationKind::kHostNuma, 0}}) {
    Result<Extent> extent = storages_.take(cached, kBudget, PageKind::kHuge);
    if (!extent.ok()) continue;  // a machine that does not let us bind memory to its node
    ASSERT_TRUE(is_ok(warm(extent.value())));
    storages_.of(cached).give_back(extent.value());

    const Extent other = take(kDevice1, kBudget);
    EXPECT_TRUE(is_ok(warm(other)));
    EXPECT_EQ(storages_.budget().taken(), kBudget);
    storages_.of(kDevice1).give_back(other);
    storages_.of(kDevice1).trim();
  }
}

TEST_F(StorageSetTest, MemoryInUseIsNeverTakenAway) {
  const Extent used = take(kDevice0, kBudget - kGranule);
  ASSERT_TRUE(is_ok(warm(used)));
  const Extent other = take(kDevice1, 2 * kGranule);
  EXPECT_TRUE(fails_with(warm(other), ErrorCode::kOutOfMemory));
  EXPECT_EQ(used.store->warm_bytes_in(used.offset, used.size), used.size);
  EXPECT_EQ(storages_.budget().taken(), kBudget - kGranule);
}

TEST_F(StorageSetTest, CommitThatTheHostRefusesIsTriedAgainOnceMemoryWasGivenBack) {
  const Extent wanted = take(kDevice1, kGranule);
  cache(kDevice0, kGranule);
  const platform::PlannedFault fault(platform::SystemCall::kCommit, 1, ENOSPC);
  EXPECT_TRUE(is_ok(warm(wanted)));
  EXPECT_TRUE(fault.happened());
  EXPECT_EQ(storages_.budget().taken(), kGranule);
}

TEST_F(StorageSetTest, BudgetFollowsTheSettings) {
  Settings settings = rig_settings();
  settings.host_budget = std::nullopt;
  settings.host_budget_unlimited = true;
  StorageSet unlimited(settings, rig_ledger());
  const Extent extent = value_of(unlimited.take(kDevice0, kGranule, PageKind::kHuge));
  EXPECT_TRUE(is_ok(unlimited.warm(*extent.store, extent.offset, extent.size)));
  EXPECT_EQ(unlimited.budget().taken(), kGranule);

  settings.host_budget_unlimited = false;
  settings.host_budget = 0;
  StorageSet nothing(settings, rig_ledger());
  const Extent cold = value_of(nothing.take(kDevice0, kGranule, PageKind::kHuge));
  EXPECT_TRUE(
      fails_with(nothing.warm(*cold.store, cold.offset, cold.size), ErrorCode::kOutOfMemory));
}

}  // namespace
}  // namespace understudy
