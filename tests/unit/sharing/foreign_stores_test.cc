// SPDX-License-Identifier: Apache-2.0
//
// The files come from this very process: what is seen of a store does not depend on whose it is.
#include "sharing/foreign_stores.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sharing/own_stores.h"
#include "unit/expect_result.h"
#include "unit/platform/mapped_bytes.h"
#include "unit/platform/planned_fault.h"
#include "unit/run_on_threads.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

using platform::bytes_behind;
using platform::cpu_can_read;
using platform::PlannedFault;
using platform::SystemCall;

constexpr uint64_t kGranules = 8;
constexpr StoreName kName{ProcessTag(1, 1), 0};
constexpr StoreName kSecondStore{ProcessTag(1, 1), 5};
constexpr StoreName kOtherProcess{ProcessTag(1, 2), 0};

class ForeignStoresTest : public testing::Test {
 protected:
  ForeignStoresTest() {
    StoreOptions options;
    options.name = "unit-test";
    options.collapse = false;
    options.ledger = ledger_.get();
    store_ = value_of(Store::create(options, kGranules * kGranule, budget_));
  }

  static platform::MemoryFile copy_of(const platform::MemoryFile& file) {
    return platform::MemoryFile::adopt(platform::UniqueFd(dup(file.descriptor())), file.kind(),
                                       file.size());
  }
  StoreFiles files() const {
    return {OwnStores::describe(*store_), copy_of(store_->file()), copy_of(store_->states_file())};
  }
  void attach(const StoreName& name = kName) { ASSERT_TRUE(is_ok(stores_.attach(name, files()))); }
  Extent open(uint64_t offset, uint64_t size, const StoreName& name = kName) {
    return value_of(stores_.open(name, offset, size)).value();
  }
  static VirtualAddress address(const Extent& extent) { return extent.store->alias(extent.offset); }
  uint8_t& byte_at(uint64_t offset) {
    return *static_cast<uint8_t*>(to_pointer(store_->alias(offset)));
  }

  std::unique_ptr<Ledger> ledger_ = value_of(Ledger::make_private(TestServer::shape()));
  HostBudget budget_{HostBudget::Kind::kFixed, 64 * kMiB};
  std::unique_ptr<Store> store_;
  HostBudget other_budget_{HostBudget::Kind::kFixed, 64 * kMiB};
  ForeignStores stores_{*ledger_, other_budget_};
};

TEST_F(ForeignStoresTest, StoresAreOfAProcessAndHaveNumbers) {
  EXPECT_FALSE(stores_.has(kName));
  attach();
  attach();  // does nothing
  attach(kSecondStore);
  EXPECT_TRUE(stores_.has(kName));
  EXPECT_TRUE(stores_.has_any(kName.owner));
  EXPECT_FALSE(stores_.has(kOtherProcess));
  EXPECT_FALSE(stores_.has_any(kOtherProcess.owner));
  EXPECT_EQ(stores_.numbers_of(kName.owner), (std::vector<uint16_t>{0, 5}));
  EXPECT_FALSE(value_of(stores_.open(kOtherProcess, 0, kGranule)));
}

TEST_F(ForeignStoresTest, OpenedPartIsSeenInWholeGranulesAndNothingElseIs) {
  ASSERT_TRUE(is_ok(store_->warm(0, kGranules * kGranule)));
  byte_at(3 * kGranule) = 0x33;
  attach();
  const Extent extent = open(2 * kGranule + 100, kGranule);
  EXPECT_EQ(extent.offset, 2 * kGranule);
  EXPECT_EQ(extent.size, 2 * kGranule);
  EXPECT_EQ(*static_cast<uint8_t*>(to_pointer(extent.store->alias(3 * kGranule))), 0x33);
  EXPECT_FALSE(cpu_can_read(extent.store->alias(kGranule)));
  EXPECT_FALSE(cpu_can_read(extent.store->alias(4 * kGranule)));
}

TEST_F(ForeignStoresTest, PartIsSeenUntilItIsClosedAsOftenAsItWasOpened) {
  ASSERT_TRUE(is_ok(store_->warm(0, kGranules * kGranule)));
  attach();
  // Two small things in one granule, and one elsewhere.
  const Extent first = open(100, 200);
  const Extent second = open(kNormalPage, 10);
  const Extent third = open(4 * kGranule, kGranule);
  EXPECT_EQ(address(first), address(second));
  EXPECT_FALSE(stores_.close(kName, first));
  EXPECT_TRUE(cpu_can_read(address(second)));
  EXPECT_FALSE(stores_.close(kName, second));
  EXPECT_FALSE(cpu_can_read(address(second)));
  EXPECT_TRUE(cpu_can_read(address(third)));
  const VirtualAddress seen = address(third);
  EXPECT_TRUE(stores_.close(kName, third));
  EXPECT_FALSE(stores_.has(kName));
  EXPECT_FALSE(cpu_can_read(seen));
}

