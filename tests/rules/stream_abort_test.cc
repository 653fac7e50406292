// SPDX-License-Identifier: Apache-2.0
//
// Aborting a stream drops all of its tasks; stopping it ends the running one and keeps the rest.
// Covers: STREAM-18, STREAM-19.
#include <chrono>
#include <thread>

#include "rules/stream_tasks.h"

namespace understudy_test {
namespace {

using StreamAbort = DeviceTest;
using StreamStop = DeviceTest;

void expect_usable(aclrtStream stream) {
  TargetPage page;
  TaskCounter counter;
  page.queue_set(stream, 3);
  counter.queue_on(stream);
  expect_finishes(stream);
  EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_COMPLETE);
  EXPECT_TRUE(page.holds(3));
  EXPECT_EQ(counter.runs(), 1);
}

TEST_F(StreamAbort, STREAM_18_AnIdleStreamStaysUsable) {
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    SCOPED_TRACE(stream);
    EXPECT_SUCCESS(aclrtStreamAbort(stream));
    EXPECT_SUCCESS(aclrtStreamAbort(stream));
    expect_usable(stream);
  }
}

TEST_F(StreamAbort, STREAM_18_ARunningWaitIsStoppedAndTheQueueDropped) {
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    SCOPED_TRACE(stream);
    TargetPage page;
    TaskCounter counter;
    WordGate word;
    word.hold(stream);
    page.queue_set(stream, 5);
    counter.queue_on(stream);
    EXPECT_SUCCESS(aclrtStreamAbort(stream));
    expect_finishes(stream);
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_COMPLETE);
    word.open();
    expect_usable(stream);
    EXPECT_EQ(counter.runs(), 0);
    EXPECT_TRUE(page.holds(TargetPage::kInitial));
  }
}

TEST_F(StreamAbort, STREAM_18_AWaitForAnEventIsStoppedToo) {
  const TestStream stream;
  const TestStream held;
  const TestEvent event;
  TaskCounter counter;
  Gate gate(held.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), held.get()));
  EXPECT_SUCCESS(aclrtStreamWaitEvent(stream.get(), event.get()));
  counter.queue_on(stream.get());
  EXPECT_SUCCESS(aclrtStreamAbort(stream.get()));
  expect_usable(stream.get());
  EXPECT_EQ(counter.runs(), 0);
  EXPECT_EQ(stream_status(held.get()), ACL_STREAM_STATUS_NOT_READY) << "the other stream goes on";
}

TEST_F(StreamAbort, STREAM_18_NullAndTheHandleAreOneStream) {
  WordGate word;
  TaskCounter counter;
  word.hold(nullptr);
  counter.queue_on(nullptr);
  EXPECT_SUCCESS(aclrtStreamAbort(runtime::default_stream()));
  expect_finishes(nullptr);
  word.hold(runtime::default_stream());
  counter.queue_on(runtime::default_stream());
  EXPECT_SUCCESS(aclrtStreamAbort(nullptr));
  expect_finishes(runtime::default_stream());
  EXPECT_EQ(counter.runs(), 0);
}

TEST_F(StreamAbort, STREAM_18_ARunningFunctionIsNotWaitedFor) {
  const TestStream stream;
  TaskCounter dropped;
  TaskCounter queued_afterwards;
  Gate gate(stream.get());
  gate.wait_until_reached();
  dropped.queue_on(stream.get());
  WaitingCall abort([&] { return aclrtStreamAbort(stream.get()); });
  EXPECT_TRUE(abort.ends()) << "it waits for the function";
  queued_afterwards.queue_on(stream.get());
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
  EXPECT_EQ(queued_afterwards.runs(), 0) << "it overtook the function";
  gate.open();
  EXPECT_EQ(abort.code(), ACL_SUCCESS) << abort.text();
  expect_finishes(stream.get());
  EXPECT_EQ(dropped.runs(), 0);
  EXPECT_EQ(queued_afterwards.runs(), 1);
}

TEST_F(StreamAbort, STREAM_18_OtherStreamsKeepTheirTasks) {
  const TestStream aborted;
  const TestStream other;
  TaskCounter on_other;
  TaskCounter on_default;
  WordGate word;
  for (const aclrtStream stream : {aborted.get(), other.get(), aclrtStream{nullptr}}) {
    word.hold(stream);
  }
  on_other.queue_on(other.get());
  on_default.queue_on(nullptr);
  EXPECT_SUCCESS(aclrtStreamAbort(aborted.get()));
  EXPECT_EQ(stream_status(other.get()), ACL_STREAM_STATUS_NOT_READY);
  EXPECT_EQ(stream_status(nullptr), ACL_STREAM_STATUS_NOT_READY);
  word.open();
  expect_finishes(other.get());
  expect_finishes(nullptr);
  EXPECT_EQ(on_other.runs(), 1);
  EXPECT_EQ(on_default.runs(), 1);
}

