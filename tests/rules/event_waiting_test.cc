// SPDX-License-Identifier: Apache-2.0
//
// Waiting for events: threads that synchronise with them, streams that wait for ones never
// recorded, and the limit of such waits.
// Covers: EVENT-06, EVENT-14, EVENT-15, EVENT-17, EVENT-18.
#include <atomic>
#include <climits>
#include <future>
#include <vector>

#include "rules/callback_objects.h"
#include "rules/host_objects.h"

namespace understudy_test::callbacks {
namespace {

class EventWaiting : public DeviceTest {};

constexpr uint32_t kAllFlags =
    ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE;

// The three ways in which a stream waits without a limit of its own.
struct StreamWait {
  const char* name;
  aclError (*call)(aclrtStream stream, aclrtEvent event);
};
aclError wait_with_timeout(aclrtStream stream, aclrtEvent event) {
  return aclrtStreamWaitEventWithTimeout(stream, event, 0);
}
aclError wait_with_flag(aclrtStream stream, aclrtEvent event) {
  return aclrtStreamWaitEventWithFlag(stream, event, 0, ACL_EVENT_WAIT_DEFAULT);
}
constexpr StreamWait kStreamWaits[] = {
    {"aclrtStreamWaitEvent", aclrtStreamWaitEvent},
    {"aclrtStreamWaitEventWithTimeout", wait_with_timeout},
    {"aclrtStreamWaitEventWithFlag", wait_with_flag},
};

void expect_pending(aclrtStream stream) {
  EXPECT_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeStreamWithTimeout(stream, 1));
  EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_NOT_READY);
}

// ---- Threads ----

TEST_F(EventWaiting, EVENT_14_ReturnsOnlyWhenTheCapturedTasksAreDone) {
  for (const EventFamily family : {EventFamily::kEx, EventFamily::kClassic}) {
    SCOPED_TRACE(family == EventFamily::kEx ? "Ex" : "classic");
    const TestStream stream;
    const TestEvent event(family);
    std::atomic<bool> is_done = false;
    Gate gate(stream.get());
    const HostStep task(stream.get(), [&] { is_done = true; });
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
    const auto waits = [&] {
      EXPECT_SUCCESS(aclrtSynchronizeEvent(event.get()));
      return is_done.load();
    };
    const auto waits_with_limit = [&] {
      EXPECT_SUCCESS(reach(event.get()));
      return is_done.load();
    };
    auto first = std::async(std::launch::async, waits);
    auto second = std::async(std::launch::async, waits_with_limit);
    gate.wait_until_reached();
    gate.open();
    EXPECT_TRUE(first.get());
    EXPECT_TRUE(second.get());
    EXPECT_SUCCESS(finish(stream.get()));
  }
}

TEST_F(EventWaiting, EVENT_14_LaterTasksAreNotWaitedFor) {
  const TestStream stream;
  const TestEvent event;
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  const Gate gate(stream.get());
  EXPECT_SUCCESS(reach(event.get()));
  EXPECT_SUCCESS(aclrtSynchronizeEvent(event.get()));
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
}

TEST_F(EventWaiting, EVENT_14_AnEventNeverRecordedIsNotWaitedFor) {
  for (const EventFamily family : {EventFamily::kEx, EventFamily::kClassic}) {
    for (uint32_t flags : {ACL_EVENT_SYNC, ACL_EVENT_TIME_LINE, kAllFlags}) {
      SCOPED_TRACE(testing::Message()
                   << (family == EventFamily::kEx ? "Ex" : "classic") << ", flags " << flags);
      const TestEvent event(family, flags);
      EXPECT_SUCCESS(reach(event.get()));
      EXPECT_SUCCESS(aclrtSynchronizeEvent(event.get()));
      EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(event.get(), -1));
      on_bare_thread([&] { EXPECT_SUCCESS(aclrtSynchronizeEvent(event.get())); });
    }
  }
}

TEST_F(EventWaiting, EVENT_14_ATaskThatFailedIsDoneToo) {
  const TestStream stream;
  const TestEvent event;
  MallocedMemory memory(kPage);
  {
    Gate gate(stream.get());
    EXPECT_SUCCESS(aclrtMemsetAsync(memory.data(), kPage, 0, kPage, stream.get()));
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
    EXPECT_SUCCESS(aclrtFree(memory.give_up()));
  }
  EXPECT_SUCCESS(reach(event.get()));
  EXPECT_SUCCESS(aclrtSynchronizeEvent(event.get()));
  EXPECT_EQ(event_status(event.get()), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  EXPECT_FAILS(ACL_ERROR_RT_SYS_DMA,
               aclrtSynchronizeStreamWithTimeout(stream.get(), kLongMilliseconds));
}

TEST_F(EventWaiting, EVENT_15_BadLimitsAreRefusedEvenWithoutAnEvent) {
  const TestStream stream;
  const TestEvent event;
  const Gate gate(stream.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  for (int32_t timeout : {-2, -1000, INT32_MIN}) {
    SCOPED_TRACE(timeout);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeEventWithTimeout(nullptr, timeout));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtSynchronizeEventWithTimeout(event.get(), timeout));
  }
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeEventWithTimeout(event.get(), 0));
  for (int32_t timeout : {-1, 1, INT32_MAX}) {
    SCOPED_TRACE(timeout);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtSynchronizeEventWithTimeout(nullptr, timeout));
  }
}

