// SPDX-License-Identifier: Apache-2.0
//
// The failure mode STOP: one failed task ends the work of all streams of its context.
// Covers: ERR-11, STREAM-18, STREAM-25.
#include <optional>

#include "rules/stream_tasks.h"

namespace understudy_test {
namespace {

void expect_failed(aclrtStream stream) {
  EXPECT_FAILS(ACL_ERROR_RT_SYS_DMA, aclrtSynchronizeStreamWithTimeout(stream, kLongLimit));
}

class StopMode : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    context_.emplace(0);
    ASSERT_SUCCESS(aclrtSetStreamFailureMode(nullptr, ACL_STOP_ON_FAILURE));
  }
  void TearDown() override {
    context_.reset();
    DeviceTest::TearDown();
  }

  void fail_on(aclrtStream stream) {
    FailingTask task;
    task.queue_on(stream);
    expect_failed(stream);
  }
  void expect_stopped(aclrtStream stream) {
    TargetPage page;
    (void)recent_error();
    EXPECT_TRUE(fails_with(ACL_ERROR_RT_SYS_DMA, page.try_set(stream, 5), "aclrtMemsetAsync"));
    TaskCounter counter;
    EXPECT_FAILS(ACL_ERROR_RT_SYS_DMA, aclrtLaunchHostFunc(stream, TaskCounter::run, &counter));
    for (int i = 0; i < 3; ++i) expect_failed(stream);
    EXPECT_TRUE(page.holds(TargetPage::kInitial));
    EXPECT_EQ(counter.runs(), 0);
  }
  void expect_runs(aclrtStream stream) {
    TargetPage page;
    page.queue_set(stream, 5);
    expect_finishes(stream);
    EXPECT_TRUE(page.holds(5));
  }

  std::optional<ContextScope> context_;
};

TEST_F(StopMode, STREAM_25_AFailureDropsTheTasksOfEveryStreamOfTheContext) {
  const TestStream failing;
  const TestStream other;
  FailingTask task;
  TargetPage page;
  TaskCounter behind_the_failure;
  TaskCounter on_other;
  {
    WordGate word;
    Gate gate(other.get());
    gate.wait_until_reached();
    on_other.queue_on(other.get());
    page.queue_set(other.get(), 5);
    word.hold(failing.get());
    task.queue_on(failing.get());
    behind_the_failure.queue_on(failing.get());
    word.open();
    expect_failed(failing.get());
  }
  expect_failed(other.get());
  EXPECT_EQ(behind_the_failure.runs(), 0);
  EXPECT_EQ(on_other.runs(), 0);
  EXPECT_TRUE(page.holds(TargetPage::kInitial));
  task.expect_nothing_written();
}

TEST_F(StopMode, STREAM_25_TheErrorComesAgainAndAgain) {
  const TestStream failing;
  const TestStream other;
  fail_on(failing.get());
  expect_stopped(failing.get());
  expect_stopped(other.get());
  expect_stopped(nullptr);
}

TEST_F(StopMode, STREAM_25_STREAM_18_AbortClearsTheErrorOfItsStream) {
  const TestStream failing;
  const TestStream other;
  fail_on(failing.get());
  EXPECT_SUCCESS(aclrtStreamAbort(failing.get()));
  expect_runs(failing.get());
  expect_stopped(other.get());
  EXPECT_SUCCESS(aclrtStreamAbort(other.get()));
  expect_runs(other.get());
  EXPECT_EQ(failure_mode_of(failing.get()), ACL_STOP_ON_FAILURE) << "the mode stays";
  fail_on(failing.get());
  expect_stopped(failing.get());
}

TEST_F(StopMode, STREAM_25_ERR_11_AbortingTheDeviceClearsEveryStream) {
  const TestStream failing;
  const TestStream other;
  fail_on(failing.get());
  EXPECT_SUCCESS(aclrtDeviceTaskAbort(0, 0));
  for (const aclrtStream stream : {failing.get(), other.get(), aclrtStream{nullptr}}) {
    expect_runs(stream);
  }
}

TEST_F(StopMode, STREAM_25_OtherContextsGoOn) {
  const TestStream failing;
  context_->leave();
  TestStream elsewhere;
  WordGate word;
  TaskCounter counter;
  word.hold(elsewhere.get());
  counter.queue_on(elsewhere.get());
  context_->enter();
  fail_on(failing.get());
  context_->leave();
  word.open();
  expect_finishes(elsewhere.get());
  EXPECT_EQ(counter.runs(), 1);
  expect_runs(nullptr);
  FailingTask task;
  task.queue_on(elsewhere.get());
  expect_failed(elsewhere.get());
  expect_finishes(elsewhere.get());
  elsewhere.destroy();
  context_->enter();
}

}  // namespace
}  // namespace understudy_test
