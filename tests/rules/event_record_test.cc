// SPDX-License-Identifier: Apache-2.0
//
// Recording and resetting events, and what queries say of them.
// Covers: EVENT-07, EVENT-08, EVENT-09, EVENT-11, EVENT-12, EVENT-13, EVENT-20, EVENT-21.
#include <atomic>
#include <vector>

#include "rules/callback_objects.h"
#include "rules/product_objects.h"

namespace understudy_test::callbacks {
namespace {

class EventRecord : public DeviceTest {};

constexpr auto kNotReady = ACL_EVENT_RECORDED_STATUS_NOT_READY;
constexpr auto kComplete = ACL_EVENT_RECORDED_STATUS_COMPLETE;
constexpr uint32_t kAllFlags =
    ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE;

constexpr EventFamily kFamilies[] = {EventFamily::kEx, EventFamily::kClassic};
const char* name_of(EventFamily family) { return family == EventFamily::kEx ? "Ex" : "classic"; }

// Recorded, and past its tasks.
void record_fully(const TestEvent& event, aclrtStream stream) {
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream));
  EXPECT_SUCCESS(reach(event.get()));
  EXPECT_EQ(event_status(event.get()), kComplete);
}

aclrtEventStatus old_status(aclrtEvent event) {
  auto status = ACL_EVENT_STATUS_RESERVED;
  EXPECT_SUCCESS(aclrtQueryEvent(event, &status));
  return status;
}

aclrtEventWaitStatus wait_status(aclrtEvent event) {
  auto status = ACL_EVENT_WAIT_STATUS_RESERVED;
  EXPECT_SUCCESS(aclrtQueryEventWaitStatus(event, &status));
  return status;
}

// ---- Arguments ----

TEST_F(EventRecord, EVENT_07_StreamsMustBeAliveAndOfTheCurrentContext) {
  const TestEvent event(EventFamily::kClassic, kAllFlags);
  expect_bad_streams_refused({
      {"aclrtRecordEvent",
       [&](aclrtStream stream) { return aclrtRecordEvent(event.get(), stream); }},
      {"aclrtRecordEventWithFlag",
       [&](aclrtStream stream) { return aclrtRecordEventWithFlag(event.get(), stream, 0); }},
      {"aclrtResetEvent", [&](aclrtStream stream) { return aclrtResetEvent(event.get(), stream); }},
  });
  EXPECT_EQ(event_status(event.get()), kNotReady);
}

TEST_F(EventRecord, EVENT_07_ARefusedResetLeavesTheEventRecorded) {
  const TestEvent event(EventFamily::kClassic, kAllFlags);
  record_fully(event, nullptr);
  expect_bad_streams_refused({
      {"aclrtResetEvent", [&](aclrtStream stream) { return aclrtResetEvent(event.get(), stream); }},
  });
  EXPECT_EQ(event_status(event.get()), kComplete);
}

TEST_F(EventRecord, EVENT_07_OnlyTwoFlagsAreKnown) {
  const TestStream stream;
  const TestEvent event(EventFamily::kClassic, kAllFlags);
  for (uint32_t flag : {2u, 3u, 0x80000000u, UINT32_MAX}) {
    SCOPED_TRACE(flag);
    for (aclrtStream target : {stream.get(), aclrtStream{nullptr}}) {
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtRecordEventWithFlag(event.get(), target, flag));
      on_bare_thread([&] {
        EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtRecordEventWithFlag(event.get(), target, flag));
      });
    }
  }
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_EQ(event_status(event.get()), kNotReady);
}

TEST_F(EventRecord, EVENT_07_TheDefaultFlagRecordsAsWithoutAFlag) {
  for (const EventFamily family : kFamilies) {
    SCOPED_TRACE(name_of(family));
    const TestStream stream;
    const TestEvent event(family);
    Gate gate(stream.get());
    EXPECT_SUCCESS(aclrtRecordEventWithFlag(event.get(), stream.get(), ACL_EVENT_RECORD_DEFAULT));
    EXPECT_EQ(event_status(event.get()), kNotReady);
    gate.open();
    EXPECT_SUCCESS(reach(event.get()));
    EXPECT_EQ(event_status(event.get()), kComplete);
  }
}