TEST_F(EventWaiting, EVENT_15_BadLimitsAreRefusedWhenThereIsNothingToWaitFor) {
  const TestEvent never_recorded;
  const TestEvent complete;
  EXPECT_SUCCESS(aclrtRecordEvent(complete.get(), nullptr));
  EXPECT_SUCCESS(reach(complete.get()));
  for (aclrtEvent event : {never_recorded.get(), complete.get()}) {
    for (int32_t timeout : {0, -2}) {
      EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeEventWithTimeout(event, timeout));
    }
    for (int32_t timeout : {1, -1, INT32_MAX}) {
      EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(event, timeout));
    }
  }
}

TEST_F(EventWaiting, EVENT_15_WhenTheTimeIsOverTheTasksStayQueued) {
  for (const EventFamily family : {EventFamily::kEx, EventFamily::kClassic}) {
    SCOPED_TRACE(family == EventFamily::kEx ? "Ex" : "classic");
    const TestStream stream;
    const TestEvent event(family);
    bool did_run = false;
    Gate gate(stream.get());
    const HostStep task(stream.get(), [&] { did_run = true; });
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
    for (int i = 0; i < 3; ++i) {
      EXPECT_FAILS(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
                   aclrtSynchronizeEventWithTimeout(event.get(), 1));
    }
    on_bare_thread([&] {
      EXPECT_FAILS(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
                   aclrtSynchronizeEventWithTimeout(event.get(), 1));
    });
    EXPECT_EQ(event_status(event.get()), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    gate.open();
    EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(event.get(), INT32_MAX));
    EXPECT_TRUE(did_run);
    EXPECT_SUCCESS(finish(stream.get()));
  }
}

TEST_F(EventWaiting, EVENT_15_MinusOneWaitsWithoutALimit) {
  const TestStream stream;
  const TestEvent event;
  std::atomic<bool> is_done = false;
  Gate gate(stream.get());
  const HostStep task(stream.get(), [&] { is_done = true; });
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  auto waits = std::async(std::launch::async, [&] {
    EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(event.get(), -1));
    return is_done.load();
  });
  gate.wait_until_reached();
  gate.open();
  EXPECT_TRUE(waits.get());
  EXPECT_SUCCESS(finish(stream.get()));
}

// ---- Streams that wait for an event never recorded ----

TEST_F(EventWaiting, EVENT_17_AnExEventNeverRecordedHoldsNothing) {
  for (const StreamWait& wait : kStreamWaits) {
    for (uint32_t flags :
         {ACL_EVENT_SYNC, ACL_EVENT_CAPTURE_STREAM_PROGRESS, ACL_EVENT_TIME_LINE, kAllFlags}) {
      SCOPED_TRACE(testing::Message() << wait.name << ", flags " << flags);
      const TestStream recorder;
      const TestStream waiter;
      TestEvent event(EventFamily::kEx, flags);
      EXPECT_SUCCESS(wait.call(waiter.get(), event.get()));
      // Nor does a record that comes later.
      const Gate gate(recorder.get());
      EXPECT_SUCCESS(aclrtRecordEvent(event.get(), recorder.get()));
      EXPECT_SUCCESS(finish(waiter.get()));
    }
  }
}

TEST_F(EventWaiting, EVENT_17_AClassicEventWithoutSyncIsRefused) {
  for (const StreamWait& wait : kStreamWaits) {
    for (uint32_t flags : {ACL_EVENT_CAPTURE_STREAM_PROGRESS, ACL_EVENT_TIME_LINE,
                           ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE,
                           ACL_EVENT_EXTERNAL, ACL_EVENT_DEVICE_USE_ONLY}) {
      SCOPED_TRACE(testing::Message() << wait.name << ", flags " << flags);
      const TestStream waiter;
      const TestEvent event(EventFamily::kClassic, flags);
      (void)recent_error();
      EXPECT_TRUE(
          fails_with(ACL_ERROR_RT_PARAM_INVALID, wait.call(waiter.get(), event.get()), wait.name));
      EXPECT_EQ(stream_status(waiter.get()), ACL_STREAM_STATUS_COMPLETE);
      EXPECT_SUCCESS(finish(waiter.get()));
    }
  }
}

