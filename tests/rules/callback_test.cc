// SPDX-License-Identifier: Apache-2.0
//
// Callbacks of a stream: their arguments, and when, where and in which order they run.
// Covers: CB-01, CB-02, CB-03, CB-04, CB-10.
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "rules/callback_objects.h"
#include "rules/host_objects.h"

namespace understudy_test::callbacks {
namespace {

class Callback : public DeviceTest {};

constexpr aclrtCallbackBlockType kBlockTypes[] = {ACL_CALLBACK_NO_BLOCK, ACL_CALLBACK_BLOCK};

void never_runs(void*) { ADD_FAILURE() << "this callback was refused or dropped"; }

// ---- Arguments ----

TEST_F(Callback, CB_01_UnknownBlockTypesAreRefusedBeforeAnythingElse) {
  const TestStream stream;
  const Subscription subscription(stream.get());
  const auto expect_refused = [&] {
    for (const int64_t block : {2, 3, -1, 0xFFFF}) {
      SCOPED_TRACE(block);
      const auto type = enum_value<aclrtCallbackBlockType>(block);
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                   aclrtLaunchCallback(never_runs, nullptr, type, stream.get()));
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
                   aclrtLaunchCallback(nullptr, nullptr, type, stream.get()));
    }
  };
  expect_refused();
  on_bare_thread(expect_refused);
  expect_nothing_to_serve();
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_COMPLETE);
}

TEST_F(Callback, CB_01_ACallbackMustBeThere) {
  const TestStream stream;
  const Subscription subscription(stream.get());
  for (const aclrtCallbackBlockType block : kBlockTypes) {
    SCOPED_TRACE(block);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtLaunchCallback(nullptr, nullptr, block, stream.get()));
  }
  expect_nothing_to_serve();
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_COMPLETE);
}

TEST_F(Callback, CB_02_WithoutASubscriberNothingIsLaunched) {
  const TestStream stream;
  const TestStream served;
  const Subscription subscription(served.get());
  for (aclrtStream unserved : {stream.get(), aclrtStream{nullptr}, handle_of_default_stream()}) {
    for (const aclrtCallbackBlockType block : kBlockTypes) {
      EXPECT_FAILS(ACL_ERROR_RT_STREAM_NO_CB_REG,
                   aclrtLaunchCallback(never_runs, nullptr, block, unserved));
    }
    EXPECT_EQ(stream_status(unserved), ACL_STREAM_STATUS_COMPLETE);
    EXPECT_SUCCESS(finish(unserved));
  }
  expect_nothing_to_serve();
}

TEST_F(Callback, CB_02_AStreamWithHostFunctionsHasNoCallbacksForItsWholeLife) {
  const TestStream created;
  for (aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    SCOPED_TRACE(stream);
    const auto expect_refused = [&] {
      EXPECT_FAILS(ACL_ERROR_RT_STREAM_SUBSCRIBE, aclrtSubscribeReport(this_thread(), stream));
      EXPECT_FAILS(ACL_ERROR_RT_STREAM_SUBSCRIBE, aclrtUnSubscribeReport(this_thread(), stream));
      for (const aclrtCallbackBlockType block : kBlockTypes) {
        EXPECT_FAILS(ACL_ERROR_RT_STREAM_SUBSCRIBE,
                     aclrtLaunchCallback(never_runs, nullptr, block, stream));
      }
    };
    {
      const Gate gate(stream);
      expect_refused();
    }
    EXPECT_SUCCESS(finish(stream));
    expect_refused();
  }
  EXPECT_FAILS(ACL_ERROR_RT_THREAD_SUBSCRIBE, aclrtProcessReport(1));
}

TEST_F(Callback, CB_02_StreamsMustBeAliveAndOfTheCurrentContext) {
  expect_bad_streams_refused({
      {"aclrtLaunchCallback",
       [](aclrtStream stream) {
         return aclrtLaunchCallback(never_runs, nullptr, ACL_CALLBACK_BLOCK, stream);
       }},
      {"aclrtSubscribeReport",
       [](aclrtStream stream) { return aclrtSubscribeReport(this_thread(), stream); }},
      {"aclrtUnSubscribeReport",
       [](aclrtStream stream) { return aclrtUnSubscribeReport(this_thread(), stream); }},
  });
  EXPECT_FAILS(ACL_ERROR_RT_THREAD_SUBSCRIBE, aclrtProcessReport(1));
}

// ---- Where and when ----

