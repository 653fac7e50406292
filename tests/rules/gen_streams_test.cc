// SPDX-License-Identifier: Apache-2.0
//
// Rules common to all functions that take a stream: what NULL stands for, and what becomes of
// streams of other contexts and of handles that are none.
// Covers: GEN-03, GEN-04, GEN-05, GEN-06, GEN-09.
#include <pthread.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rules/batch_objects.h"
#include "rules/stream_tasks.h"

namespace understudy_test {
namespace {

struct StreamCall {
  const char* name;
  std::function<aclError(aclrtStream)> run;
};

// Everything the calls need, with bytes to see whether they did something.
class StreamArguments {
 public:
  static constexpr size_t kSize = 64;

  StreamArguments() {
    memset(static_cast<void*>(&outputs_), 0x5a, sizeof outputs_);
    copy_in(target_.data(), before_);
    memset(source_.data(), 0x77, kSize);
    batch_.add(target_.data(), source_.data(), kSize);
    batch_.from_element(0, to_device());
  }

  // Calls that queue a write to the target.
  std::vector<StreamCall> writes() {
    void* const to = target_.data();
    void* const from = source_.data();
    const BatchArguments batch = batch_.arguments();
    constexpr auto kKind = ACL_MEMCPY_HOST_TO_DEVICE;
    return {
        {"aclrtMemcpyAsync",
         [=](aclrtStream s) { return aclrtMemcpyAsync(to, kSize, from, kSize, kKind, s); }},
        {"aclrtMemcpyAsyncWithCondition",
         [=](aclrtStream s) {
           return aclrtMemcpyAsyncWithCondition(to, kSize, from, kSize, kKind, s);
         }},
        {"aclrtMemcpyBatchAsync",
         [=](aclrtStream s) {
           size_t failed = 0;
           return aclrtMemcpyBatchAsync(batch.targets, batch.rooms, batch.sources, batch.sizes,
                                        batch.count, batch.attributes, batch.attribute_starts,
                                        batch.attribute_count, &failed, s);
         }},
        {"aclrtMemcpyBatchAsyncV2",
         [=](aclrtStream s) {
           return aclrtMemcpyBatchAsyncV2(batch.targets, batch.rooms, batch.sources, batch.sizes,
                                          batch.count, batch.attributes, batch.attribute_starts,
                                          batch.attribute_count, s);
         }},
        {"aclrtMemcpy2dAsync",
         [=](aclrtStream s) { return aclrtMemcpy2dAsync(to, 16, from, 16, 8, 4, kKind, s); }},
        {"aclrtMemsetAsync",
         [=](aclrtStream s) { return aclrtMemsetAsync(to, kSize, 0x77, kSize, s); }},
        {"aclrtMemsetD32Async",
         [=](aclrtStream s) { return aclrtMemsetD32Async(to, kSize, 0x77777777, 4, s); }},
        {"aclrtValueWrite",
         [=](aclrtStream s) { return aclrtValueWrite(to, 0x7777777777777777, 0, s); }},
    };
  }

