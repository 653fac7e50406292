// SPDX-License-Identifier: Apache-2.0
#include "stream/reports.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "unit/stream/stream_test_base.h"

namespace understudy {
namespace {

constexpr uint64_t kThread = 1001;  // as programs name threads
constexpr uint64_t kOtherThread = 1002;

class ReportsTest : public StreamTestBase {
 protected:
  Reports& reports() { return streams().reports(); }
  enum class Later { kGoesOn, kWaits };
  Task callback(Later later) {
    Task task(TaskKind::kReport, 0);
    task.user = {.function = count_call, .argument = &calls_, .blocks = later == Later::kWaits};
    return task;
  }
  void subscribe(const StreamReference& stream, uint64_t thread = kThread) {
    ASSERT_TRUE(is_ok(reports().subscribe(stream, thread)));
  }
  // Runs one callback as a subscribed thread does.
  void serve(uint64_t thread = kThread) {
    const Report report = value_of(reports().take(thread, kNever));
    report.callback.function(report.callback.argument);
    reports().answer(report);
  }
  Result<Report> take_now() { return reports().take(kThread, Clock::now()); }

  const StreamReference stream_ = make_stream();
};

// ---- Subscribing ----

TEST_F(ReportsTest, StreamHasOneSubscriber) {
  subscribe(stream_);
  EXPECT_TRUE(fails_with(reports().subscribe(stream_, kThread), ErrorCode::kStreamSubscription));
  EXPECT_TRUE(fails_with(reports().subscribe(stream_, kOtherThread), ErrorCode::kInvalidParam));
  EXPECT_TRUE(is_ok(reports().check_subscribed(stream_)));
}

TEST_F(ReportsTest, ThreadServesManyStreamsOfOneDevice) {
  subscribe(stream_);
  subscribe(make_stream());
  const StreamReference elsewhere = make_stream({.device = 1});
  EXPECT_TRUE(fails_with(reports().subscribe(elsewhere, kThread), ErrorCode::kInvalidParam));
  subscribe(elsewhere, kOtherThread);
}

TEST_F(ReportsTest, ThreadThatServesNothingAnyMoreMayServeAnotherDevice) {
  subscribe(stream_);
  ASSERT_TRUE(is_ok(reports().unsubscribe(stream_, kThread)));
  subscribe(make_stream({.device = 1}));
}

TEST_F(ReportsTest, OnlyTheSubscribedThreadCanBeUnsubscribed) {
  EXPECT_TRUE(fails_with(reports().unsubscribe(stream_, kThread), ErrorCode::kStreamSubscription));
  subscribe(stream_);
  EXPECT_TRUE(
      fails_with(reports().unsubscribe(stream_, kOtherThread), ErrorCode::kThreadSubscription));
  subscribe(make_stream(), kOtherThread);
  EXPECT_TRUE(
      fails_with(reports().unsubscribe(stream_, kOtherThread), ErrorCode::kThreadSubscription));
  EXPECT_TRUE(is_ok(reports().unsubscribe(stream_, kThread)));
  EXPECT_TRUE(fails_with(reports().check_subscribed(stream_), ErrorCode::kNoCallbackThread));
}

TEST_F(ReportsTest, StreamHasEitherASubscriberOrHostFunctions) {
  ASSERT_TRUE(is_ok(reports().claim_for_host_functions(stream_)));
  EXPECT_TRUE(is_ok(reports().claim_for_host_functions(stream_)));
  EXPECT_TRUE(fails_with(reports().subscribe(stream_, kThread), ErrorCode::kStreamSubscription));
  EXPECT_TRUE(fails_with(reports().unsubscribe(stream_, kThread), ErrorCode::kStreamSubscription));
  EXPECT_TRUE(fails_with(reports().check_subscribed(stream_), ErrorCode::kStreamSubscription));
  const StreamReference other = make_stream();
  subscribe(other);
  EXPECT_TRUE(
      fails_with(reports().claim_for_host_functions(other), ErrorCode::kStreamSubscription));
}

TEST_F(ReportsTest, NextStreamOfASlotStartsAfresh) {
  ASSERT_TRUE(is_ok(reports().claim_for_host_functions(stream_)));
  ASSERT_TRUE(is_ok(streams().destroy(stream_)));
  const StreamReference next = make_stream();
  ASSERT_EQ(next.stream, stream_.stream);
  subscribe(next);
  ASSERT_TRUE(is_ok(streams().destroy(next)));
  EXPECT_TRUE(fails_with(take_now(), ErrorCode::kThreadSubscription));
  EXPECT_TRUE(is_ok(reports().claim_for_host_functions(make_stream())));
}

// ---- Taking ----

TEST_F(ReportsTest, ThreadWithoutASubscriptionHasNothingToTake) {
  EXPECT_TRUE(fails_with(take_now(), ErrorCode::kThreadSubscription));
}

TEST_F(ReportsTest, NothingComesBeforeTheDeadline) {
  subscribe(stream_);
  EXPECT_TRUE(fails_with(take_now(), ErrorCode::kReportTimeout));
  EXPECT_TRUE(fails_with(reports().take(kThread, deadline_after(std::chrono::milliseconds(1))),
                         ErrorCode::kReportTimeout));
}

TEST_F(ReportsTest, ReportsOfAllStreamsOfAThreadComeInOrder) {
  const StreamReference other = make_stream();
  subscribe(stream_);
  subscribe(other);
  EXPECT_TRUE(reports().send(*stream_.stream, 1, {}));
  EXPECT_TRUE(reports().send(*other.stream, 1, {}));
  EXPECT_TRUE(reports().send(*stream_.stream, 2, {}));
  const Report first = value_of(take_now());
  const Report second = value_of(take_now());
  const Report third = value_of(take_now());
  EXPECT_EQ(first.stream, stream_.stream);
  EXPECT_EQ(second.stream, other.stream);
  EXPECT_EQ(third.stream, stream_.stream);
  EXPECT_EQ(third.position, 2u);
}

TEST_F(ReportsTest, ReportForAStreamWithoutAThreadGoesNowhere) {
  EXPECT_FALSE(reports().send(*stream_.stream, 1, {}));
}

TEST_F(ReportsTest, SleepingThreadIsWokenByAReport) {
  subscribe(stream_);
  std::thread thread([&] { serve(); });
  submit(stream_, callback(Later::kWaits));
  thread.join();
  expect_synchronized(stream_);
  EXPECT_EQ(calls_.load(), 1);
}

TEST_F(ReportsTest, SleepingThreadHearsThatItServesNothingAnyMore) {
  subscribe(stream_);
  std::atomic<bool> sleeps{false};
  std::thread thread([&] {
    sleeps.store(true);
    EXPECT_TRUE(fails_with(reports().take(kThread, kNever), ErrorCode::kThreadSubscription));
  });
  wait_for([&] { return sleeps.load(); });
  EXPECT_TRUE(is_ok(reports().unsubscribe(stream_, kThread)));
  thread.join();
}

// ---- Tasks ----

TEST_F(ReportsTest, BlockingCallbackParksItsStreamUntilItHasRun) {
  subscribe(stream_);
  submit(stream_, callback(Later::kWaits));
  submit(stream_, setting(memory_, 6));
  wait_until_parked(stream_);
  EXPECT_EQ(byte_at(0), 0);
  serve();
  expect_synchronized(stream_);
  EXPECT_EQ(byte_at(0), 6);
}

TEST_F(ReportsTest, CallbackThatDoesNotBlockLetsLaterTasksRun) {
  subscribe(stream_);
  submit(stream_, callback(Later::kGoesOn));
  submit(stream_, setting(memory_, 6));
  expect_synchronized(stream_);
  EXPECT_EQ(calls_.load(), 0);
  serve();
  EXPECT_EQ(calls_.load(), 1);
}

TEST_F(ReportsTest, CallbackIsSentOutOnceHoweverOftenItsStreamIsWoken) {
  subscribe(stream_);
  submit(stream_, callback(Later::kWaits));
  for (int i = 0; i < 10; ++i) {
    wait_until_parked(stream_);
    streams().wait_graph().wake(*stream_.stream);
  }
  serve();
  expect_synchronized(stream_);
  EXPECT_TRUE(fails_with(take_now(), ErrorCode::kReportTimeout));
}

TEST_F(ReportsTest, CallbackWithoutAThreadIsAFailureAndTheRestRuns) {
  submit(stream_, callback(Later::kWaits));
  submit(stream_, setting(memory_, 6));
  EXPECT_TRUE(fails_with(streams().synchronize(stream_), ErrorCode::kNoCallbackThread));
  EXPECT_EQ(byte_at(0), 6);
}

TEST_F(ReportsTest, UnsubscribingDropsCallbacksAndTheStreamHearsOfIt) {
  subscribe(stream_);
  submit(stream_, callback(Later::kWaits));
  wait_until_parked(stream_);
  EXPECT_TRUE(is_ok(reports().unsubscribe(stream_, kThread)));
  EXPECT_TRUE(fails_with(streams().synchronize(stream_), ErrorCode::kNoCallbackThread));
  EXPECT_EQ(calls_.load(), 0);
}

TEST_F(ReportsTest, UnsubscribingWithNothingOutIsNoFailure) {
  subscribe(stream_);
  submit(stream_, callback(Later::kWaits));
  serve();
  expect_synchronized(stream_);
  EXPECT_TRUE(is_ok(reports().unsubscribe(stream_, kThread)));
  expect_synchronized(stream_);
}

TEST_F(ReportsTest, AbortDropsTheReportsOfItsStreamAlone) {
  const StreamReference other = make_stream();
  subscribe(stream_);
  subscribe(other);
  submit(stream_, callback(Later::kWaits));
  submit(other, callback(Later::kWaits));
  wait_until_parked(stream_);
  wait_until_parked(other);
  streams().abort(stream_);
  EXPECT_TRUE(streams().is_complete(stream_));
  const Report report = value_of(take_now());
  EXPECT_EQ(report.stream, other.stream);
  reports().answer(report);
  expect_synchronized(other);
  EXPECT_TRUE(fails_with(take_now(), ErrorCode::kReportTimeout));
}

TEST_F(ReportsTest, AnswerForATaskThatWasDroppedDoesNoHarm) {
  subscribe(stream_);
  submit(stream_, callback(Later::kWaits));
  const Report report = value_of(reports().take(kThread, kNever));
  streams().abort(stream_);
  park(stream_, make_event());
  reports().answer(report);
  EXPECT_TRUE(stays([&] { return !streams().is_complete(stream_); }));
  streams().abort(stream_);
}

TEST_F(ReportsTest, StopEndsTheWaitForACallback) {
  subscribe(stream_);
  submit(stream_, callback(Later::kWaits));
  submit(stream_, setting(memory_, 6));
  wait_until_parked(stream_);
  streams().stop_front(stream_);
  expect_synchronized(stream_);
  EXPECT_EQ(byte_at(0), 6);
}

TEST_F(ReportsTest, DestroyedStreamTakesItsReportsAlong) {
  const StreamReference other = make_stream();
  subscribe(stream_);
  subscribe(other);
  submit(stream_, callback(Later::kWaits));
  wait_until_parked(stream_);
  ASSERT_TRUE(is_ok(streams().destroy_at_once(stream_)));
  EXPECT_TRUE(fails_with(take_now(), ErrorCode::kReportTimeout));
}

TEST_F(ReportsTest, ThreadServesManyCallbacksOfManyStreams) {
  constexpr int kStreams = 4;
  constexpr int kCallbacks = 100;
  for (int i = 0; i < kStreams; ++i) {
    const StreamReference stream = make_stream();
    subscribe(stream);
    for (int j = 0; j < kCallbacks; ++j) {
      submit(stream, callback(j % 2 == 0 ? Later::kWaits : Later::kGoesOn));
    }
  }
  for (int i = 0; i < kStreams * kCallbacks; ++i) serve();
  EXPECT_TRUE(is_ok(streams().synchronize_owner(kOwner)));
  EXPECT_EQ(calls_.load(), kStreams * kCallbacks);
}

}  // namespace
}  // namespace understudy
