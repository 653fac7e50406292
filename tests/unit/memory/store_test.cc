// SPDX-License-Identifier: Apache-2.0
#include "memory/store.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>

#include "base/scope_exit.h"
#include "unit/expect_result.h"
#include "unit/platform/mapped_bytes.h"
#include "unit/platform/planned_fault.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

using platform::bytes_behind;
using platform::PlannedFault;
using platform::SystemCall;

constexpr uint64_t kGranules = 16;
constexpr uint64_t kSize = kGranules * kGranule;

class StoreTest : public testing::Test {
 protected:
  static StoreOptions small_pages() {
    StoreOptions options;
    options.name = "unit-test";
    options.collapse = false;
    return options;
  }
  static StoreOptions large_pages() {
    StoreOptions options = small_pages();
    options.collapse = true;
    return options;
  }

  std::unique_ptr<Store> store_of(const StoreOptions& options, uint64_t size = kSize) {
    return value_of(Store::create(options, size, budget_));
  }
  static uint8_t* bytes(const Store& store, uint64_t offset) {
    return static_cast<uint8_t*>(to_pointer(store.alias(offset)));
  }
  // The three accounts of host memory agree.
  void expect_warm(const Store& store, uint64_t warm) {
    EXPECT_EQ(store.backing().total(), warm);
    EXPECT_EQ(store.warm_bytes_in(0, store.size()), warm);
    EXPECT_EQ(budget_.taken(), warm);
    EXPECT_EQ(bytes_behind(store.file()), warm);
  }

  HostBudget budget_{HostBudget::Kind::kFixed, kSize};
};

TEST_F(StoreTest, BeginsColdAndCostsNothing) {
  const auto store = store_of(small_pages(), 64 * kGiB);
  EXPECT_EQ(store->size(), 64 * kGiB);
  EXPECT_TRUE(is_aligned(store->alias(0), kGranule));
  EXPECT_EQ(store->alias(kGranule), store->alias(0) + kGranule);
  EXPECT_EQ(store->alignment(), kHugePage);
  EXPECT_EQ(store->state_at(0), GranuleState::kCold);
  EXPECT_FALSE(store->is_warm_at(64 * kGiB - 1));
  EXPECT_EQ(budget_.taken(), 0u);
  EXPECT_EQ(bytes_behind(store->file()), 0u);
}

TEST_F(StoreTest, WarmingTakesEveryGranuleThatIsTouchedAndNoOther) {
  const auto store = store_of(small_pages());
  // Two bytes on either side of a border.
  ASSERT_TRUE(is_ok(store->warm(3 * kGranule - 1, 2)));
  EXPECT_FALSE(store->is_warm_at(kGranule));
  EXPECT_TRUE(store->is_warm_at(2 * kGranule));
  EXPECT_TRUE(store->is_warm_at(3 * kGranule));
  EXPECT_FALSE(store->is_warm_at(4 * kGranule));
  EXPECT_EQ(store->state_at(2 * kGranule), GranuleState::kSmallPages);
  expect_warm(*store, 2 * kGranule);
  EXPECT_EQ(store->backing().small_pages, 2 * kGranule);
}

TEST_F(StoreTest, WarmingAgainTakesOnlyWhatIsCold) {
  const auto store = store_of(small_pages());
  ASSERT_TRUE(is_ok(store->warm(kGranule, kGranule)));
  bytes(*store, kGranule)[5] = 0x55;
  ASSERT_TRUE(is_ok(store->warm(0, 3 * kGranule)));
  expect_warm(*store, 3 * kGranule);
  EXPECT_EQ(bytes(*store, kGranule)[5], 0x55);
}

TEST_F(StoreTest, FreshMemoryIsZero) {
  const auto store = store_of(small_pages());
  EXPECT_EQ(store->fresh_byte(), 0);
  ASSERT_TRUE(is_ok(store->warm(0, kGranule)));
  EXPECT_EQ(std::count(bytes(*store, 0), bytes(*store, kGranule), 0), kGranule);
}

TEST_F(StoreTest, ChillGivesTheMemoryBackAndForgetsTheBytes) {
  const auto store = store_of(small_pages());
  ASSERT_TRUE(is_ok(store->warm(0, 4 * kGranule)));
  bytes(*store, kGranule)[0] = 1;
  bytes(*store, 3 * kGranule)[0] = 3;
  // Over cold and warm granules alike.
  store->chill(kGranule, 2 * kGranule);
  EXPECT_FALSE(store->is_warm_at(kGranule));
  EXPECT_TRUE(store->is_warm_at(3 * kGranule));
  expect_warm(*store, 2 * kGranule);
  store->chill(2 * kGranule, kGranule);
  expect_warm(*store, 2 * kGranule);
  ASSERT_TRUE(is_ok(store->warm(kGranule, kGranule)));
  EXPECT_EQ(bytes(*store, kGranule)[0], 0);
  EXPECT_EQ(bytes(*store, 3 * kGranule)[0], 3);
  store->chill(0, kSize);
  expect_warm(*store, 0);
}