  // Every other call that takes a stream; each is valid but for the stream. `all` has both.
  std::vector<StreamCall> others() {
    void* const word = target_.data();
    Outputs* const out = &outputs_;
    TaskCounter* const counter = &counter_;
    const aclrtEvent ex = ex_.get();
    const aclrtEvent classic = classic_.get();
    constexpr auto kTag = ACL_STREAM_ATTR_USER_CUSTOM_TAG;
    return {
        {"aclrtSynchronizeStream", aclrtSynchronizeStream},
        {"aclrtSynchronizeStreamWithTimeout",
         [](aclrtStream s) { return aclrtSynchronizeStreamWithTimeout(s, kLongLimit); }},
        {"aclrtStreamQuery", [=](aclrtStream s) { return aclrtStreamQuery(s, &out->status); }},
        {"aclrtStreamWaitEvent", [=](aclrtStream s) { return aclrtStreamWaitEvent(s, ex); }},
        {"aclrtStreamWaitEventWithTimeout",
         [=](aclrtStream s) { return aclrtStreamWaitEventWithTimeout(s, ex, 0); }},
        {"aclrtStreamWaitEventWithFlag",
         [=](aclrtStream s) { return aclrtStreamWaitEventWithFlag(s, ex, 0, 0); }},
        {"aclrtStreamAbort", aclrtStreamAbort},
        {"aclrtStreamStop", aclrtStreamStop},
        {"aclrtStreamGetId", [=](aclrtStream s) { return aclrtStreamGetId(s, &out->id); }},
        {"aclrtStreamGetPriority",
         [=](aclrtStream s) { return aclrtStreamGetPriority(s, &out->priority); }},
        {"aclrtStreamGetFlags", [=](aclrtStream s) { return aclrtStreamGetFlags(s, &out->flags); }},
        {"aclrtSetStreamAttribute",
         [=](aclrtStream s) {
           aclrtStreamAttrValue value = {};
           value.userCustomTag = 0x77;
           return aclrtSetStreamAttribute(s, kTag, &value);
         }},
        {"aclrtGetStreamAttribute",
         [=](aclrtStream s) { return aclrtGetStreamAttribute(s, kTag, &out->attribute); }},
        {"aclrtSetStreamFailureMode",
         [](aclrtStream s) { return aclrtSetStreamFailureMode(s, ACL_STOP_ON_FAILURE); }},
        {"aclrtSetStreamOverflowSwitch",
         [](aclrtStream s) { return aclrtSetStreamOverflowSwitch(s, 1); }},
        {"aclrtGetStreamOverflowSwitch",
         [=](aclrtStream s) { return aclrtGetStreamOverflowSwitch(s, &out->overflow); }},
        {"aclrtRecordEvent", [=](aclrtStream s) { return aclrtRecordEvent(classic, s); }},
        {"aclrtRecordEventWithFlag",
         [=](aclrtStream s) { return aclrtRecordEventWithFlag(classic, s, 0); }},
        {"aclrtResetEvent", [=](aclrtStream s) { return aclrtResetEvent(classic, s); }},
        {"aclrtLaunchHostFunc",
         [=](aclrtStream s) { return aclrtLaunchHostFunc(s, TaskCounter::run, counter); }},
        {"aclrtSubscribeReport",
         [](aclrtStream s) { return aclrtSubscribeReport(pthread_self(), s); }},
        {"aclrtUnSubscribeReport",
         [](aclrtStream s) { return aclrtUnSubscribeReport(pthread_self(), s); }},
        {"aclrtLaunchCallback",
         [=](aclrtStream s) {
           return aclrtLaunchCallback(TaskCounter::run, counter, ACL_CALLBACK_NO_BLOCK, s);
         }},
        {"aclrtValueWait",
         [=](aclrtStream s) { return aclrtValueWait(word, 0, ACL_STREAM_WAIT_VALUE_NOR, s); }},
        {"aclrtDestroyStream", aclrtDestroyStream},
        {"aclrtDestroyStreamForce", aclrtDestroyStreamForce},
    };
  }
  std::vector<StreamCall> all() {
    std::vector<StreamCall> calls = writes();
    for (StreamCall& call : others()) calls.push_back(std::move(call));
    return calls;
  }

