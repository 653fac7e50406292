// SPDX-License-Identifier: Apache-2.0
#include "stream/worker_counts.h"

#include <gtest/gtest.h>

namespace understudy {
namespace {

using Call = WorkerCounts::Call;

TEST(WorkerCounts, NewWorkersAreCalledUpToTheLimit) {
  WorkerCounts counts(2);
  EXPECT_FALSE(counts.has_worker());
  EXPECT_EQ(counts.call(), Call::kNewWorker);
  EXPECT_TRUE(counts.has_worker());
  EXPECT_EQ(counts.call(), Call::kNewWorker);
  EXPECT_EQ(counts.call(), Call::kNone);
}

TEST(WorkerCounts, WorkerThatCouldNotBeStartedIsCalledAgain) {
  WorkerCounts counts(1);
  ASSERT_EQ(counts.call(), Call::kNewWorker);
  counts.remove_worker();
  EXPECT_EQ(counts.call(), Call::kNewWorker);
}

TEST(WorkerCounts, WorkerThatLooksOutMakesCallsUnnecessary) {
  WorkerCounts counts(2);
  counts.add_worker();
  counts.begin_looking_out();
  EXPECT_EQ(counts.call(), Call::kNone);
  counts.end_looking_out();
  EXPECT_EQ(counts.call(), Call::kNewWorker);
}

TEST(WorkerCounts, WorkerThatDozesLooksInByItselfUnlessItIsUrgent) {
  WorkerCounts counts(2);
  counts.add_worker();
  ASSERT_TRUE(counts.try_doze());
  EXPECT_EQ(counts.call(), Call::kNone);
  EXPECT_EQ(counts.call(WorkerCounts::Urgency::kNow), Call::kDozer);
  // Once is enough.
  EXPECT_EQ(counts.call(WorkerCounts::Urgency::kNow), Call::kNone);
  counts.end_dozing();
  EXPECT_EQ(counts.call(), Call::kNewWorker);
}

TEST(WorkerCounts, OneWorkerDozesAtATime) {
  WorkerCounts counts(2);
  counts.add_worker();
  counts.add_worker();
  ASSERT_TRUE(counts.try_doze());
  EXPECT_FALSE(counts.try_doze());
  counts.end_dozing();
  EXPECT_TRUE(counts.try_doze());
  EXPECT_EQ(counts.call(WorkerCounts::Urgency::kNow), Call::kDozer);
}

TEST(WorkerCounts, SleeperIsCalledOnceUntilItIsUp) {
  WorkerCounts counts(2);
  counts.add_worker();
  counts.fall_asleep();
  EXPECT_EQ(counts.call(), Call::kSleeper);
  // It takes up what comes meanwhile, and calls another one if that is too much.
  EXPECT_EQ(counts.call(), Call::kNone);
  counts.wake_up();
  EXPECT_EQ(counts.call(), Call::kNewWorker);
}

TEST(WorkerCounts, WorkersInUserCodeDoNotCount) {
  WorkerCounts counts(1);
  counts.add_worker();
  EXPECT_EQ(counts.call(), Call::kNone);
  counts.enter_user_code();
  EXPECT_EQ(counts.call(), Call::kNewWorker);
  EXPECT_FALSE(counts.has_too_many());
  counts.leave_user_code();
  EXPECT_TRUE(counts.has_too_many());
  counts.remove_worker();
  EXPECT_FALSE(counts.has_too_many());
}

}  // namespace
}  // namespace understudy
