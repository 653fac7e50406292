// SPDX-License-Identifier: Apache-2.0
//
// Host functions of a stream, which need no subscription.
// Covers: CB-08, CB-09, CB-10.
#include <atomic>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "rules/callback_objects.h"
#include "rules/host_objects.h"

namespace understudy_test::callbacks {
namespace {

class CallbackHostFunction : public DeviceTest {};

void never_runs(void*) { ADD_FAILURE() << "this function was refused"; }

// ---- Arguments ----

TEST_F(CallbackHostFunction, CB_08_AFunctionMustBeThere) {
  const TestStream stream;
  int argument = 0;
  for (aclrtStream target : {stream.get(), aclrtStream{nullptr}}) {
    SCOPED_TRACE(target);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtLaunchHostFunc(target, nullptr, nullptr));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtLaunchHostFunc(target, nullptr, &argument));
    EXPECT_EQ(stream_status(target), ACL_STREAM_STATUS_COMPLETE);
    // The stream does not count as used with host functions.
    const Subscription subscription(target);
  }
}

TEST_F(CallbackHostFunction, CB_08_AStreamWithASubscriberIsRefused) {
  const TestStream created;
  for (aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    SCOPED_TRACE(stream);
    const Subscription subscription(stream);
    EXPECT_FAILS(ACL_ERROR_RT_STREAM_SUBSCRIBE, aclrtLaunchHostFunc(stream, never_runs, nullptr));
    EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_COMPLETE);
    // It is still one for callbacks.
    int runs = 0;
    Body body([&] { ++runs; });
    launch(body, stream);
    EXPECT_SUCCESS(serve_one());
    EXPECT_EQ(runs, 1);
    EXPECT_SUCCESS(finish(stream));
  }
}

TEST_F(CallbackHostFunction, CB_08_StreamsMustBeAliveAndOfTheCurrentContext) {
  expect_bad_streams_refused({
      {"aclrtLaunchHostFunc",
       [](aclrtStream stream) { return aclrtLaunchHostFunc(stream, never_runs, nullptr); }},
  });
}

TEST_F(CallbackHostFunction, CB_08_NullIsTheDefaultStream) {
  for (aclrtStream stream : {aclrtStream{nullptr}, handle_of_default_stream()}) {
    SCOPED_TRACE(stream);
    bool did_run = false;
    Gate gate(stream);
    EXPECT_EQ(stream_status(nullptr), ACL_STREAM_STATUS_NOT_READY);
    EXPECT_EQ(stream_status(handle_of_default_stream()), ACL_STREAM_STATUS_NOT_READY);
    const HostStep step(stream, [&] { did_run = true; });
    gate.open();
    EXPECT_SUCCESS(finish(nullptr));
    EXPECT_TRUE(did_run);
  }
}

// ---- Where, when, in which order ----

TEST_F(CallbackHostFunction, CB_09_RunsOnAThreadOfTheRuntimeWithoutASubscription) {
  const TestStream stream;
  uint64_t ran_on = 0;
  const HostStep step(stream.get(), [&] { ran_on = this_thread(); });
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_NE(ran_on, 0u);
  EXPECT_NE(ran_on, this_thread());
}

void remember_argument(void* argument) { *static_cast<void**>(argument) = argument; }
void expect_null(void* argument) { EXPECT_EQ(argument, nullptr); }

TEST_F(CallbackHostFunction, CB_09_TheArgumentArrivesAsItWasGiven) {
  const TestStream stream;
  void* self = nullptr;
  EXPECT_SUCCESS(aclrtLaunchHostFunc(stream.get(), remember_argument, &self));
  EXPECT_SUCCESS(aclrtLaunchHostFunc(stream.get(), expect_null, nullptr));
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_EQ(self, &self);
}