TEST_F(EventRecord, EVENT_20_ExternalIsForGraphCaptures) {
  const TestStream stream;
  const TestEvent event(EventFamily::kClassic, kAllFlags);
  for (aclrtStream target : {stream.get(), aclrtStream{nullptr}}) {
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 aclrtRecordEventWithFlag(event.get(), target, ACL_EVENT_RECORD_EXTERNAL));
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                 aclrtStreamWaitEventWithFlag(target, event.get(), 0, ACL_EVENT_WAIT_EXTERNAL));
  }
  EXPECT_EQ(event_status(event.get()), kNotReady);
  EXPECT_SUCCESS(finish(stream.get()));
  int nothing = 0;
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE,
               aclrtRecordEventWithFlag(&nothing, stream.get(), ACL_EVENT_RECORD_EXTERNAL));
}

class EventFlagsOn : public ProductTest {};
INSTANTIATE_TEST_SUITE_P(Products, EventFlagsOn, every_product(), product_name);

TEST_P(EventFlagsOn, EVENT_20_OlderProductsLackBothFunctions) {
  US_ON_PRODUCT();
  const ContextSession session;
  const TestStream stream;
  const TestEvent event;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtRecordEventWithFlag(nullptr, stream.get(), 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtRecordEventWithFlag(event.get(), stream.get(), 2));
  EXPECT_SUPPORTED(!is_older(), aclrtRecordEventWithFlag(event.get(), stream.get(), 0));
  EXPECT_SUPPORTED(!is_older(), aclrtStreamWaitEventWithFlag(stream.get(), event.get(), 0, 0));
}

TEST_F(EventRecord, EVENT_21_AStreamWaitsForAnExEventWithoutSync) {
  const TestStream first;
  const TestStream second;
  for (const uint32_t flags : {ACL_EVENT_TIME_LINE, ACL_EVENT_CAPTURE_STREAM_PROGRESS}) {
    const TestEvent event(EventFamily::kEx, flags);
    Gate gate(first.get());
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), first.get()));
    EXPECT_SUCCESS(aclrtStreamWaitEvent(second.get(), event.get()));
    EXPECT_EQ(stream_status(second.get()), ACL_STREAM_STATUS_NOT_READY);
    gate.open();
    EXPECT_SUCCESS(finish(second.get()));
  }
}

TEST_F(EventRecord, EVENT_07_NullIsTheDefaultStream) {
  for (aclrtStream stream : {aclrtStream{nullptr}, handle_of_default_stream()}) {
    SCOPED_TRACE(stream);
    const TestEvent recorded;
    const TestEvent recorded_with_flag;
    const TestEvent reset(EventFamily::kClassic);
    record_fully(reset, nullptr);
    Gate gate(nullptr);
    EXPECT_SUCCESS(aclrtRecordEvent(recorded.get(), stream));
    EXPECT_SUCCESS(aclrtRecordEventWithFlag(recorded_with_flag.get(), stream, 0));
    EXPECT_SUCCESS(aclrtResetEvent(reset.get(), stream));
    EXPECT_EQ(event_status(recorded.get()), kNotReady);
    EXPECT_EQ(event_status(recorded_with_flag.get()), kNotReady);
    EXPECT_EQ(event_status(reset.get()), kComplete);
    gate.open();
    EXPECT_SUCCESS(finish(nullptr));
    EXPECT_EQ(event_status(recorded.get()), kComplete);
    EXPECT_EQ(event_status(recorded_with_flag.get()), kComplete);
    EXPECT_EQ(event_status(reset.get()), kNotReady);
  }
}

// ---- What a record captures ----

