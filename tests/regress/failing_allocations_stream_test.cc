// SPDX-License-Identifier: Apache-2.0
//
// Failing allocations in the functions about streams, events and callbacks.
#include <pthread.h>

#include "regress/failing_allocations.h"

namespace understudy_test::failing {
namespace {

// ---- Streams ----

void destroys_stream(Probe& probe) {
  probe.after([&] { EXPECT_SUCCESS(aclrtDestroyStream(probe.out<aclrtStream>())); });
}
US_SCENARIO(aclrtCreateStream, First) {
  probe.call([&] { return aclrtCreateStream(&probe.out<aclrtStream>()); });
  destroys_stream(probe);
}
US_SCENARIO(aclrtCreateStream, ATenth) {
  std::array<aclrtStream, 9> others{};
  for (aclrtStream& each : others) EXPECT_SUCCESS(aclrtCreateStream(&each));
  probe.call([&] { return aclrtCreateStream(&probe.out<aclrtStream>()); });
  destroys_stream(probe);
  for (aclrtStream each : others) EXPECT_SUCCESS(aclrtDestroyStream(each));
}
US_SCENARIO(aclrtCreateStreamWithConfig, Call) {
  probe.call([&] {
    return aclrtCreateStreamWithConfig(&probe.out<aclrtStream>(), 0, ACL_STREAM_FAST_LAUNCH);
  });
  destroys_stream(probe);
}
template <typename Destroy>
void destroy_with_tasks(Probe& probe, Destroy destroy) {
  const Stage on;
  aclrtStream stream = nullptr;
  EXPECT_SUCCESS(aclrtCreateStream(&stream));
  EXPECT_SUCCESS(aclrtMemsetAsync(on.device, Stage::kSize, 1, Stage::kSize, stream));
  probe.call([&] { return destroy(stream); });
}
US_SCENARIO(aclrtDestroyStream, WithTasks) { destroy_with_tasks(probe, aclrtDestroyStream); }
US_SCENARIO(aclrtDestroyStreamForce, WithTasks) {
  destroy_with_tasks(probe, aclrtDestroyStreamForce);
}

// On a stream with something to do.
template <typename Call>
void on_busy_stream(Probe& probe, Call call) {
  const Stage on;
  EXPECT_SUCCESS(aclrtMemsetAsync(on.device, Stage::kSize, 1, Stage::kSize, on.stream));
  EXPECT_SUCCESS(aclrtRecordEvent(on.event, on.stream));
  probe.call([&] { return call(on); });
}
US_SCENARIO(aclrtSynchronizeStream, Busy) {
  on_busy_stream(probe, [](const Stage& on) { return aclrtSynchronizeStream(on.stream); });
}
US_SCENARIO(aclrtSynchronizeStreamWithTimeout, Busy) {
  on_busy_stream(
      probe, [](const Stage& on) { return aclrtSynchronizeStreamWithTimeout(on.stream, 10'000); });
}
US_SCENARIO(aclrtSynchronizeDevice, Busy) {
  on_busy_stream(probe, [](const Stage&) { return aclrtSynchronizeDevice(); });
}
US_SCENARIO(aclrtSynchronizeEvent, Busy) {
  on_busy_stream(probe, [](const Stage& on) { return aclrtSynchronizeEvent(on.event); });
}
US_SCENARIO(aclrtSynchronizeEventWithTimeout, Busy) {
  on_busy_stream(
      probe, [](const Stage& on) { return aclrtSynchronizeEventWithTimeout(on.event, 10'000); });
}
US_SCENARIO(aclrtStreamAbort, Busy) {
  on_busy_stream(probe, [](const Stage& on) { return aclrtStreamAbort(on.stream); });
}
US_SCENARIO(aclrtStreamStop, Busy) {
  on_busy_stream(probe, [](const Stage& on) { return aclrtStreamStop(on.stream); });
}
US_ONE_CALL(aclrtStreamQuery, aclrtStreamQuery(on.stream, &probe.out<aclrtStreamStatus>()))
US_SCENARIO(aclrtStreamWaitEvent, Recorded) {
  on_busy_stream(probe, [](const Stage& on) { return aclrtStreamWaitEvent(on.stream, on.event); });
}
// A stream that waits for another one: the graph of waits has an edge more.
US_SCENARIO(aclrtStreamWaitEvent, OfAnotherStream) {
  const Stage on;
  aclrtStream waiting = nullptr;
  EXPECT_SUCCESS(aclrtCreateStream(&waiting));
  EXPECT_SUCCESS(aclrtRecordEvent(on.event, on.stream));
  probe.call([&] { return aclrtStreamWaitEvent(waiting, on.event); });
  EXPECT_SUCCESS(aclrtDestroyStream(waiting));
}
US_SCENARIO(aclrtStreamWaitEventWithTimeout, Recorded) {
  on_busy_stream(probe, [](const Stage& on) {
    return aclrtStreamWaitEventWithTimeout(on.stream, on.event, 10'000);
  });
}
US_SCENARIO(aclrtStreamWaitEventWithFlag, Recorded) {
  on_busy_stream(probe, [](const Stage& on) {
    return aclrtStreamWaitEventWithFlag(on.stream, on.event, 10, 0);
  });
}
US_ONE_CALL(aclrtStreamGetId, aclrtStreamGetId(on.stream, &probe.out<int32_t>()))
US_ONE_CALL(aclrtStreamGetPriority, aclrtStreamGetPriority(on.stream, &probe.out<uint32_t>()))
US_ONE_CALL(aclrtStreamGetFlags, aclrtStreamGetFlags(on.stream, &probe.out<uint32_t>()))
US_ONE_CALL(aclrtGetStreamAvailableNum, aclrtGetStreamAvailableNum(&probe.out<uint32_t>()))
US_SCENARIO(aclrtSetStreamAttribute, Call) {
  const Stage on;
  aclrtStreamAttrValue value{};
  probe.call(
      [&] { return aclrtSetStreamAttribute(on.stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &value); });
}
US_ONE_CALL(aclrtGetStreamAttribute,
            aclrtGetStreamAttribute(on.stream, ACL_STREAM_ATTR_FAILURE_MODE,
                                    &probe.out<aclrtStreamAttrValue>()))
US_ONE_CALL(aclrtSetStreamFailureMode, aclrtSetStreamFailureMode(on.stream, ACL_STOP_ON_FAILURE))
US_ONE_CALL(aclrtSetStreamOverflowSwitch, aclrtSetStreamOverflowSwitch(on.stream, 1))
US_ONE_CALL(aclrtGetStreamOverflowSwitch,
            aclrtGetStreamOverflowSwitch(on.stream, &probe.out<uint32_t>()))
void on_stream_state(aclrtStream, aclrtStreamState, void*) {}
US_SCENARIO(aclrtRegStreamStateCallback, Call) {
  probe.call(
      [] { return aclrtRegStreamStateCallback("a name of its own", on_stream_state, nullptr); });
  EXPECT_SUCCESS(aclrtRegStreamStateCallback("a name of its own", nullptr, nullptr));
}

// ---- Events ----

void destroys_event(Probe& probe) {
  probe.after([&] { EXPECT_SUCCESS(aclrtDestroyEvent(probe.out<aclrtEvent>())); });
}
US_SCENARIO(aclrtCreateEvent, Call) {
  probe.call([&] { return aclrtCreateEvent(&probe.out<aclrtEvent>()); });
  destroys_event(probe);
}
US_SCENARIO(aclrtCreateEventWithFlag, Call) {
  probe.call([&] { return aclrtCreateEventWithFlag(&probe.out<aclrtEvent>(), ACL_EVENT_SYNC); });
  destroys_event(probe);
}
US_SCENARIO(aclrtCreateEventExWithFlag, Call) {
  probe.call([&] { return aclrtCreateEventExWithFlag(&probe.out<aclrtEvent>(), ACL_EVENT_SYNC); });
  destroys_event(probe);
}
US_SCENARIO(aclrtCreateEventExWithFlag, BetweenProcesses) {
  probe.call([&] { return aclrtCreateEventExWithFlag(&probe.out<aclrtEvent>(), ACL_EVENT_IPC); });
  destroys_event(probe);
}
US_SCENARIO(aclrtDestroyEvent, Recorded) {
  const Stage on;
  aclrtEvent event = nullptr;
  EXPECT_SUCCESS(aclrtCreateEvent(&event));
  EXPECT_SUCCESS(aclrtRecordEvent(event, on.stream));
  probe.call([&] { return aclrtDestroyEvent(event); });
}
US_SCENARIO(aclrtDestroyEvent, BetweenProcesses) {
  aclrtEvent event = nullptr;
  aclrtIpcEventHandle handle{};
  EXPECT_SUCCESS(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
  EXPECT_SUCCESS(aclrtIpcGetEventHandle(event, &handle));
  probe.call([&] { return aclrtDestroyEvent(event); });
}
US_ONE_CALL(aclrtRecordEvent, aclrtRecordEvent(on.event, on.stream))
US_ONE_CALL(aclrtRecordEventWithFlag, aclrtRecordEventWithFlag(on.event, on.stream, 0))
US_SCENARIO(aclrtRecordEvent, BetweenProcesses) {
  const Stage on;
  aclrtEvent event = nullptr;
  EXPECT_SUCCESS(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC));
  aclrtIpcEventHandle handle{};
  EXPECT_SUCCESS(aclrtIpcGetEventHandle(event, &handle));
  probe.call([&] { return aclrtRecordEvent(event, on.stream); });
  EXPECT_SUCCESS(aclrtSynchronizeStream(on.stream));
  EXPECT_SUCCESS(aclrtDestroyEvent(event));
}
US_SCENARIO(aclrtResetEvent, Recorded) {
  on_busy_stream(probe, [](const Stage& on) { return aclrtResetEvent(on.event, on.stream); });
}
US_ONE_CALL(aclrtQueryEventStatus,
            aclrtQueryEventStatus(on.event, &probe.out<aclrtEventRecordedStatus>()))
US_ONE_CALL(aclrtQueryEvent, aclrtQueryEvent(on.event, &probe.out<aclrtEventStatus>()))
US_ONE_CALL(aclrtQueryEventWaitStatus,
            aclrtQueryEventWaitStatus(on.event, &probe.out<aclrtEventWaitStatus>()))
template <typename Call>
void after_two_records(Probe& probe, Call call) {
  const Stage on;
  EXPECT_SUCCESS(aclrtRecordEvent(on.event, on.stream));
  EXPECT_SUCCESS(aclrtRecordEvent(on.later_event, on.stream));
  EXPECT_SUCCESS(aclrtSynchronizeStream(on.stream));
  probe.call([&] { return call(on); });
}
US_SCENARIO(aclrtEventElapsedTime, Call) {
  after_two_records(probe, [&](const Stage& on) {
    return aclrtEventElapsedTime(&probe.out<float>(), on.event, on.later_event);
  });
}
US_SCENARIO(aclrtEventGetTimestamp, Call) {
  after_two_records(probe, [&](const Stage& on) {
    return aclrtEventGetTimestamp(on.event, &probe.out<uint64_t>());
  });
}
US_ONE_CALL(aclrtGetEventId, aclrtGetEventId(on.event, &probe.out<uint32_t>()))
US_ONE_CALL(aclrtGetEventAvailNum, aclrtGetEventAvailNum(&probe.out<uint32_t>()))
US_ONE_CALL(aclrtSetOpWaitTimeout, aclrtSetOpWaitTimeout(10))

// ---- Notifies ----

void destroys_notify(Probe& probe) {
  probe.after([&] { EXPECT_SUCCESS(aclrtDestroyNotify(probe.out<aclrtNotify>())); });
}
US_SCENARIO(aclrtCreateNotify, Call) {
  probe.call([&] { return aclrtCreateNotify(&probe.out<aclrtNotify>(), 0); });
  destroys_notify(probe);
}
// With a notify that is set.
template <typename Call>
void with_notify(Probe& probe, Call call) {
  const Stage on;
  aclrtNotify notify = nullptr;
  EXPECT_SUCCESS(aclrtCreateNotify(&notify, 0));
  EXPECT_SUCCESS(aclrtRecordNotify(notify, on.stream));
  EXPECT_SUCCESS(aclrtSynchronizeStream(on.stream));
  probe.call([&] { return call(on, notify); });
  EXPECT_SUCCESS(aclrtSynchronizeStream(on.stream));
  EXPECT_SUCCESS(aclrtDestroyNotify(notify));
}
US_SCENARIO(aclrtRecordNotify, Call) {
  with_notify(probe, [](const Stage& on, aclrtNotify notify) {
    return aclrtRecordNotify(notify, on.stream);
  });
}
US_SCENARIO(aclrtWaitAndResetNotify, Call) {
  with_notify(probe, [](const Stage& on, aclrtNotify notify) {
    return aclrtWaitAndResetNotify(notify, on.stream, 0);
  });
}
US_SCENARIO(aclrtGetNotifyId, Call) {
  with_notify(probe, [&](const Stage&, aclrtNotify notify) {
    return aclrtGetNotifyId(notify, &probe.out<uint32_t>());
  });
}
US_SCENARIO(aclrtNotifyBatchReset, Call) {
  with_notify(probe,
              [](const Stage&, aclrtNotify notify) { return aclrtNotifyBatchReset(&notify, 1); });
}
US_SCENARIO(aclrtDestroyNotify, Call) {
  aclrtNotify notify = nullptr;
  EXPECT_SUCCESS(aclrtCreateNotify(&notify, 0));
  probe.call([&] { return aclrtDestroyNotify(notify); });
}
US_SCENARIO(aclrtDestroyNotify, WithTasks) {
  const Stage on;
  aclrtNotify notify = nullptr;
  EXPECT_SUCCESS(aclrtCreateNotify(&notify, 0));
  EXPECT_SUCCESS(aclrtWaitAndResetNotify(notify, on.stream, 0));
  EXPECT_SUCCESS(aclrtRecordNotify(notify, nullptr));
  probe.call([&] { return aclrtDestroyNotify(notify); });
  EXPECT_SUCCESS(aclrtSynchronizeStream(on.stream));
}

// Only the 950 counts, whose notifies are made of the same parts.
template <typename Call>
void not_on_this_product(Probe& probe, Call call) {
  probe.expect_refusal(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  probe.call(call);
}
const aclrtCntNotify kNoCounter = reinterpret_cast<aclrtCntNotify>(0x1234);
aclrtCntNotifyRecordInfo change{ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE, 1};
aclrtCntNotifyWaitInfo condition{ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE, 1, 0, 0, {}};
US_SCENARIO(aclrtCntNotifyCreate, Call) {
  not_on_this_product(probe, [&] { return aclrtCntNotifyCreate(&probe.out<aclrtCntNotify>(), 0); });
}
US_SCENARIO(aclrtCntNotifyRecord, Call) {
  not_on_this_product(probe, [] { return aclrtCntNotifyRecord(kNoCounter, nullptr, &change); });
}
US_SCENARIO(aclrtCntNotifyWaitWithTimeout, Call) {
  not_on_this_product(
      probe, [] { return aclrtCntNotifyWaitWithTimeout(kNoCounter, nullptr, &condition); });
}
US_SCENARIO(aclrtCntNotifyReset, Call) {
  not_on_this_product(probe, [] { return aclrtCntNotifyReset(kNoCounter, nullptr); });
}
US_SCENARIO(aclrtCntNotifyGetId, Call) {
  not_on_this_product(probe,
                      [&] { return aclrtCntNotifyGetId(kNoCounter, &probe.out<uint32_t>()); });
}
US_SCENARIO(aclrtCntNotifyDestroy, Call) {
  not_on_this_product(probe, [] { return aclrtCntNotifyDestroy(kNoCounter); });
}

// ---- Values in memory ----

US_ONE_CALL(aclrtValueWrite, aclrtValueWrite(on.device, 5, 0, on.stream))
US_SCENARIO(aclrtValueWait, Call) {
  const Stage on;
  EXPECT_SUCCESS(aclrtValueWrite(on.device, 5, 0, on.stream));
  probe.call([&] { return aclrtValueWait(on.device, 5, 0, on.stream); });
}

// ---- Callbacks ----

void do_nothing(void*) {}
uint64_t own_thread() { return static_cast<uint64_t>(pthread_self()); }

US_ONE_CALL(aclrtLaunchHostFunc, aclrtLaunchHostFunc(on.stream, do_nothing, nullptr))
US_SCENARIO(aclrtSubscribeReport, Call) {
  const Stage on;
  probe.call([&] { return aclrtSubscribeReport(own_thread(), on.stream); });
  probe.after([&] { EXPECT_SUCCESS(aclrtUnSubscribeReport(own_thread(), on.stream)); });
}
US_SCENARIO(aclrtUnSubscribeReport, Call) {
  const Stage on;
  EXPECT_SUCCESS(aclrtSubscribeReport(own_thread(), on.stream));
  probe.call([&] { return aclrtUnSubscribeReport(own_thread(), on.stream); });
}
US_SCENARIO(aclrtLaunchCallback, WithoutAWait) {
  const Stage on;
  EXPECT_SUCCESS(aclrtSubscribeReport(own_thread(), on.stream));
  probe.call(
      [&] { return aclrtLaunchCallback(do_nothing, nullptr, ACL_CALLBACK_NO_BLOCK, on.stream); });
  probe.after([&] { (void)aclrtProcessReport(1000); });
  EXPECT_SUCCESS(aclrtUnSubscribeReport(own_thread(), on.stream));
}
US_SCENARIO(aclrtProcessReport, Call) {
  const Stage on;
  EXPECT_SUCCESS(aclrtSubscribeReport(own_thread(), on.stream));
  EXPECT_SUCCESS(aclrtLaunchCallback(do_nothing, nullptr, ACL_CALLBACK_NO_BLOCK, on.stream));
  probe.call([] { return aclrtProcessReport(10'000); });
  EXPECT_SUCCESS(aclrtUnSubscribeReport(own_thread(), on.stream));
}
US_SCENARIO(aclUnderstudyTakeDroppedCallbacks, Call) {
  const Stage on;
  EXPECT_SUCCESS(aclrtSubscribeReport(own_thread(), on.stream));
  EXPECT_SUCCESS(aclrtLaunchCallback(do_nothing, nullptr, ACL_CALLBACK_NO_BLOCK, on.stream));
  EXPECT_SUCCESS(aclrtSynchronizeStream(on.stream));
  EXPECT_SUCCESS(aclrtUnSubscribeReport(own_thread(), on.stream));
  probe.call([&] {
    return aclUnderstudyTakeDroppedCallbacks(do_nothing, &probe.out<void*>(0), 8,
                                             &probe.out<size_t>(1));
  });
}

// ---- Streams of models ----

US_SCENARIO(aclrtPersistentTaskClean, WithATask) {
  const Stage on;
  aclrtStream stream = nullptr;
  EXPECT_SUCCESS(aclrtCreateStreamWithConfig(&stream, 0, ACL_STREAM_PERSISTENT));
  EXPECT_SUCCESS(aclrtMemsetAsync(on.device, 64, 1, 64, stream));
  probe.call([&] { return aclrtPersistentTaskClean(stream); });
  EXPECT_SUCCESS(aclrtDestroyStream(stream));
}
US_SCENARIO(aclrtActiveStream, Call) {
  const Stage on;
  probe.expect_refusal(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  probe.call([&] { return aclrtActiveStream(on.stream, on.stream); });
}
US_SCENARIO(aclrtSwitchStream, Call) {
  const Stage on;
  probe.expect_refusal(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  probe.call([&] {
    return aclrtSwitchStream(on.device, ACL_RT_EQUAL, on.device, ACL_RT_SWITCH_INT64, on.stream,
                             nullptr, on.stream);
  });
}

// ---- The overflow state ----

US_ONE_CALL(aclrtGetOverflowStatus, aclrtGetOverflowStatus(on.device, 64, on.stream))
US_ONE_CALL(aclrtResetOverflowStatus, aclrtResetOverflowStatus(on.stream))

}  // namespace
}  // namespace understudy_test::failing