TEST_F(StreamAbort, STREAM_18_SynchronisationsMeanwhileReturnTheAbort) {
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    SCOPED_TRACE(stream);
    EXPECT_EQ(code_of_interrupted(
                  {stream}, [&] { return aclrtSynchronizeStreamWithTimeout(stream, kLongLimit); },
                  [&] { EXPECT_SUCCESS(aclrtStreamAbort(stream)); }),
              ACL_ERROR_RT_STREAM_ABORT);
    expect_finishes(stream);
    expect_usable(stream);
  }
}

TEST_F(StreamAbort, STREAM_18_SynchronisationsWithoutALimitReturnTheAbort) {
  const TestStream stream;
  EXPECT_EQ(code_of_interrupted(
                {stream.get()}, [&] { return aclrtSynchronizeStream(stream.get()); },
                [&] { EXPECT_SUCCESS(aclrtStreamAbort(stream.get())); }),
            ACL_ERROR_RT_STREAM_ABORT);
  expect_usable(stream.get());
}

TEST_F(StreamAbort, STREAM_18_SynchronisationsOfOtherStreamsGoOn) {
  const TestStream aborted;
  const TestStream other;
  WordGate word;
  word.hold(aborted.get());
  word.hold(other.get());
  WaitingCall waiting([&] { return aclrtSynchronizeStreamWithTimeout(other.get(), kLongLimit); });
  EXPECT_TRUE(waiting.waits());
  EXPECT_SUCCESS(aclrtStreamAbort(aborted.get()));
  EXPECT_TRUE(waiting.waits());
  word.open();
  EXPECT_EQ(waiting.code(), ACL_SUCCESS) << waiting.text();
}

TEST_F(StreamAbort, STREAM_18_AFailureIsForgotten) {
  const TestStream stream;
  const TestEvent event;
  FailingTask task;
  task.queue_on(stream.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(event.get(), kLongLimit));
  EXPECT_SUCCESS(aclrtStreamAbort(stream.get()));
  expect_finishes(stream.get());
  expect_usable(stream.get());
}

// ---- Stopping ----

// Only what runs can be stopped, and nothing tells when a queued wait has begun: stops until the
// task behind it runs.
void stop_until_run(aclrtStream stream, const TaskCounter& behind) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLongLimit);
  while (behind.runs() == 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), limit) << "the wait goes on";
    ASSERT_SUCCESS(aclrtStreamStop(stream));
    std::this_thread::yield();
  }
}

TEST_F(StreamStop, STREAM_19_NullIsRefused) {
  WordGate word;
  word.hold(nullptr);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtStreamStop(nullptr));
  EXPECT_EQ(stream_status(nullptr), ACL_STREAM_STATUS_NOT_READY)
      << "the default stream was stopped";
  word.open();
  expect_finishes(nullptr);
}

TEST_F(StreamStop, STREAM_19_AnIdleStreamStaysUsable) {
  const TestStream stream;
  EXPECT_SUCCESS(aclrtStreamStop(stream.get()));
  expect_usable(stream.get());
}

TEST_F(StreamStop, STREAM_19_AWaitForAValueEndsAndTheQueueRuns) {
  const TestStream stream;
  const TestStream other;
  TargetPage page;
  TaskCounter behind;
  WordGate word;
  word.hold(stream.get());
  word.hold(other.get());
  behind.queue_on(stream.get());
  stop_until_run(stream.get(), behind);
  page.queue_set(stream.get(), 5);
  expect_finishes(stream.get());
  EXPECT_EQ(behind.runs(), 1);
  EXPECT_TRUE(page.holds(5));
  EXPECT_EQ(stream_status(other.get()), ACL_STREAM_STATUS_NOT_READY) << "another stream's wait";
}

TEST_F(StreamStop, STREAM_19_AWaitForAnEventEndsAndTheQueueRuns) {
  const TestStream stream;
  const TestStream held;
  const TestEvent event;
  TaskCounter behind;
  Gate gate(held.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), held.get()));
  EXPECT_SUCCESS(aclrtStreamWaitEvent(stream.get(), event.get()));
  behind.queue_on(stream.get());
  stop_until_run(stream.get(), behind);
  expect_finishes(stream.get());
  EXPECT_EQ(event_status(event.get()), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  EXPECT_EQ(stream_status(held.get()), ACL_STREAM_STATUS_NOT_READY);
}

}  // namespace
}  // namespace understudy_test