TEST_F(Callback, CB_03_RunsOnTheSubscribedThreadInsideProcessReport) {
  for (const aclrtCallbackBlockType block : kBlockTypes) {
    SCOPED_TRACE(block);
    const TestStream stream;
    const Subscription subscription(stream.get());
    uint64_t ran_on = 0;
    bool is_inside = false;
    bool was_inside = false;
    Body body([&] {
      ran_on = this_thread();
      was_inside = is_inside;
    });
    launch(body, stream.get(), block);
    // Nobody else runs it, however long nobody asks.
    on_bare_thread([] { EXPECT_FAILS(ACL_ERROR_RT_THREAD_SUBSCRIBE, aclrtProcessReport(1)); });
    EXPECT_EQ(ran_on, 0u);
    is_inside = true;
    EXPECT_SUCCESS(serve_one());
    is_inside = false;
    EXPECT_TRUE(was_inside);
    EXPECT_EQ(ran_on, this_thread());
    expect_nothing_to_serve();
    EXPECT_SUCCESS(finish(stream.get()));
  }
}

TEST_F(Callback, CB_03_TheDefaultStreamHasCallbacksToo) {
  for (aclrtStream stream : {aclrtStream{nullptr}, handle_of_default_stream()}) {
    SCOPED_TRACE(stream);
    const Subscription subscription(stream);
    int runs = 0;
    Body body([&] { ++runs; });
    launch(body, nullptr);
    launch(body, handle_of_default_stream());
    EXPECT_SUCCESS(serve_one());
    EXPECT_SUCCESS(serve_one());
    EXPECT_EQ(runs, 2);
    EXPECT_SUCCESS(finish(nullptr));
  }
}

void remember_argument(void* argument) { *static_cast<void**>(argument) = argument; }
void expect_null(void* argument) { EXPECT_EQ(argument, nullptr); }

TEST_F(Callback, CB_03_TheUserDataArriveAsTheyWereGiven) {
  const TestStream stream;
  const Subscription subscription(stream.get());
  void* self = nullptr;
  EXPECT_SUCCESS(aclrtLaunchCallback(remember_argument, &self, ACL_CALLBACK_BLOCK, stream.get()));
  EXPECT_SUCCESS(aclrtLaunchCallback(expect_null, nullptr, ACL_CALLBACK_BLOCK, stream.get()));
  EXPECT_SUCCESS(serve_one());
  EXPECT_EQ(self, &self);
  EXPECT_SUCCESS(serve_one());
  EXPECT_SUCCESS(finish(stream.get()));
}

TEST_F(Callback, CB_03_OneCallRunsOneCallback) {
  for (const aclrtCallbackBlockType block : kBlockTypes) {
    SCOPED_TRACE(block);
    const TestStream stream;
    const Subscription subscription(stream.get());
    int runs = 0;
    Body body([&] { ++runs; });
    for (int i = 0; i < 3; ++i) launch(body, stream.get(), block);
    for (int expected = 1; expected <= 3; ++expected) {
      EXPECT_SUCCESS(serve_one());
      EXPECT_EQ(runs, expected);
    }
    expect_nothing_to_serve();
    EXPECT_EQ(runs, 3);
    EXPECT_SUCCESS(finish(stream.get()));
  }
}