TEST_F(EventRecord, EVENT_08_OnlyTasksQueuedBeforeCount) {
  for (const EventFamily family : kFamilies) {
    SCOPED_TRACE(name_of(family));
    const TestStream stream;
    const TestEvent event(family);
    bool did_run = false;
    const HostStep before(stream.get(), [&] { did_run = true; });
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
    Gate after(stream.get());
    EXPECT_SUCCESS(reach(event.get()));
    EXPECT_TRUE(did_run);
    EXPECT_EQ(event_status(event.get()), kComplete);
    EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
  }
}

TEST_F(EventRecord, EVENT_08_RecordingAgainReplacesACompleteCapture) {
  for (const EventFamily family : kFamilies) {
    SCOPED_TRACE(name_of(family));
    const TestStream stream;
    const TestEvent event(family);
    for (int i = 0; i < 3; ++i) {
      record_fully(event, stream.get());
      Gate gate(stream.get());
      EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
      EXPECT_EQ(event_status(event.get()), kNotReady);
      gate.open();
      EXPECT_SUCCESS(reach(event.get()));
      EXPECT_EQ(event_status(event.get()), kComplete);
    }
  }
}

TEST_F(EventRecord, EVENT_08_RecordingAgainReplacesAPendingCapture) {
  for (const EventFamily family : kFamilies) {
    SCOPED_TRACE(name_of(family));
    const TestStream held;
    const TestStream idle;
    const TestEvent event(family);
    Gate gate(held.get());
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), held.get()));
    EXPECT_EQ(event_status(event.get()), kNotReady);
    record_fully(event, idle.get());
    gate.open();
    EXPECT_SUCCESS(finish(held.get()));
    EXPECT_EQ(event_status(event.get()), kComplete);
  }
}

TEST_F(EventRecord, EVENT_08_AnOlderRecordThatCompletesLaterChangesNothing) {
  for (const EventFamily family : kFamilies) {
    SCOPED_TRACE(name_of(family));
    const TestStream first;
    const TestStream second;
    const TestEvent event(family);
    Gate first_gate(first.get());
    Gate second_gate(second.get());
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), first.get()));
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), second.get()));
    first_gate.open();
    EXPECT_SUCCESS(finish(first.get()));
    EXPECT_EQ(event_status(event.get()), kNotReady);
    second_gate.open();
    EXPECT_SUCCESS(reach(event.get()));
    EXPECT_EQ(event_status(event.get()), kComplete);
  }
}

TEST_F(EventRecord, EVENT_08_AQueuedWaitKeepsTheCaptureItSaw) {
  const TestStream first;
  const TestStream second;
  const TestStream waiter;
  const TestEvent event;
  Gate first_gate(first.get());
  Gate second_gate(second.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), first.get()));
  EXPECT_SUCCESS(aclrtStreamWaitEvent(waiter.get(), event.get()));
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), second.get()));
  EXPECT_EQ(stream_status(waiter.get()), ACL_STREAM_STATUS_NOT_READY);
  first_gate.open();
  EXPECT_SUCCESS(finish(waiter.get()));
  EXPECT_EQ(event_status(event.get()), kNotReady);
}

// ---- Reset ----

TEST_F(EventRecord, EVENT_09_ResetActsInStreamOrder) {
  for (uint32_t flags : {ACL_EVENT_SYNC, kAllFlags}) {
    SCOPED_TRACE(flags);
    const TestStream stream;
    const TestEvent event(EventFamily::kClassic, flags);
    record_fully(event, stream.get());
    Gate gate(stream.get());
    EXPECT_SUCCESS(aclrtResetEvent(event.get(), stream.get()));
    EXPECT_EQ(event_status(event.get()), kComplete);
    EXPECT_EQ(old_status(event.get()), ACL_EVENT_STATUS_COMPLETE);
    gate.open();
    EXPECT_SUCCESS(finish(stream.get()));
    EXPECT_EQ(event_status(event.get()), kNotReady);
    EXPECT_EQ(old_status(event.get()), ACL_EVENT_STATUS_NOT_READY);
    record_fully(event, stream.get());
  }
}