// Expects that the stream waits until the event is recorded and the record is reached.
void expect_held_until_recorded(const StreamWait& wait, aclrtEvent event) {
  const TestStream recorder;
  TestStream waiter;
  std::atomic<bool> is_open = false;
  bool was_open = false;
  EXPECT_SUCCESS(wait.call(waiter.get(), event));
  const HostStep step(waiter.get(), [&] { was_open = is_open; });
  expect_pending(waiter.get());
  Gate gate(recorder.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event, recorder.get()));
  expect_pending(waiter.get());
  is_open = true;
  gate.open();
  const aclError code = finish(waiter.get());
  EXPECT_EQ(code, ACL_SUCCESS);
  EXPECT_TRUE(was_open);
  // Without this a stream that is held for good would hold the test, too.
  if (code != ACL_SUCCESS) {
    EXPECT_SUCCESS(aclrtDestroyStreamForce(waiter.release()));
  }
}

TEST_F(EventWaiting, EVENT_17_AClassicSyncEventHoldsUntilItsFirstRecordIsReached) {
  for (const StreamWait& wait : kStreamWaits) {
    for (uint32_t flags : {ACL_EVENT_SYNC, kAllFlags}) {
      SCOPED_TRACE(testing::Message() << wait.name << ", flags " << flags);
      const TestEvent event(EventFamily::kClassic, flags);
      expect_held_until_recorded(wait, event.get());
    }
  }
}

TEST_F(EventWaiting, EVENT_17_AfterAResetAClassicSyncEventHoldsUntilItsNextRecord) {
  for (const StreamWait& wait : kStreamWaits) {
    SCOPED_TRACE(wait.name);
    const TestEvent event(EventFamily::kClassic);
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), nullptr));
    EXPECT_SUCCESS(aclrtResetEvent(event.get(), nullptr));
    EXPECT_SUCCESS(finish(nullptr));
    expect_held_until_recorded(wait, event.get());
  }
}

TEST_F(EventWaiting, EVENT_06_EVENT_17_DestroyingTheEventReleasesAWaitForItsFirstRecord) {
  for (const StreamWait& wait : kStreamWaits) {
    SCOPED_TRACE(wait.name);
    TestStream waiter;
    TestEvent event(EventFamily::kClassic);
    bool did_run = false;
    EXPECT_SUCCESS(wait.call(waiter.get(), event.get()));
    const HostStep step(waiter.get(), [&] { did_run = true; });
    expect_pending(waiter.get());
    EXPECT_SUCCESS(aclrtDestroyEvent(event.release()));
    const aclError code = finish(waiter.get());
    EXPECT_EQ(code, ACL_SUCCESS);
    EXPECT_TRUE(did_run);
    if (code != ACL_SUCCESS) {
      EXPECT_SUCCESS(aclrtDestroyStreamForce(waiter.release()));
    }
  }
}

// ---- The limit of all waits ----

// The only test of its kind: it passes a real second, the smallest limit there is.
TEST_F(EventWaiting, EVENT_18_AWaitBeyondTheLimitFailsOnItsStreamAndZeroIsNoLimit) {
  const TestStream recorder;
  const TestStream limited;
  const TestStream unlimited;
  const TestEvent event;
  bool did_run = false;
  Gate gate(recorder.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), recorder.get()));
  EXPECT_SUCCESS(aclrtSetOpWaitTimeout(1));
  EXPECT_SUCCESS(aclrtStreamWaitEventWithTimeout(unlimited.get(), event.get(), 0));
  EXPECT_SUCCESS(aclrtStreamWaitEvent(limited.get(), event.get()));
  const HostStep later(limited.get(), [&] { did_run = true; });
  EXPECT_FAILS(ACL_ERROR_RT_TASK_TIMEOUT,
               aclrtSynchronizeStreamWithTimeout(limited.get(), kLongMilliseconds));
  EXPECT_TRUE(did_run) << "a task behind the failed wait";
  EXPECT_EQ(event_status(event.get()), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  // Its own limit of 0 won.
  expect_pending(unlimited.get());

  EXPECT_SUCCESS(aclrtSetOpWaitTimeout(0));
  EXPECT_SUCCESS(aclrtStreamWaitEvent(limited.get(), event.get()));
  expect_pending(limited.get());
  gate.open();
  EXPECT_SUCCESS(finish(limited.get()));
  EXPECT_SUCCESS(finish(unlimited.get()));
}

TEST_F(EventWaiting, EVENT_18_EveryNumberOfSecondsIsTaken) {
  for (uint32_t seconds : {0u, 3600u, uint32_t{INT32_MAX}, UINT32_MAX}) {
    SCOPED_TRACE(seconds);
    const TestStream waiter;
    EXPECT_SUCCESS(aclrtSetOpWaitTimeout(seconds));
    EventGate gate(waiter.get());
    expect_pending(waiter.get());
    gate.open();
    EXPECT_SUCCESS(finish(waiter.get()));
  }
  EXPECT_SUCCESS(aclrtSetOpWaitTimeout(0));
}

}  // namespace
}  // namespace understudy_test::callbacks