TEST_F(Callback, CB_03_CallbacksOfAStreamRunInItsOrder) {
  const TestStream stream;
  const Subscription subscription(stream.get());
  constexpr int kCount = 200;
  std::vector<int> order;
  std::vector<std::unique_ptr<Body>> bodies;
  for (int i = 0; i < kCount; ++i) {
    bodies.push_back(std::make_unique<Body>([&order, i] { order.push_back(i); }));
    launch(*bodies.back(), stream.get(), kBlockTypes[i % 2]);
  }
  for (int i = 0; i < kCount; ++i) ASSERT_SUCCESS(serve_one());
  ASSERT_EQ(order.size(), static_cast<size_t>(kCount));
  for (int i = 0; i < kCount; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_SUCCESS(finish(stream.get()));
}

TEST_F(Callback, CB_03_ACallbackRunsAfterTheTasksBeforeIt) {
  for (const aclrtCallbackBlockType block : kBlockTypes) {
    SCOPED_TRACE(block);
    const TestStream stream;
    const Subscription subscription(stream.get());
    const std::vector<uint8_t> bytes = pattern(kPage);
    const MallocedMemory device(kPage);
    const HostBlock host(kPage);
    copy_in(device.data(), bytes);
    memset(host.data(), 0, kPage);
    EventGate gate(stream.get());
    EXPECT_SUCCESS(aclrtMemcpyAsync(host.data(), kPage, device.data(), kPage,
                                    ACL_MEMCPY_DEVICE_TO_HOST, stream.get()));
    bool did_run = false;
    bool saw_the_copy = false;
    Body body([&] {
      did_run = true;
      saw_the_copy = holds(host.data(), bytes);
    });
    launch(body, stream.get(), block);
    expect_nothing_to_serve();
    EXPECT_FALSE(did_run);
    gate.open();
    EXPECT_SUCCESS(serve_one());
    EXPECT_TRUE(saw_the_copy);
    EXPECT_SUCCESS(finish(stream.get()));
  }
}

TEST_F(Callback, CB_03_AnExceptionIsAnErrorOfProcessReportAndTheStreamGoesOn) {
  const TestStream stream;
  const Subscription subscription(stream.get());
  const TestEvent event;
  Body throws([] { throw std::runtime_error("of a callback"); });
  int runs = 0;
  Body counts([&] { ++runs; });
  launch(throws, stream.get());
  launch(counts, stream.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  EXPECT_FAILS(ACL_ERROR_INTERNAL_ERROR, aclrtProcessReport(kLongMilliseconds));
  EXPECT_SUCCESS(serve_one());
  EXPECT_EQ(runs, 1);
  EXPECT_SUCCESS(reach(event.get()));
}

// ---- What waits ----

TEST_F(Callback, CB_04_LaterTasksWaitForABlockingCallback) {
  const TestStream stream;
  const Subscription subscription(stream.get());
  const TestEvent before;
  const TestEvent after;
  bool did_run = false;
  Body body([&] { did_run = true; });
  EXPECT_SUCCESS(aclrtRecordEvent(before.get(), stream.get()));
  launch(body, stream.get(), ACL_CALLBACK_BLOCK);
  EXPECT_SUCCESS(aclrtRecordEvent(after.get(), stream.get()));
  EXPECT_SUCCESS(reach(before.get()));
  EXPECT_FAILS(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, aclrtSynchronizeEventWithTimeout(after.get(), 1));
  EXPECT_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT,
               aclrtSynchronizeStreamWithTimeout(stream.get(), 1));
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
  EXPECT_FALSE(did_run);
  EXPECT_SUCCESS(serve_one());
  EXPECT_TRUE(did_run);
  EXPECT_SUCCESS(reach(after.get()));
  EXPECT_SUCCESS(finish(stream.get()));
}

TEST_F(Callback, CB_04_LaterTasksWaitUntilABlockingCallbackHasEnded) {
  Pause pause;
  const TestStream stream;
  const TestEvent after;
  Body body([&] { pause.stand(); });
  Server server;
  const Subscription subscription(stream.get(), server.id());
  server.start();
  launch(body, stream.get(), ACL_CALLBACK_BLOCK);
  EXPECT_SUCCESS(aclrtRecordEvent(after.get(), stream.get()));
  EXPECT_TRUE(pause.is_reached());
  EXPECT_FAILS(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, aclrtSynchronizeEventWithTimeout(after.get(), 1));
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
  pause.release();
  EXPECT_EQ(server.answer(), ACL_SUCCESS);
  EXPECT_SUCCESS(reach(after.get()));
  EXPECT_SUCCESS(finish(stream.get()));
}

TEST_F(Callback, CB_04_ABlockingCallbackMayFeedTheTasksBehindIt) {
  const TestStream stream;
  const Subscription subscription(stream.get());
  const std::vector<uint8_t> bytes = pattern(kPage);
  const MallocedMemory device(kPage);
  const HostBlock host(kPage);
  memset(host.data(), 0, kPage);
  Body body([&] { store(host.data(), bytes); });
  launch(body, stream.get(), ACL_CALLBACK_BLOCK);
  EXPECT_SUCCESS(aclrtMemcpyAsync(device.data(), kPage, host.data(), kPage,
                                  ACL_MEMCPY_HOST_TO_DEVICE, stream.get()));
  EXPECT_SUCCESS(serve_one());
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_EQ(copy_out(device.data(), kPage), bytes);
}

TEST_F(Callback, CB_04_LaterTasksDoNotWaitForANonBlockingCallback) {
  const TestStream stream;
  const Subscription subscription(stream.get());
  const TestEvent after;
  bool did_run = false;
  Body body([&] { did_run = true; });
  launch(body, stream.get(), ACL_CALLBACK_NO_BLOCK);
  EXPECT_SUCCESS(aclrtRecordEvent(after.get(), stream.get()));
  EXPECT_SUCCESS(reach(after.get()));
  EXPECT_FALSE(did_run);
  EXPECT_SUCCESS(serve_one());
  EXPECT_TRUE(did_run);
}

// ---- What callbacks may do ----

TEST_F(Callback, CB_10_ACallbackMayAskThings) {
  const TestStream stream;
  const TestEvent after;
  const Subscription subscription(stream.get());
  Body body([&] {
    EXPECT_EQ(event_status(after.get()), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
    EXPECT_GT(free_bytes(), 0u);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtQueryEventStatus(after.get(), nullptr));
  });
  launch(body, stream.get(), ACL_CALLBACK_BLOCK);
  EXPECT_SUCCESS(aclrtRecordEvent(after.get(), stream.get()));
  EXPECT_SUCCESS(serve_one());
  EXPECT_SUCCESS(finish(stream.get()));
}

}  // namespace
}  // namespace understudy_test::callbacks