TEST_F(StoreTest, EndOfAStoreGivesItsBudgetBack) {
  {
    const auto store = store_of(small_pages());
    ASSERT_TRUE(is_ok(store->warm(0, 3 * kGranule)));
    EXPECT_EQ(budget_.taken(), 3 * kGranule);
  }
  EXPECT_EQ(budget_.taken(), 0u);
}

TEST_F(StoreTest, PoisonedStoreIsFullOfPoisonWhereverItIsFresh) {
  StoreOptions options = small_pages();
  options.poison = Poison::kOn;
  const auto store = store_of(options);
  EXPECT_EQ(store->fresh_byte(), Store::kPoisonByte);
  ASSERT_TRUE(is_ok(store->warm(0, 2 * kGranule)));
  EXPECT_EQ(std::count(bytes(*store, 0), bytes(*store, 2 * kGranule), Store::kPoisonByte),
            2 * kGranule);
  bytes(*store, 0)[9] = 1;
  bytes(*store, kGranule)[9] = 1;
  store->refresh(0, kGranule);
  EXPECT_EQ(bytes(*store, 0)[9], Store::kPoisonByte);
  EXPECT_EQ(bytes(*store, kGranule)[9], 1);
  // A refresh of cold granules costs nothing.
  store->refresh(4 * kGranule, kGranule);
  expect_warm(*store, 2 * kGranule);
}

TEST_F(StoreTest, RefusalOfTheBudgetLeavesTheGranulesCold) {
  const auto store = store_of(small_pages(), 2 * kSize);
  ASSERT_TRUE(is_ok(store->warm(0, kSize - kGranule)));
  EXPECT_TRUE(fails_with(store->warm(kSize, 2 * kGranule), ErrorCode::kOutOfMemory));
  EXPECT_EQ(store->state_at(kSize), GranuleState::kCold);
  EXPECT_EQ(store->state_at(kSize + kGranule), GranuleState::kCold);
  expect_warm(*store, kSize - kGranule);
  EXPECT_TRUE(is_ok(store->warm(kSize, kGranule)));
  expect_warm(*store, kSize);
}

TEST_F(StoreTest, NthCommitThatFailsTakesNothingForItsGranules) {
  for (int n = 1; n <= 3; ++n) {
    const auto store = store_of(small_pages());
    // Granules 0, 2 and 4 are cold: three commits of their own.
    ASSERT_TRUE(is_ok(store->warm(kGranule, kGranule)));
    ASSERT_TRUE(is_ok(store->warm(3 * kGranule, kGranule)));
    {
      const PlannedFault fault(SystemCall::kCommit, n, ENOSPC);
      const Result<void> failed = store->warm(0, 5 * kGranule);
      ASSERT_TRUE(fails_with(failed, ErrorCode::kOutOfMemory)) << n;
      EXPECT_EQ(failed.error().system_number(), ENOSPC);
    }
    const auto done = static_cast<uint64_t>(n) - 1;
    expect_warm(*store, (2 + done) * kGranule);
    EXPECT_EQ(store->state_at(done * 2 * kGranule), GranuleState::kCold);
    EXPECT_TRUE(is_ok(store->warm(0, 5 * kGranule)));
    expect_warm(*store, 5 * kGranule);
  }
}

TEST_F(StoreTest, CommitThatFailedHalfwayTakesNothing) {
  // Without large pages the collapse fails after it touched a page of each granule.
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  ScopeExit enable([] { prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0); });
  const auto store = store_of(large_pages());
  {
    const PlannedFault fault(SystemCall::kCommit, 2, ENOSPC);
    EXPECT_TRUE(fails_with(store->warm(0, 2 * kGranule), ErrorCode::kOutOfMemory));
    EXPECT_TRUE(fault.happened());
  }
  expect_warm(*store, 0);
  ASSERT_TRUE(is_ok(store->warm(0, 2 * kGranule)));
  EXPECT_EQ(store->backing().small_pages, 2 * kGranule);
  expect_warm(*store, 2 * kGranule);
}

TEST_F(StoreTest, HostThatDoesNotTakeMemoryBackLeavesItWarm) {
  const auto store = store_of(small_pages());
  ASSERT_TRUE(is_ok(store->warm(0, 2 * kGranule)));
  {
    const PlannedFault fault(SystemCall::kDiscard, 1, EIO);
    store->chill(0, 2 * kGranule);
  }
  expect_warm(*store, 2 * kGranule);
  store->chill(0, 2 * kGranule);
  expect_warm(*store, 0);
}