  void restore_target() { copy_in(target_.data(), before_); }
  bool target_is_untouched() const { return copy_out(target_.data(), kSize) == before_; }
  void expect_untouched() const {
    Outputs fresh;
    memset(static_cast<void*>(&fresh), 0x5a, sizeof fresh);
    EXPECT_EQ(
        memcmp(static_cast<const void*>(&outputs_), static_cast<const void*>(&fresh), sizeof fresh),
        0);
    EXPECT_TRUE(target_is_untouched());
    EXPECT_EQ(counter_.runs(), 0);
    EXPECT_EQ(event_status(classic_.get()), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  }

 private:
  struct Outputs {
    aclrtStreamStatus status;
    int32_t id;
    uint32_t priority;
    uint32_t flags;
    uint32_t overflow;
    aclrtStreamAttrValue attribute;
  };

  const std::vector<uint8_t> before_ = pattern(kSize, 3);
  LiveMapping target_;
  HostBlock source_{kSize};
  Batch batch_;
  TestEvent ex_;
  TestEvent classic_{EventFamily::kClassic, ACL_EVENT_SYNC};
  TaskCounter counter_;
  Outputs outputs_;
};

using StreamArgument = DeviceTest;

void expect_all_refused(aclError code, StreamArguments& arguments, aclrtStream stream) {
  SCOPED_TRACE(stream);
  for (const StreamCall& call : arguments.all()) {
    SCOPED_TRACE(call.name);
    (void)recent_error();
    EXPECT_TRUE(fails_with(code, call.run(stream), call.name));
  }
}

// ---- NULL ----

// Runs the check with either name of the default stream as the one to hold and the one to use.
template <typename Check>
void with_both_names(Check check) {
  check(aclrtStream{nullptr}, runtime::default_stream());
  check(runtime::default_stream(), aclrtStream{nullptr});
  check(aclrtStream{nullptr}, aclrtStream{nullptr});
}

TEST_F(StreamArgument, GEN_04_WritesToNullRunOnTheDefaultStream) {
  StreamArguments arguments;
  for (const StreamCall& call : arguments.writes()) {
    SCOPED_TRACE(call.name);
    with_both_names([&](aclrtStream held, aclrtStream used) {
      arguments.restore_target();
      Gate gate(held);
      gate.wait_until_reached();
      EXPECT_SUCCESS(call.run(used));
      EXPECT_TRUE(arguments.target_is_untouched()) << "not behind the default stream's tasks";
      gate.open();
      expect_finishes(held);
      EXPECT_FALSE(arguments.target_is_untouched());
    });
  }
}

TEST_F(StreamArgument, GEN_04_EventsAndFunctionsOnNullBelongToTheDefaultStream) {
  with_both_names([](aclrtStream held, aclrtStream used) {
    const TestEvent event;
    const TestEvent flagged;
    const TestEvent classic(EventFamily::kClassic, ACL_EVENT_SYNC);
    TaskCounter counter;
    EXPECT_SUCCESS(aclrtRecordEvent(classic.get(), used));
    expect_finishes(held);
    Gate gate(held);
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), used));
    EXPECT_SUCCESS(aclrtRecordEventWithFlag(flagged.get(), used, ACL_EVENT_RECORD_DEFAULT));
    EXPECT_SUCCESS(aclrtResetEvent(classic.get(), used));
    counter.queue_on(used);
    EXPECT_EQ(event_status(event.get()), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    EXPECT_EQ(event_status(flagged.get()), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    EXPECT_EQ(counter.runs(), 0);
    gate.open();
    expect_finishes(held);
    EXPECT_EQ(event_status(event.get()), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    EXPECT_EQ(event_status(flagged.get()), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    EXPECT_EQ(event_status(classic.get()), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    EXPECT_EQ(counter.runs(), 1);
  });
}

TEST_F(StreamArgument, GEN_04_NullIsHeldSynchronisedQueriedAndAborted) {
  with_both_names([](aclrtStream held, aclrtStream used) {
    WordGate word;
    word.hold(held);
    EXPECT_EQ(stream_status(used), ACL_STREAM_STATUS_NOT_READY);
    EXPECT_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                 aclrtSynchronizeStreamWithTimeout(used, kShortLimit));
    EXPECT_SUCCESS(aclrtStreamAbort(used));
    expect_finishes(used);
    EXPECT_EQ(stream_status(held), ACL_STREAM_STATUS_COMPLETE);
  });
}

TEST_F(StreamArgument, GEN_04_NullIsTheDefaultStreamOfTheCurrentContext) {
  TestEvent event;
  Gate gate(nullptr);
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), nullptr));
  {
    const ContextScope other(0);
    TargetPage page;
    page.queue_set(nullptr, 4);
    expect_finishes(nullptr);
    EXPECT_TRUE(page.holds(4));
    EXPECT_EQ(stream_status(nullptr), ACL_STREAM_STATUS_COMPLETE);
  }
  EXPECT_EQ(stream_status(nullptr), ACL_STREAM_STATUS_NOT_READY);
  EXPECT_EQ(event_status(event.get()), ACL_EVENT_RECORDED_STATUS_NOT_READY);
}

TEST_F(StreamArgument, GEN_04_EveryThreadOfAContextSharesItsDefaultStream) {
  const aclrtContext context = runtime::current_context();
  Gate gate(nullptr);
  on_bare_thread([context] {
    ASSERT_SUCCESS(aclrtSetCurrentContext(context));
    EXPECT_EQ(stream_status(nullptr), ACL_STREAM_STATUS_NOT_READY);
    EXPECT_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
                 aclrtSynchronizeStreamWithTimeout(nullptr, kShortLimit));
  });
}