TEST_F(CallbackHostFunction, CB_09_FunctionsOfAStreamRunOnceAndInItsOrder) {
  const TestStream stream;
  constexpr int kCount = 1000;
  // Without a lock: each function has to wait for the one before it.
  std::vector<int> order;
  std::vector<std::unique_ptr<HostStep>> steps;
  for (int i = 0; i < kCount; ++i) {
    steps.push_back(std::make_unique<HostStep>(stream.get(), [&order, i] { order.push_back(i); }));
  }
  ASSERT_SUCCESS(finish(stream.get()));
  ASSERT_EQ(order.size(), static_cast<size_t>(kCount));
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST_F(CallbackHostFunction, CB_09_RunsBetweenTheTasksBeforeAndBehindIt) {
  const TestStream stream;
  const std::vector<uint8_t> first = pattern(kPage, 1);
  const std::vector<uint8_t> second = pattern(kPage, 2);
  const MallocedMemory device(kPage);
  const HostBlock host(kPage);
  copy_in(device.data(), first);
  memset(host.data(), 0, kPage);
  bool saw_the_copy = false;
  Gate gate(stream.get());
  EXPECT_SUCCESS(aclrtMemcpyAsync(host.data(), kPage, device.data(), kPage,
                                  ACL_MEMCPY_DEVICE_TO_HOST, stream.get()));
  const HostStep step(stream.get(), [&] {
    saw_the_copy = holds(host.data(), first);
    store(host.data(), second);
  });
  EXPECT_SUCCESS(aclrtMemcpyAsync(device.data(), kPage, host.data(), kPage,
                                  ACL_MEMCPY_HOST_TO_DEVICE, stream.get()));
  gate.open();
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(saw_the_copy);
  EXPECT_EQ(copy_out(device.data(), kPage), second);
}

TEST_F(CallbackHostFunction, CB_09_LaterTasksWaitUntilTheFunctionHasEnded) {
  const TestStream stream;
  const TestEvent after;
  std::atomic<bool> did_run = false;
  Gate gate(stream.get());
  const HostStep later(stream.get(), [&] { did_run = true; });
  EXPECT_SUCCESS(aclrtRecordEvent(after.get(), stream.get()));
  gate.wait_until_reached();
  EXPECT_FAILS(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, aclrtSynchronizeEventWithTimeout(after.get(), 1));
  EXPECT_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
               aclrtSynchronizeStreamWithTimeout(stream.get(), 1));
  EXPECT_FALSE(did_run);
  gate.open();
  EXPECT_SUCCESS(reach(after.get()));
  EXPECT_TRUE(did_run);
  EXPECT_SUCCESS(finish(stream.get()));
}

TEST_F(CallbackHostFunction, CB_09_AFunctionHoldsItsOwnStreamOnly) {
  const TestStream held[2];
  const TestStream free;
  const Gate first(held[0].get());
  const Gate second(held[1].get());
  bool did_run = false;
  const HostStep step(free.get(), [&] { did_run = true; });
  EXPECT_SUCCESS(finish(free.get()));
  EXPECT_TRUE(did_run);
  for (const TestStream& stream : held) {
    EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
  }
}

TEST_F(CallbackHostFunction, CB_09_AnExceptionIsAnErrorOfTheStreamWhichGoesOn) {
  const TestStream stream;
  bool did_run = false;
  const HostStep throws(stream.get(), [] { throw std::runtime_error("of a host function"); });
  const HostStep later(stream.get(), [&] { did_run = true; });
  EXPECT_FAILS(ACL_ERROR_INTERNAL_ERROR,
               aclrtSynchronizeStreamWithTimeout(stream.get(), kLongMilliseconds));
  EXPECT_TRUE(did_run);
  EXPECT_SUCCESS(finish(stream.get()));
}

// ---- What functions may do ----

TEST_F(CallbackHostFunction, CB_10_AFunctionMayAskThings) {
  const TestStream stream;
  const TestEvent after;
  auto status = enum_value<aclrtEventRecordedStatus>(77);
  uint32_t devices = 0;
  Gate gate(stream.get());
  const HostStep step(stream.get(), [&] {
    status = event_status(after.get());
    EXPECT_SUCCESS(aclrtGetDeviceCount(&devices));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDeviceCount(nullptr));
  });
  EXPECT_SUCCESS(aclrtRecordEvent(after.get(), stream.get()));
  gate.open();
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_EQ(status, ACL_EVENT_RECORDED_STATUS_NOT_READY);
  EXPECT_GT(devices, 0u);
}

}  // namespace
}  // namespace understudy_test::callbacks
