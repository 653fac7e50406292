// SPDX-License-Identifier: Apache-2.0
//
// What every function with an event answers to NULL, destroyed and invented handles.
// Covers: EVENT-07, EVENT-10.
#include <cstring>
#include <vector>

#include "rules/callback_objects.h"

namespace understudy_test::callbacks {
namespace {

constexpr uint32_t kAllFlags =
    ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE;

// Where the functions below write. Their byte pattern is no answer to anything.
struct Outputs {
  aclrtEventRecordedStatus recorded;
  aclrtEventStatus status;
  aclrtEventWaitStatus wait;
  float milliseconds;
  uint64_t timestamp;
  uint32_t id;

  Outputs() { memset(static_cast<void*>(this), kUntouched, sizeof *this); }
  bool is_untouched() const {
    std::vector<uint8_t> expected(sizeof *this, kUntouched);
    return memcmp(this, expected.data(), sizeof *this) == 0;
  }

 private:
  static constexpr uint8_t kUntouched = 0x5a;
};

// A call of a function on `event`; `good` is an event with a time, for functions that take two.
using EventFunction = aclError (*)(aclrtEvent event, aclrtEvent good, Outputs& outputs);
struct EventCall {
  const char* call;
  EventFunction invoke;
};
EventCall event_call(const char* call, EventFunction invoke) { return {call, invoke}; }
#define US_EVENT_CALL(call)                                                                 \
  event_call(#call, []([[maybe_unused]] aclrtEvent event, [[maybe_unused]] aclrtEvent good, \
                       [[maybe_unused]] Outputs& outputs) { return call; })

std::vector<EventCall> calls_for_any_thread() {
  return {
      US_EVENT_CALL(aclrtDestroyEvent(event)),
      US_EVENT_CALL(aclrtQueryEventStatus(event, &outputs.recorded)),
      US_EVENT_CALL(aclrtQueryEvent(event, &outputs.status)),
      US_EVENT_CALL(aclrtQueryEventWaitStatus(event, &outputs.wait)),
      US_EVENT_CALL(aclrtSynchronizeEvent(event)),
      US_EVENT_CALL(aclrtSynchronizeEventWithTimeout(event, kLongMilliseconds)),
      US_EVENT_CALL(aclrtSynchronizeEventWithTimeout(event, -1)),
  };
}

std::vector<EventCall> calls_with_an_event() {
  std::vector<EventCall> calls = calls_for_any_thread();
  const std::vector<EventCall> others = {
      US_EVENT_CALL(aclrtRecordEvent(event, nullptr)),
      US_EVENT_CALL(aclrtRecordEventWithFlag(event, nullptr, ACL_EVENT_RECORD_DEFAULT)),
      US_EVENT_CALL(aclrtRecordEventWithFlag(event, nullptr, ACL_EVENT_RECORD_EXTERNAL)),
      US_EVENT_CALL(aclrtResetEvent(event, nullptr)),
      US_EVENT_CALL(aclrtStreamWaitEvent(nullptr, event)),
      US_EVENT_CALL(aclrtStreamWaitEventWithTimeout(nullptr, event, 0)),
      US_EVENT_CALL(aclrtStreamWaitEventWithFlag(nullptr, event, 0, ACL_EVENT_WAIT_DEFAULT)),
      US_EVENT_CALL(aclrtEventElapsedTime(&outputs.milliseconds, event, good)),
      US_EVENT_CALL(aclrtEventElapsedTime(&outputs.milliseconds, good, event)),
      US_EVENT_CALL(aclrtEventElapsedTime(&outputs.milliseconds, event, event)),
      US_EVENT_CALL(aclrtEventGetTimestamp(event, &outputs.timestamp)),
      US_EVENT_CALL(aclrtGetEventId(event, &outputs.id)),
  };
  calls.insert(calls.end(), others.begin(), others.end());
  return calls;
}

std::vector<EventCall> calls_without_an_output() {
  return {
      US_EVENT_CALL(aclrtQueryEventStatus(event, nullptr)),
      US_EVENT_CALL(aclrtQueryEvent(event, nullptr)),
      US_EVENT_CALL(aclrtQueryEventWaitStatus(event, nullptr)),
      US_EVENT_CALL(aclrtEventElapsedTime(nullptr, event, good)),
      US_EVENT_CALL(aclrtEventElapsedTime(nullptr, good, event)),
      US_EVENT_CALL(aclrtEventGetTimestamp(event, nullptr)),
      US_EVENT_CALL(aclrtGetEventId(event, nullptr)),
  };
}

class EventHandles : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_SUCCESS(aclrtCreateEventWithFlag(&good_, kAllFlags));
    ASSERT_SUCCESS(aclrtRecordEvent(good_, nullptr));
    ASSERT_SUCCESS(reach(good_));
  }
  void TearDown() override {
    // What was refused has neither changed the event nor queued anything that fails or holds.
    EXPECT_SUCCESS(finish(nullptr));
    EXPECT_EQ(event_status(good_), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    EXPECT_SUCCESS(aclrtDestroyEvent(good_));
    DeviceTest::TearDown();
  }

  aclrtEvent good() const { return good_; }
  void expect_refused(aclError code, const std::vector<EventCall>& calls, aclrtEvent event) const {
    for (const EventCall& call : calls) {
      SCOPED_TRACE(call.call);
      Outputs outputs;
      (void)recent_error();
      EXPECT_TRUE(fails_with(code, call.invoke(event, good_, outputs), call.call));
      EXPECT_TRUE(outputs.is_untouched());
    }
  }

 private:
  aclrtEvent good_ = nullptr;
};

