// SPDX-License-Identifier: Apache-2.0
#include "memory/host_budget.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/sizes.h"
#include "support/refused_calls.h"
#include "unit/expect_result.h"
#include "unit/other_process.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

using Source = HostBudget::Source;

// Ordinary memory that is there at once.
Result<void> take(HostBudget& budget, uint64_t bytes) {
  US_TRY(budget.take(bytes, Source::kMachine));
  budget.note_committed(bytes, Source::kMachine);
  return {};
}

TEST(HostBudget, FixedOneGivesExactlyItsLimit) {
  HostBudget budget(HostBudget::Kind::kFixed, 10 * kMiB);
  EXPECT_TRUE(is_ok(take(budget, 4 * kMiB)));
  EXPECT_TRUE(fails_with(take(budget, 6 * kMiB + 1), ErrorCode::kOutOfMemory));
  EXPECT_EQ(budget.taken(), 4 * kMiB);
  EXPECT_TRUE(is_ok(take(budget, 6 * kMiB)));
  EXPECT_TRUE(fails_with(take(budget, 1), ErrorCode::kOutOfMemory));
  EXPECT_TRUE(fails_with(take(budget, UINT64_MAX), ErrorCode::kOutOfMemory));
  EXPECT_EQ(budget.taken(), 10 * kMiB);
}

TEST(HostBudget, WhatIsGivenBackCanBeTakenAgain) {
  HostBudget budget(HostBudget::Kind::kFixed, 10 * kMiB);
  ASSERT_TRUE(is_ok(take(budget, 10 * kMiB)));
  budget.give_back(3 * kMiB);
  EXPECT_EQ(budget.taken(), 7 * kMiB);
  EXPECT_TRUE(fails_with(take(budget, 4 * kMiB), ErrorCode::kOutOfMemory));
  EXPECT_TRUE(is_ok(take(budget, 3 * kMiB)));
  budget.give_back(10 * kMiB);
  EXPECT_EQ(budget.taken(), 0u);
}

TEST(HostBudget, FixedOneOfNothingGivesNothing) {
  HostBudget budget(HostBudget::Kind::kFixed, 0);
  EXPECT_TRUE(fails_with(take(budget, kGranule), ErrorCode::kOutOfMemory));
  EXPECT_TRUE(is_ok(take(budget, 0)));
}

TEST(HostBudget, WhereTheHostDoesNotTellWhatItHasThereIsNoLimit) {
  OtherProcess child([](const Line&) {
    ASSERT_TRUE(understudy_test::refuse_system_call(SYS_openat, EACCES));
    ASSERT_TRUE(understudy_test::refuse_system_call(SYS_sysinfo, EPERM));
    HostBudget budget(HostBudget::Kind::kMachine, 0);
    EXPECT_TRUE(is_ok(take(budget, 1024 * kGiB)));
  });
  EXPECT_TRUE(child.ended_well());
}

TEST(HostBudget, UnlimitedOneCountsAndNeverRefuses) {
  HostBudget budget(HostBudget::Kind::kUnlimited, 0);
  EXPECT_TRUE(is_ok(take(budget, 1024 * kTiB)));
  EXPECT_EQ(budget.taken(), 1024 * kTiB);
  budget.give_back(1024 * kTiB);
  EXPECT_EQ(budget.taken(), 0u);
}

TEST(HostBudget, MachineRefusesMoreThanAnyMachineHas) {
  HostBudget budget(HostBudget::Kind::kMachine, 0);
  EXPECT_TRUE(fails_with(take(budget, 1024 * kTiB), ErrorCode::kOutOfMemory));
  EXPECT_EQ(budget.taken(), 0u);
  // Its limit does not count.
  const Result<void> taken = take(budget, kGranule);
  if (!taken.ok()) GTEST_SKIP() << taken.error().text();
  EXPECT_EQ(budget.taken(), kGranule);
}

TEST(HostBudget, MemoryOnItsWayCountsAsTaken) {
  HostBudget budget(HostBudget::Kind::kFixed, 10 * kMiB);
  ASSERT_TRUE(is_ok(budget.take(6 * kMiB, Source::kMachine)));
  EXPECT_TRUE(fails_with(take(budget, 6 * kMiB), ErrorCode::kOutOfMemory));
  budget.note_committed(6 * kMiB, Source::kMachine);
  EXPECT_EQ(budget.taken(), 6 * kMiB);
  EXPECT_TRUE(fails_with(take(budget, 6 * kMiB), ErrorCode::kOutOfMemory));
}

TEST(HostBudget, PagesOfAPoolAreNotWhatTheMachineHasToSpare) {
  HostBudget machine(HostBudget::Kind::kMachine, 0);
  EXPECT_TRUE(is_ok(machine.take(1024 * kTiB, Source::kPool)));
  machine.note_committed(1024 * kTiB, Source::kPool);
  EXPECT_EQ(machine.taken(), 1024 * kTiB);
  // A fixed budget counts them as well.
  HostBudget fixed(HostBudget::Kind::kFixed, kGranule);
  EXPECT_TRUE(fails_with(fixed.take(2 * kGranule, Source::kPool), ErrorCode::kOutOfMemory));
  EXPECT_TRUE(is_ok(fixed.take(kGranule, Source::kPool)));
}

TEST(HostBudget, ThreadsTogetherGetExactlyTheLimit) {
  HostBudget budget(HostBudget::Kind::kFixed, 500 * kGranule);
  std::atomic<int> granted{0};
  run_on_threads(4, [&](int) {
    while (take(budget, kGranule).ok()) ++granted;
  });
  EXPECT_EQ(granted, 500);
  EXPECT_EQ(budget.taken(), 500 * kGranule);
}

}  // namespace
}  // namespace understudy