TEST_F(ForeignStoresTest, StoreOfWhichNothingIsOpenCanBeDetached) {
  EXPECT_FALSE(stores_.detach_unused(kName));
  attach();
  EXPECT_TRUE(stores_.detach_unused(kName));
  EXPECT_FALSE(stores_.has(kName));
  attach();
  const Extent extent = open(0, kGranule);
  EXPECT_FALSE(stores_.detach_unused(kName));
  EXPECT_TRUE(stores_.has(kName));
  EXPECT_TRUE(stores_.close(kName, extent));
}

TEST_F(ForeignStoresTest, ExtentThatNobodyHoldsGoesBackToTheSystem) {
  ASSERT_TRUE(is_ok(store_->warm(0, kGranules * kGranule)));
  attach();
  const Extent extent = open(0, 2 * kGranule);
  const Extent kept = open(4 * kGranule, kGranule);
  EXPECT_FALSE(stores_.close(kName, extent));
  stores_.discard_extent(kName, extent);
  EXPECT_EQ(bytes_behind(store_->file()), (kGranules - 2) * kGranule);
  EXPECT_TRUE(stores_.close(kName, kept));
  stores_.discard_extent(kName, extent);  // nothing happens: it is not attached
}

TEST_F(ForeignStoresTest, ClosedPartIsNoLongerPaidFor) {
  attach();
  const Extent kept = open(4 * kGranule, kGranule);
  const Extent extent = open(0, kGranule);
  ASSERT_TRUE(is_ok(extent.store->warm(0, kGranule)));
  EXPECT_EQ(other_budget_.taken(), kGranule);
  stores_.close(kName, extent);
  EXPECT_EQ(other_budget_.taken(), 0u);
  EXPECT_EQ(bytes_behind(store_->file()), kGranule);
  EXPECT_TRUE(stores_.close(kName, kept));
}

TEST_F(ForeignStoresTest, FaultsOfTheHostAreErrorsAndLeaveNothing) {
  {
    const PlannedFault fault(SystemCall::kMapFile, 1, ENOMEM);
    EXPECT_FALSE(stores_.attach(kName, files()).ok());
  }
  EXPECT_FALSE(stores_.has(kName));
  attach();
  {
    const PlannedFault fault(SystemCall::kMapFile, 1, ENOMEM);
    EXPECT_FALSE(stores_.open(kName, 0, kGranule).ok());
  }
  const Extent extent = open(0, kGranule);
  EXPECT_TRUE(stores_.close(kName, extent));
}

TEST_F(ForeignStoresTest, WhatNobodyHoldsGoesBackToTheSystem) {
  ASSERT_TRUE(is_ok(store_->warm(0, kGranules * kGranule)));
  attach();
  const Extent extent = open(2 * kGranule, kGranule);
  // In any order, of any alignment, and one inside another.
  stores_.discard(kName, {{6 * kGranule + 5, 10},
                          {2 * kGranule, kGranule},
                          {2 * kGranule + 7, 1},
                          {3 * kGranule - 1, 2}});
  for (const uint64_t granule : {0U, 1U, 4U, 5U, 7U}) {
    EXPECT_FALSE(store_->is_warm_at(granule * kGranule)) << granule;
  }
  for (const uint64_t granule : {2U, 3U, 6U}) {
    EXPECT_TRUE(store_->is_warm_at(granule * kGranule)) << granule;
  }
  EXPECT_EQ(bytes_behind(store_->file()), 3 * kGranule);
  stores_.discard(kName, {});
  EXPECT_EQ(bytes_behind(store_->file()), 0u);
  stores_.discard(kOtherProcess, {});
  EXPECT_TRUE(stores_.close(kName, extent));
}

TEST_F(ForeignStoresTest, WholeStoreThatIsHeldIsKept) {
  ASSERT_TRUE(is_ok(store_->warm(0, kGranules * kGranule)));
  attach();
  stores_.discard(kName, {{0, kGranules * kGranule}});
  EXPECT_EQ(bytes_behind(store_->file()), kGranules * kGranule);
}

TEST_F(ForeignStoresTest, ThreadsMayOpenAndCloseAtTheSameTime) {
  ASSERT_TRUE(is_ok(store_->warm(0, kGranules * kGranule)));
  run_on_threads(4, [&](int thread) {
    for (int round = 0; round < 100; ++round) {
      const uint64_t offset = static_cast<uint64_t>((thread + round) % 2) * kGranule;
      std::optional<Extent> extent;
      while (!extent) {
        EXPECT_TRUE(is_ok(stores_.attach(kName, files())));
        extent = value_of(stores_.open(kName, offset, kGranule));
      }
      EXPECT_TRUE(cpu_can_read(address(*extent)));
      stores_.close(kName, *extent);
    }
  });
  EXPECT_FALSE(stores_.has(kName));
  EXPECT_EQ(other_budget_.taken(), 0u);
}

}  // namespace
}  // namespace understudy