TEST_F(EventRecord, EVENT_09_ARecordQueuedAfterTheResetCounts) {
  const TestStream stream;
  const TestEvent event(EventFamily::kClassic);
  Gate gate(stream.get());
  for (int i = 0; i < 3; ++i) {
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
    EXPECT_SUCCESS(aclrtStreamWaitEvent(stream.get(), event.get()));
    EXPECT_SUCCESS(aclrtResetEvent(event.get(), stream.get()));
  }
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  gate.open();
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_EQ(event_status(event.get()), kComplete);
}

TEST_F(EventRecord, EVENT_09_AResetThatIsOvertakenByARecordChangesNothing) {
  const TestStream held;
  const TestStream idle;
  const TestEvent event(EventFamily::kClassic);
  record_fully(event, idle.get());
  Gate gate(held.get());
  EXPECT_SUCCESS(aclrtResetEvent(event.get(), held.get()));
  record_fully(event, idle.get());
  gate.open();
  EXPECT_SUCCESS(finish(held.get()));
  EXPECT_EQ(event_status(event.get()), kComplete);
}

TEST_F(EventRecord, EVENT_09_ExEventsCannotBeReset) {
  const TestStream stream;
  for (uint32_t flags : {ACL_EVENT_SYNC, kAllFlags}) {
    SCOPED_TRACE(flags);
    const TestEvent event(EventFamily::kEx, flags);
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtResetEvent(event.get(), stream.get()));
    Gate gate(stream.get());
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtResetEvent(event.get(), stream.get()));
    EXPECT_EQ(event_status(event.get()), kNotReady);
    gate.open();
    EXPECT_SUCCESS(finish(stream.get()));
    EXPECT_EQ(event_status(event.get()), kComplete);
  }
}

TEST_F(EventRecord, EVENT_09_ClassicEventsWithoutSyncCannotBeReset) {
  const TestStream stream;
  for (uint32_t flags : {ACL_EVENT_CAPTURE_STREAM_PROGRESS, ACL_EVENT_TIME_LINE,
                         ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE,
                         ACL_EVENT_EXTERNAL, ACL_EVENT_DEVICE_USE_ONLY}) {
    SCOPED_TRACE(flags);
    const TestEvent event(EventFamily::kClassic, flags);
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtResetEvent(event.get(), stream.get()));
  }
  const TestEvent event(EventFamily::kClassic, ACL_EVENT_TIME_LINE);
  record_fully(event, stream.get());
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtResetEvent(event.get(), stream.get()));
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_EQ(event_status(event.get()), kComplete);
}

// ---- Queries ----

TEST_F(EventRecord, EVENT_11_TheStatusFollowsTheCapturedTasks) {
  for (const EventFamily family : kFamilies) {
    for (uint32_t flags :
         {ACL_EVENT_SYNC, ACL_EVENT_CAPTURE_STREAM_PROGRESS, ACL_EVENT_TIME_LINE, kAllFlags}) {
      SCOPED_TRACE(testing::Message() << name_of(family) << ", flags " << flags);
      const TestStream stream;
      const TestEvent event(family, flags);
      Gate gate(stream.get());
      EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
      EXPECT_EQ(event_status(event.get()), kNotReady);
      gate.wait_until_reached();
      EXPECT_EQ(event_status(event.get()), kNotReady);
      on_bare_thread([&] { EXPECT_EQ(event_status(event.get()), kNotReady); });
      gate.open();
      EXPECT_SUCCESS(reach(event.get()));
      EXPECT_EQ(event_status(event.get()), kComplete);
      on_bare_thread([&] { EXPECT_EQ(event_status(event.get()), kComplete); });
    }
  }
}

