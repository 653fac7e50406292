// SPDX-License-Identifier: Apache-2.0
//
// Synchronising and querying streams: what is waited for, for how long, and what is never waited
// for.
// Covers: STREAM-09, STREAM-10, STREAM-11, STREAM-12, STREAM-13.
#include <chrono>
#include <future>
#include <limits>

#include "rules/stream_tasks.h"

namespace understudy_test {
namespace {

using StreamSynchronization = DeviceTest;

struct SynchronizeFunction {
  const char* name;
  aclError (*call)(aclrtStream stream);
};
constexpr SynchronizeFunction kSynchronizeFunctions[] = {
    {"aclrtSynchronizeStream", aclrtSynchronizeStream},
    {"aclrtSynchronizeStreamWithTimeout",
     [](aclrtStream stream) { return aclrtSynchronizeStreamWithTimeout(stream, -1); }},
    {"aclrtSynchronizeStreamWithTimeout",
     [](aclrtStream stream) { return aclrtSynchronizeStreamWithTimeout(stream, kLongLimit); }},
};

TEST_F(StreamSynchronization, STREAM_09_AnIdleStreamIsDone) {
  const TestStream stream;
  for (const SynchronizeFunction& synchronize : kSynchronizeFunctions) {
    SCOPED_TRACE(synchronize.name);
    EXPECT_SUCCESS(synchronize.call(stream.get()));
    EXPECT_SUCCESS(synchronize.call(nullptr));
    EXPECT_SUCCESS(synchronize.call(runtime::default_stream()));
  }
}

TEST_F(StreamSynchronization, STREAM_09_ItReturnsWhenTheTasksAreDone) {
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    for (const SynchronizeFunction& synchronize : kSynchronizeFunctions) {
      SCOPED_TRACE(synchronize.name);
      TargetPage page;
      TaskCounter counter;
      Gate gate(stream);
      page.queue_set(stream, 9);
      counter.queue_on(stream);
      WaitingCall waiting([&] { return synchronize.call(stream); });
      EXPECT_TRUE(waiting.waits());
      EXPECT_EQ(counter.runs(), 0);
      EXPECT_TRUE(page.holds(TargetPage::kInitial));
      gate.open();
      EXPECT_EQ(waiting.code(), ACL_SUCCESS) << waiting.text();
      EXPECT_EQ(counter.runs(), 1);
      EXPECT_TRUE(page.holds(9));
    }
  }
}

TEST_F(StreamSynchronization, STREAM_09_TasksQueuedLaterAreNotWaitedFor) {
  const TestStream stream;
  Gate first(stream.get());
  WaitingCall waiting([&] { return aclrtSynchronizeStreamWithTimeout(stream.get(), kLongLimit); });
  EXPECT_TRUE(waiting.waits());
  Gate second(stream.get());
  first.open();
  EXPECT_EQ(waiting.code(), ACL_SUCCESS) << waiting.text();
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
}

TEST_F(StreamSynchronization, STREAM_09_OtherStreamsAreNotWaitedFor) {
  const TestStream held;
  const TestStream idle;
  Gate gate(held.get());
  expect_finishes(idle.get());
  expect_finishes(nullptr);
  EXPECT_EQ(stream_status(held.get()), ACL_STREAM_STATUS_NOT_READY);
}

TEST_F(StreamSynchronization, STREAM_09_NullIsTheDefaultStreamOfTheContext) {
  Gate gate(nullptr);
  for (const aclrtStream name : {aclrtStream{nullptr}, runtime::default_stream()}) {
    SCOPED_TRACE(name);
    EXPECT_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                 aclrtSynchronizeStreamWithTimeout(name, kShortLimit));
  }
  {
    const ContextScope other(0);
    expect_finishes(nullptr);
  }
  gate.open();
  expect_finishes(nullptr);
}

TEST_F(StreamSynchronization, STREAM_09_SeveralThreadsMayWait) {
  const TestStream stream;
  TaskCounter counter;
  Gate gate(stream.get());
  counter.queue_on(stream.get());
  WaitingCall first([&] { return aclrtSynchronizeStream(stream.get()); });
  WaitingCall second([&] { return aclrtSynchronizeStreamWithTimeout(stream.get(), kLongLimit); });
  EXPECT_TRUE(first.waits());
  EXPECT_TRUE(second.waits());
  gate.open();
  EXPECT_EQ(first.code(), ACL_SUCCESS) << first.text();
  EXPECT_EQ(second.code(), ACL_SUCCESS) << second.text();
  EXPECT_EQ(counter.runs(), 1);
}

TEST_F(StreamSynchronization, STREAM_10_AFailedTaskIsReported) {
  const TestStream created;
  FailingTask task;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    for (const SynchronizeFunction& synchronize : kSynchronizeFunctions) {
      SCOPED_TRACE(synchronize.name);
      task.queue_on(stream);
      (void)recent_error();
      EXPECT_TRUE(fails_with(ACL_ERROR_RT_SYS_DMA, synchronize.call(stream), synchronize.name));
      EXPECT_SUCCESS(synchronize.call(stream));
    }
  }
  task.expect_nothing_written();
}

