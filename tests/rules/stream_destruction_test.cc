// SPDX-License-Identifier: Apache-2.0
//
// Destroying streams: which ones can be, what becomes of their tasks and of their handles.
// Covers: CTX-06, STREAM-07, STREAM-08.
#include <memory>
#include <vector>

#include "rules/stream_tasks.h"

namespace understudy_test {
namespace {

using StreamDestruction = DeviceTest;

struct DestroyFunction {
  const char* name;
  aclError (*call)(aclrtStream stream);
};
constexpr DestroyFunction kDestroyFunctions[] = {
    {"aclrtDestroyStream", aclrtDestroyStream},
    {"aclrtDestroyStreamForce", aclrtDestroyStreamForce},
};

void expect_destroy_refused(aclError code, aclrtStream stream) {
  for (const DestroyFunction& destroy : kDestroyFunctions) {
    SCOPED_TRACE(destroy.name);
    (void)recent_error();
    EXPECT_TRUE(fails_with(code, destroy.call(stream), destroy.name));
  }
}

TEST_F(StreamDestruction, STREAM_07_NullIsRefused) {
  expect_destroy_refused(ACL_ERROR_INVALID_PARAM, nullptr);
  on_bare_thread([] { expect_destroy_refused(ACL_ERROR_INVALID_PARAM, nullptr); });
  expect_finishes(nullptr);
}

TEST_F(StreamDestruction, STREAM_07_TheDefaultStreamStays) {
  expect_destroy_refused(ACL_ERROR_RT_PARAM_INVALID, runtime::default_stream());
  TaskCounter counter;
  counter.queue_on(nullptr);
  expect_finishes(runtime::default_stream());
  EXPECT_EQ(counter.runs(), 1);
}

TEST_F(StreamDestruction, STREAM_07_AStreamOfAnotherContextStays) {
  const TestStream stream;
  const uint32_t left = streams_left();
  {
    const ContextScope other(0);
    expect_destroy_refused(ACL_ERROR_RT_STREAM_CONTEXT, stream.get());
  }
  EXPECT_EQ(streams_left(), left);
  TaskCounter counter;
  counter.queue_on(stream.get());
  expect_finishes(stream.get());
  EXPECT_EQ(counter.runs(), 1);
}

TEST_F(StreamDestruction, STREAM_07_AContextIsNeeded) {
  const TestStream stream;
  on_bare_thread([&stream] { expect_destroy_refused(ACL_ERROR_RT_CONTEXT_NULL, stream.get()); });
  expect_finishes(stream.get());
}

TEST_F(StreamDestruction, STREAM_07_ADestroyedHandleIsNeverGoodAgain) {
  for (const DestroyFunction& destroy : kDestroyFunctions) {
    SCOPED_TRACE(destroy.name);
    const aclrtStream stream = TestStream().release();
    EXPECT_SUCCESS(destroy.call(stream));
    expect_destroy_refused(ACL_ERROR_RT_INVALID_HANDLE, stream);
    // A new stream may take the place of the old one; the old handle must not reach it.
    const std::vector<TestStream> successors(8);
    expect_destroy_refused(ACL_ERROR_RT_INVALID_HANDLE, stream);
    for (const TestStream& successor : successors) expect_finishes(successor.get());
  }
}

TEST_F(StreamDestruction, STREAM_07_OnlyStreamsAreStreams) {
  const TestEvent event;
  const LiveMapping memory;
  int on_stack = 0;
  for (void* foreign : {static_cast<void*>(&on_stack), address(0x1000), address(UINT64_MAX),
                        event.get(), runtime::current_context(), memory.data()}) {
    SCOPED_TRACE(foreign);
    // Kinds of handles may share numbers.
    if (foreign == runtime::default_stream()) continue;
    expect_destroy_refused(ACL_ERROR_RT_INVALID_HANDLE, foreign);
  }
  EXPECT_EQ(event_status(event.get()), ACL_EVENT_RECORDED_STATUS_COMPLETE);
}

TEST_F(StreamDestruction, STREAM_08_DestroyWaitsForTheQueuedTasks) {
  TestStream stream;
  TargetPage page;
  TaskCounter counter;
  Gate gate(stream.get());
  page.queue_set(stream.get(), 5);
  counter.queue_on(stream.get());
  WaitingCall destroy([handle = stream.release()] { return aclrtDestroyStream(handle); });
  EXPECT_TRUE(destroy.waits());
  EXPECT_EQ(counter.runs(), 0);
  EXPECT_TRUE(page.holds(TargetPage::kInitial));
  gate.open();
  EXPECT_EQ(destroy.code(), ACL_SUCCESS) << destroy.text();
  EXPECT_EQ(counter.runs(), 1);
  EXPECT_TRUE(page.holds(5));
}

TEST_F(StreamDestruction, STREAM_08_DestroyOfAnIdleStreamLeavesOthersAlone) {
  const TestStream held;
  TestStream idle;
  Gate gate(held.get());
  idle.destroy();
  EXPECT_EQ(stream_status(held.get()), ACL_STREAM_STATUS_NOT_READY);
}

TEST_F(StreamDestruction, STREAM_08_ForceDropsTasksBehindAWait) {
  TestStream stream;
  TargetPage page;
  TaskCounter counter;
  WordGate word;
  word.hold(stream.get());
  page.queue_set(stream.get(), 5);
  counter.queue_on(stream.get());
  const aclrtStream handle = stream.release();
  WaitingCall destroy([handle] { return aclrtDestroyStreamForce(handle); });
  EXPECT_TRUE(destroy.ends()) << "it waits for the wait";
  word.open();
  EXPECT_EQ(destroy.code(), ACL_SUCCESS) << destroy.text();
  expect_destroy_refused(ACL_ERROR_RT_INVALID_HANDLE, handle);
  EXPECT_SUCCESS(aclrtSynchronizeDeviceWithTimeout(kLongLimit));
  EXPECT_EQ(counter.runs(), 0);
  EXPECT_TRUE(page.holds(TargetPage::kInitial));
}

TEST_F(StreamDestruction, STREAM_08_ForceDoesNotWaitForARunningFunction) {
  TestStream stream;
  TargetPage page;
  TaskCounter counter;
  {
    Gate gate(stream.get());
    gate.wait_until_reached();
    page.queue_set(stream.get(), 5);
    counter.queue_on(stream.get());
    WaitingCall destroy([handle = stream.release()] { return aclrtDestroyStreamForce(handle); });
    EXPECT_TRUE(destroy.ends()) << "it waits for the function";
    gate.open();
    EXPECT_EQ(destroy.code(), ACL_SUCCESS) << destroy.text();
  }
  EXPECT_SUCCESS(aclrtSynchronizeDeviceWithTimeout(kLongLimit));
  EXPECT_EQ(counter.runs(), 0);
  EXPECT_TRUE(page.holds(TargetPage::kInitial));
}

TEST_F(StreamDestruction, STREAM_08_AnIdleStreamIsDestroyedEitherWay) {
  const uint32_t left = streams_left();
  for (const DestroyFunction& destroy : kDestroyFunctions) {
    SCOPED_TRACE(destroy.name);
    TestStream stream;
    TaskCounter counter;
    counter.queue_on(stream.get());
    expect_finishes(stream.get());
    EXPECT_EQ(destroy.call(stream.release()), ACL_SUCCESS) << recent_error();
    EXPECT_EQ(counter.runs(), 1);
    EXPECT_EQ(streams_left(), left);
  }
}

TEST_F(StreamDestruction, STREAM_08_CTX_06_AContextEndsItsStreamsAfterTheirTasks) {
  ContextScope context(0);
  TestStream stream;
  TargetPage page;
  TaskCounter counter;
  Gate gate(stream.get());
  page.queue_set(stream.get(), 5);
  counter.queue_on(stream.get());
  const aclrtStream handle = stream.release();
  context.leave();
  {
    WaitingCall destroy([&context] {
      context.destroy();
      return ACL_SUCCESS;
    });
    EXPECT_TRUE(destroy.waits());
    EXPECT_EQ(counter.runs(), 0);
    gate.open();
    EXPECT_EQ(destroy.code(), ACL_SUCCESS);
  }
  EXPECT_EQ(counter.runs(), 1);
  EXPECT_TRUE(page.holds(5));
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtSynchronizeStream(handle));
  expect_destroy_refused(ACL_ERROR_RT_INVALID_HANDLE, handle);
}

}  // namespace
}  // namespace understudy_test