TEST_F(EventRecord, EVENT_11_CompleteMeansThatTheTasksAreDone) {
  const TestStream stream;
  const TestEvent event;
  std::atomic<int> runs = 0;
  for (int round = 1; round <= 200; ++round) {
    const HostStep step(stream.get(), [&] { ++runs; });
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
    if (event_status(event.get()) == kComplete) {
      EXPECT_EQ(runs, round);
    }
    ASSERT_SUCCESS(finish(stream.get()));
    EXPECT_EQ(event_status(event.get()), kComplete);
  }
}

TEST_F(EventRecord, EVENT_12_BeforeTheFirstRecordExIsCompleteAndClassicIsNot) {
  for (uint32_t flags :
       {ACL_EVENT_SYNC, ACL_EVENT_CAPTURE_STREAM_PROGRESS, ACL_EVENT_TIME_LINE, kAllFlags}) {
    SCOPED_TRACE(flags);
    const TestEvent ex(EventFamily::kEx, flags);
    EXPECT_EQ(event_status(ex.get()), kComplete);
    const TestEvent classic(EventFamily::kClassic, flags);
    EXPECT_EQ(event_status(classic.get()), kNotReady);
    EXPECT_EQ(old_status(classic.get()), ACL_EVENT_STATUS_NOT_READY);
  }
}

TEST_F(EventRecord, EVENT_13_TheOldQueriesDoNotKnowExEvents) {
  const TestStream stream;
  const TestEvent event(EventFamily::kEx, kAllFlags);
  for (const bool recorded : {false, true}) {
    SCOPED_TRACE(recorded ? "recorded" : "never recorded");
    if (recorded) record_fully(event, stream.get());
    auto status = ACL_EVENT_STATUS_RESERVED;
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtQueryEvent(event.get(), &status));
    EXPECT_EQ(status, ACL_EVENT_STATUS_RESERVED);
    auto wait = ACL_EVENT_WAIT_STATUS_RESERVED;
    EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtQueryEventWaitStatus(event.get(), &wait));
    EXPECT_EQ(wait, ACL_EVENT_WAIT_STATUS_RESERVED);
  }
}

TEST_F(EventRecord, EVENT_11_EVENT_13_TheOldQueryHasTheReverseNumbers) {
  const TestStream stream;
  const TestEvent event(EventFamily::kClassic, kAllFlags);
  Gate gate(stream.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  EXPECT_EQ(static_cast<int>(event_status(event.get())), 0);
  EXPECT_EQ(static_cast<int>(old_status(event.get())), 1);
  gate.open();
  EXPECT_SUCCESS(reach(event.get()));
  EXPECT_EQ(static_cast<int>(event_status(event.get())), 1);
  EXPECT_EQ(static_cast<int>(old_status(event.get())), 0);
}

TEST_F(EventRecord, EVENT_13_TheWaitStatusFollowsTheQueuedWaitsNotTheRecord) {
  const TestStream recorder;
  const TestStream waiter;
  const TestEvent event(EventFamily::kClassic, kAllFlags);
  EXPECT_EQ(wait_status(event.get()), ACL_EVENT_WAIT_STATUS_COMPLETE);
  Gate record_gate(recorder.get());
  Gate wait_gate(waiter.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), recorder.get()));
  EXPECT_EQ(wait_status(event.get()), ACL_EVENT_WAIT_STATUS_COMPLETE) << "nothing waits yet";
  EXPECT_SUCCESS(aclrtStreamWaitEvent(waiter.get(), event.get()));
  EXPECT_EQ(wait_status(event.get()), ACL_EVENT_WAIT_STATUS_NOT_READY);
  record_gate.open();
  EXPECT_SUCCESS(reach(event.get()));
  EXPECT_EQ(event_status(event.get()), kComplete);
  EXPECT_EQ(wait_status(event.get()), ACL_EVENT_WAIT_STATUS_NOT_READY) << "the waiter is held";
  wait_gate.open();
  EXPECT_SUCCESS(finish(waiter.get()));
  EXPECT_EQ(wait_status(event.get()), ACL_EVENT_WAIT_STATUS_COMPLETE);
}

}  // namespace
}  // namespace understudy_test::callbacks