TEST_F(StoreTest, KernelThatCannotCollapseIsAskedOnce) {
  const auto store = store_of(large_pages());
  {
    const PlannedFault fault(SystemCall::kCommit, 1, EINVAL);
    ASSERT_TRUE(is_ok(store->warm(0, kGranule)));
  }
  EXPECT_EQ(store->state_at(0), GranuleState::kSmallPages);
  ASSERT_TRUE(is_ok(store->warm(kGranule, kGranule)));
  EXPECT_EQ(store->state_at(kGranule), GranuleState::kSmallPages);
  expect_warm(*store, 2 * kGranule);
}

TEST_F(StoreTest, CollapseThatFailedForNowIsTriedAgain) {
  const auto store = store_of(large_pages());
  ASSERT_TRUE(is_ok(store->warm(0, kGranule)));
  if (store->state_at(0) != GranuleState::kCollapsed) {
    GTEST_SKIP() << "this kernel or process gets no 2 MiB pages without a pool";
  }
  {
    const PlannedFault fault(SystemCall::kCommit, 1, EAGAIN);
    ASSERT_TRUE(is_ok(store->warm(kGranule, kGranule)));
  }
  EXPECT_EQ(store->state_at(kGranule), GranuleState::kSmallPages);
  // Of several tries one gets through, however busy the machine is.
  for (uint64_t n = 2; n < 8; ++n) ASSERT_TRUE(is_ok(store->warm(n * kGranule, kGranule)));
  EXPECT_GE(store->backing().collapsed, 2 * kGranule);
  expect_warm(*store, 8 * kGranule);
}

TEST_F(StoreTest, ThreadsThatWarmTheSameGranulesTakeThemOnce) {
  for (const StoreOptions& options : {small_pages(), large_pages()}) {
    const auto store = store_of(options);
    run_on_threads(4, [&](int index) {
      // From different ends, so that their runs meet in the middle.
      const auto first = static_cast<uint64_t>(index) * 3 % 8;
      EXPECT_TRUE(is_ok(store->warm(first * kGranule, kSize - first * kGranule)));
      EXPECT_EQ(store->warm_bytes_in(first * kGranule, kSize - first * kGranule),
                kSize - first * kGranule);
      EXPECT_TRUE(is_ok(store->warm(0, kSize)));
    });
    EXPECT_EQ(budget_.taken(), kSize);
    EXPECT_EQ(store->backing().total(), kSize);
    EXPECT_EQ(bytes_behind(store->file()), kSize);
  }
}

TEST_F(StoreTest, BytesWrittenWhileOthersWarmAreKept) {
  StoreOptions options = small_pages();
  options.poison = Poison::kOn;
  const auto store = store_of(options);
  run_on_threads(4, [&](int index) {
    EXPECT_TRUE(is_ok(store->warm(0, 4 * kGranule)));
    bytes(*store, 0)[index] = static_cast<uint8_t>(index);
    bytes(*store, 3 * kGranule)[index] = static_cast<uint8_t>(index);
  });
  for (int index = 0; index < 4; ++index) {
    EXPECT_EQ(bytes(*store, 0)[index], index);
    EXPECT_EQ(bytes(*store, 3 * kGranule)[index], index);
  }
}

TEST_F(StoreTest, ThreadsThatMeetAnEmptyBudgetAllHearOfIt) {
  HostBudget small(HostBudget::Kind::kFixed, 2 * kGranule);
  const auto store = value_of(Store::create(small_pages(), kSize, small));
  run_on_threads(4, [&](int) {
    EXPECT_TRUE(fails_with(store->warm(0, 4 * kGranule), ErrorCode::kOutOfMemory));
  });
  EXPECT_EQ(small.taken(), store->backing().total());
  EXPECT_LE(small.taken(), 2 * kGranule);
  for (uint64_t n = 0; n < kGranules; ++n) {
    EXPECT_NE(store->state_at(n * kGranule), GranuleState::kWarming);
  }
}

TEST_F(StoreTest, CreationThatFailsLeavesNoWindow) {
  // Where the window of the next store goes: the kernel answers the same question the same way.
  const VirtualAddress next = store_of(small_pages())->alias(0);
  for (const SystemCall call : {SystemCall::kCreateFile, SystemCall::kResizeFile,
                                SystemCall::kReserveAddresses, SystemCall::kMapFile}) {
    const PlannedFault fault(call, 1, ENOMEM);
    EXPECT_FALSE(Store::create(small_pages(), kSize, budget_).ok());
    EXPECT_TRUE(fault.happened());
    EXPECT_FALSE(platform::cpu_can_read(next));
  }
  StoreOptions nowhere = small_pages();
  nowhere.numa_node = 1000;
  EXPECT_FALSE(Store::create(nowhere, kSize, budget_).ok());
  EXPECT_EQ(budget_.taken(), 0u);
}

}  // namespace
}  // namespace understudy