TEST_F(StreamSynchronization, STREAM_11_BadLimitsAreRefused) {
  const TestStream idle;
  const TestStream held;
  Gate gate(held.get());
  for (const aclrtStream stream : {idle.get(), held.get(), aclrtStream{nullptr}}) {
    for (const int32_t limit : {0, -2, -100, std::numeric_limits<int32_t>::min()}) {
      SCOPED_TRACE(limit);
      EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeStreamWithTimeout(stream, limit));
    }
  }
  EXPECT_EQ(stream_status(held.get()), ACL_STREAM_STATUS_NOT_READY);
}

TEST_F(StreamSynchronization, STREAM_11_WhenTheTimeIsOverTheTasksStayQueued) {
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    SCOPED_TRACE(stream);
    TargetPage page;
    TaskCounter counter;
    Gate gate(stream);
    page.queue_set(stream, 9);
    counter.queue_on(stream);
    for (int i = 0; i < 3; ++i) {
      EXPECT_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                   aclrtSynchronizeStreamWithTimeout(stream, kShortLimit));
    }
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_NOT_READY);
    EXPECT_EQ(counter.runs(), 0);
    gate.open();
    expect_finishes(stream);
    EXPECT_EQ(counter.runs(), 1);
    EXPECT_TRUE(page.holds(9));
  }
}

TEST_F(StreamSynchronization, STREAM_11_AnIdleStreamNeedsNoTime) {
  const TestStream stream;
  for (const int32_t limit : {-1, 1, std::numeric_limits<int32_t>::max()}) {
    SCOPED_TRACE(limit);
    EXPECT_SUCCESS(aclrtSynchronizeStreamWithTimeout(stream.get(), limit));
    EXPECT_SUCCESS(aclrtSynchronizeStreamWithTimeout(nullptr, limit));
  }
}

TEST_F(StreamSynchronization, STREAM_12_SomeStreamsAreAlwaysDone) {
  for (const uint32_t flags : {ACL_STREAM_CPU_SCHEDULE, ACL_STREAM_DEVICE_USE_ONLY,
                               ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_FAST_SYNC}) {
    SCOPED_TRACE(flags);
    const TestStream stream(0, flags);
    std::promise<void> ran;
    Gate gate(stream.get());
    gate.wait_until_reached();
    EXPECT_SUCCESS(aclrtLaunchHostFunc(
        stream.get(), [](void* promise) { static_cast<std::promise<void>*>(promise)->set_value(); },
        &ran));
    EXPECT_SUCCESS(aclrtSynchronizeStreamWithTimeout(stream.get(), kShortLimit));
    {
      WaitingCall synchronize([&] { return aclrtSynchronizeStream(stream.get()); });
      EXPECT_TRUE(synchronize.ends());
      EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_COMPLETE);
      gate.open();
      EXPECT_EQ(synchronize.code(), ACL_SUCCESS) << synchronize.text();
    }
    EXPECT_EQ(ran.get_future().wait_for(std::chrono::milliseconds(kLongLimit)),
              std::future_status::ready)
        << "the tasks run all the same";
  }
}

TEST_F(StreamSynchronization, STREAM_13_APlaceForTheStatusIsNeeded) {
  const TestStream stream;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtStreamQuery(stream.get(), nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtStreamQuery(nullptr, nullptr));
  on_bare_thread([] { EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtStreamQuery(nullptr, nullptr)); });
}

TEST_F(StreamSynchronization, STREAM_13_TheStatusSaysWhetherSomethingIsPending) {
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    SCOPED_TRACE(stream);
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_COMPLETE);
    TargetPage page;
    Gate gate(stream);
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_NOT_READY) << "queued or running";
    gate.wait_until_reached();
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_NOT_READY) << "running";
    page.queue_set(stream, 9);
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_NOT_READY);
    gate.open();
    expect_finishes(stream);
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_COMPLETE);
  }
}

TEST_F(StreamSynchronization, STREAM_13_QueryingUntilTheEndIsEnough) {
  const TestStream stream;
  TargetPage page;
  WordGate word;
  word.hold(stream.get());
  page.queue_set(stream.get(), 9);
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
  word.open();
  // Queries that all say NOT_READY would be a hang; a minute is beyond any doubt.
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLongLimit);
  while (stream_status(stream.get()) != ACL_STREAM_STATUS_COMPLETE) {
    ASSERT_LT(std::chrono::steady_clock::now(), limit);
    std::this_thread::yield();
  }
  EXPECT_TRUE(page.holds(9));
}

TEST_F(StreamSynchronization, STREAM_13_AFailedTaskIsNotTheQuerysBusiness) {
  const TestStream stream;
  FailingTask task;
  task.queue_on(stream.get());
  const TestEvent event;
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(event.get(), kLongLimit));
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLongLimit);
  while (stream_status(stream.get()) != ACL_STREAM_STATUS_COMPLETE) {
    ASSERT_LT(std::chrono::steady_clock::now(), limit);
    std::this_thread::yield();
  }
  EXPECT_FAILS(ACL_ERROR_RT_SYS_DMA, aclrtSynchronizeStreamWithTimeout(stream.get(), kLongLimit));
}

}  // namespace
}  // namespace understudy_test
