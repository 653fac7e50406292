// SPDX-License-Identifier: Apache-2.0
#include "platform/fault_plan.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>

#include "unit/platform/planned_fault.h"
#include "unit/run_on_threads.h"

namespace understudy::platform {
namespace {

class FaultPlan : public testing::Test {
 protected:
  ~FaultPlan() override { clear_fault_plan(); }
};

TEST_F(FaultPlan, NothingFailsWithoutAPlan) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(planned_fault(SystemCall::kMapFile), 0);
}

TEST_F(FaultPlan, ExactlyTheNthCallFailsOnce) {
  plan_fault(SystemCall::kMapFile, 3, ENOMEM);
  EXPECT_EQ(planned_fault(SystemCall::kMapFile), 0);
  EXPECT_EQ(planned_fault(SystemCall::kMapFile), 0);
  EXPECT_EQ(planned_fault(SystemCall::kMapFile), ENOMEM);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(planned_fault(SystemCall::kMapFile), 0);
}

TEST_F(FaultPlan, KindsAreCountedByThemselves) {
  plan_fault(SystemCall::kCommit, 1, ENOSPC);
  plan_fault(SystemCall::kUnmap, 2, ENOMEM);
  EXPECT_EQ(planned_fault(SystemCall::kMapFile), 0);
  EXPECT_EQ(planned_fault(SystemCall::kUnmap), 0);
  EXPECT_EQ(planned_fault(SystemCall::kCommit), ENOSPC);
  EXPECT_EQ(planned_fault(SystemCall::kUnmap), ENOMEM);
}

TEST_F(FaultPlan, ClearedPlanIsForgottenForAllKinds) {
  plan_fault(SystemCall::kCreateFile, 1, EMFILE);
  plan_fault(SystemCall::kDiscard, 1, EIO);
  clear_fault_plan();
  EXPECT_EQ(planned_fault(SystemCall::kCreateFile), 0);
  EXPECT_EQ(planned_fault(SystemCall::kDiscard), 0);
}

TEST_F(FaultPlan, NewPlanReplacesTheOldOne) {
  plan_fault(SystemCall::kCommit, 1, ENOSPC);
  plan_fault(SystemCall::kCommit, 2, ENOMEM);
  EXPECT_EQ(planned_fault(SystemCall::kCommit), 0);
  EXPECT_EQ(planned_fault(SystemCall::kCommit), ENOMEM);
}

TEST_F(FaultPlan, OneThreadOfManyMeetsTheFault) {
  plan_fault(SystemCall::kCommit, 100, ENOSPC);
  std::atomic<int> failed{0};
  run_on_threads(4, [&](int) {
    for (int i = 0; i < 50; ++i) failed += planned_fault(SystemCall::kCommit) != 0 ? 1 : 0;
  });
  EXPECT_EQ(failed, 1);
}

TEST_F(FaultPlan, GuardTellsWhetherTheFaultHappened) {
  {
    const PlannedFault fault(SystemCall::kCommit, 2, ENOSPC);
    EXPECT_EQ(planned_fault(SystemCall::kCommit), 0);
    EXPECT_FALSE(fault.happened());
  }
  const PlannedFault fault(SystemCall::kCommit, 1, ENOSPC);
  EXPECT_EQ(planned_fault(SystemCall::kCommit), ENOSPC);
  EXPECT_TRUE(fault.happened());
}

}  // namespace
}  // namespace understudy::platform