aclrtEvent destroyed_event(EventFamily family) {
  TestEvent event(family, kAllFlags);
  const aclrtEvent handle = event.release();
  EXPECT_SUCCESS(aclrtRecordEvent(handle, nullptr));
  EXPECT_SUCCESS(reach(handle));
  EXPECT_SUCCESS(aclrtDestroyEvent(handle));
  return handle;
}

TEST_F(EventHandles, EVENT_07_EVENT_10_NullIsRefusedByEveryFunction) {
  expect_refused(ACL_ERROR_INVALID_PARAM, calls_with_an_event(), nullptr);
  on_bare_thread(
      [this] { expect_refused(ACL_ERROR_INVALID_PARAM, calls_with_an_event(), nullptr); });
}

TEST_F(EventHandles, EVENT_10_ANullOutputIsRefusedWhateverTheEvent) {
  const aclrtEvent destroyed = destroyed_event(EventFamily::kEx);
  const TestEvent ex(EventFamily::kEx, kAllFlags);
  for (aclrtEvent event : {good(), destroyed, ex.get()}) {
    expect_refused(ACL_ERROR_INVALID_PARAM, calls_without_an_output(), event);
    on_bare_thread(
        [&] { expect_refused(ACL_ERROR_INVALID_PARAM, calls_without_an_output(), event); });
  }
}

TEST_F(EventHandles, EVENT_10_ADestroyedEventIsRefusedByEveryFunction) {
  for (const EventFamily family : {EventFamily::kEx, EventFamily::kClassic}) {
    SCOPED_TRACE(family == EventFamily::kEx ? "Ex" : "classic");
    const aclrtEvent destroyed = destroyed_event(family);
    expect_refused(ACL_ERROR_RT_INVALID_HANDLE, calls_with_an_event(), destroyed);
    on_bare_thread(
        [&] { expect_refused(ACL_ERROR_RT_INVALID_HANDLE, calls_for_any_thread(), destroyed); });
  }
}

TEST_F(EventHandles, EVENT_10_AnOldHandleDoesNotReachANewEvent) {
  const aclrtEvent destroyed = destroyed_event(EventFamily::kClassic);
  std::vector<aclrtEvent> successors(8);
  for (aclrtEvent& event : successors) {
    ASSERT_SUCCESS(aclrtCreateEventExWithFlag(&event, kAllFlags));
    EXPECT_NE(event, destroyed);
  }
  expect_refused(ACL_ERROR_RT_INVALID_HANDLE, calls_with_an_event(), destroyed);
  for (aclrtEvent event : successors) EXPECT_SUCCESS(aclrtDestroyEvent(event));
}

TEST_F(EventHandles, EVENT_10_HandlesOfOtherThingsAreRefused) {
  const TestStream stream;
  int not_an_event = 0;
  for (void* foreign : {static_cast<void*>(&not_an_event), address(0x1000), address(UINT64_MAX),
                        stream.get(), current_context()}) {
    SCOPED_TRACE(foreign);
    expect_refused(ACL_ERROR_RT_INVALID_HANDLE, calls_with_an_event(), foreign);
  }
  EXPECT_SUCCESS(finish(stream.get()));
}

TEST_F(EventHandles, EVENT_10_AskingWaitingAndDestroyingNeedNoContext) {
  TestEvent event(EventFamily::kClassic, kAllFlags);
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), nullptr));
  on_bare_thread([handle = event.release()] {
    EXPECT_SUCCESS(reach(handle));
    EXPECT_SUCCESS(aclrtSynchronizeEvent(handle));
    EXPECT_EQ(event_status(handle), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    auto status = ACL_EVENT_STATUS_RESERVED;
    EXPECT_SUCCESS(aclrtQueryEvent(handle, &status));
    EXPECT_EQ(status, ACL_EVENT_STATUS_COMPLETE);
    auto wait = ACL_EVENT_WAIT_STATUS_RESERVED;
    EXPECT_SUCCESS(aclrtQueryEventWaitStatus(handle, &wait));
    EXPECT_EQ(wait, ACL_EVENT_WAIT_STATUS_COMPLETE);
    EXPECT_SUCCESS(aclrtDestroyEvent(handle));
  });
}

}  // namespace
}  // namespace understudy_test::callbacks