// ---- Streams that cannot be used ----

TEST_F(StreamArgument, GEN_03_AContextIsNeeded) {
  StreamArguments arguments;
  const TestStream stream;
  on_bare_thread([&] { expect_all_refused(ACL_ERROR_RT_CONTEXT_NULL, arguments, stream.get()); });
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_COMPLETE);
  arguments.expect_untouched();
}

TEST_F(StreamArgument, GEN_05_StreamsOfOtherContextsAreRefused) {
  StreamArguments arguments;
  const aclrtContext home = runtime::current_context();
  const TestStream stream;
  const aclrtStream of_default_context = runtime::default_stream();
  for (const int32_t device : {0, 1}) {
    SCOPED_TRACE(device);
    const ContextScope other(device);
    expect_all_refused(ACL_ERROR_RT_STREAM_CONTEXT, arguments, stream.get());
    expect_all_refused(ACL_ERROR_RT_STREAM_CONTEXT, arguments, of_default_context);
    const aclrtStream of_other_context = runtime::default_stream();
    other.leave();
    ASSERT_EQ(runtime::current_context(), home);
    expect_all_refused(ACL_ERROR_RT_STREAM_CONTEXT, arguments, of_other_context);
  }
  for (const aclrtStream untouched : {stream.get(), aclrtStream{nullptr}}) {
    EXPECT_EQ(stream_status(untouched), ACL_STREAM_STATUS_COMPLETE);
    EXPECT_EQ(failure_mode_of(untouched), ACL_CONTINUE_ON_FAILURE);
    EXPECT_EQ(attribute_of(untouched, ACL_STREAM_ATTR_USER_CUSTOM_TAG).userCustomTag, 0u);
  }
  arguments.expect_untouched();
}

TEST_F(StreamArgument, GEN_05_TheContextDecidesNotTheThread) {
  const TestStream stream;
  const aclrtContext context = runtime::current_context();
  on_bare_thread([&] {
    ASSERT_SUCCESS(aclrtSetCurrentContext(context));
    TargetPage page;
    page.queue_set(stream.get(), 4);
    expect_finishes(stream.get());
    EXPECT_TRUE(page.holds(4));
  });
}

TEST_F(StreamArgument, GEN_06_DestroyedStreamsAreRefused) {
  StreamArguments arguments;
  TestStream doomed;
  const aclrtStream destroyed = doomed.release();
  ASSERT_SUCCESS(aclrtDestroyStream(destroyed));
  expect_all_refused(ACL_ERROR_RT_INVALID_HANDLE, arguments, destroyed);

  // A new stream may take the place of the old one; the old handle must not reach it.
  const std::vector<TestStream> successors(16);
  expect_all_refused(ACL_ERROR_RT_INVALID_HANDLE, arguments, destroyed);
  for (const TestStream& successor : successors) {
    EXPECT_EQ(failure_mode_of(successor.get()), ACL_CONTINUE_ON_FAILURE);
  }
  arguments.expect_untouched();
}

TEST_F(StreamArgument, GEN_06_StreamsThatEndedWithTheirContextAreRefused) {
  StreamArguments arguments;
  ContextScope context(0);
  const aclrtStream created = TestStream().release();
  const aclrtStream of_context = runtime::default_stream();
  context.destroy();
  expect_all_refused(ACL_ERROR_RT_INVALID_HANDLE, arguments, created);
  expect_all_refused(ACL_ERROR_RT_INVALID_HANDLE, arguments, of_context);
  arguments.expect_untouched();
}

TEST_F(StreamArgument, GEN_06_GEN_09_WhatIsNoStreamIsRefused) {
  StreamArguments arguments;
  const TestEvent event;
  const LiveMapping memory;
  int on_stack = 0;
  for (void* foreign : {static_cast<void*>(&on_stack), address(1), address(0x1000),
                        address(UINT64_MAX), event.get(), runtime::current_context(), memory.data(),
                        static_cast<void*>(memory.handle())}) {
    // Kinds of handles may share numbers.
    if (foreign == runtime::default_stream()) continue;
    expect_all_refused(ACL_ERROR_RT_INVALID_HANDLE, arguments, foreign);
  }
  EXPECT_EQ(on_stack, 0);
  arguments.expect_untouched();
}

}  // namespace
}  // namespace understudy_test
