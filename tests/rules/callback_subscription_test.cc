// SPDX-License-Identifier: Apache-2.0
//
// Which thread serves which stream, how it waits for callbacks, and what ends with a subscription.
// Covers: CB-03, CB-05, CB-06, CB-07, CB-11.
#include <climits>
#include <memory>
#include <vector>

#include "rules/callback_objects.h"

namespace understudy_test::callbacks {
namespace {

class CallbackSubscription : public DeviceTest {};

void never_runs(void*) { ADD_FAILURE() << "this callback was refused or dropped"; }

void expect_not_served(aclrtStream stream) {
  for (const aclrtCallbackBlockType block : {ACL_CALLBACK_NO_BLOCK, ACL_CALLBACK_BLOCK}) {
    EXPECT_FAILS(ACL_ERROR_RT_STREAM_NO_CB_REG,
                 aclrtLaunchCallback(never_runs, nullptr, block, stream));
  }
}

// Launches a callback, has the calling thread serve it and expects that it ran here.
void expect_served_here(aclrtStream stream) {
  uint64_t ran_on = 0;
  Body body([&] { ran_on = this_thread(); });
  launch(body, stream);
  EXPECT_SUCCESS(serve_one());
  EXPECT_EQ(ran_on, this_thread());
  EXPECT_SUCCESS(finish(stream));
}

// ---- Who serves ----

TEST_F(CallbackSubscription, CB_05_CB_11_AStreamHasOneThread) {
  const TestStream stream;
  const Server other;
  const Subscription subscription(stream.get());
  EXPECT_FAILS(ACL_ERROR_RT_STREAM_SUBSCRIBE, aclrtSubscribeReport(this_thread(), stream.get()));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtSubscribeReport(other.id(), stream.get()));
  expect_served_here(stream.get());
}

TEST_F(CallbackSubscription, CB_05_AThreadServesManyStreams) {
  constexpr size_t kStreams = 5;
  const std::vector<TestStream> streams(kStreams);
  std::vector<int> runs(kStreams);
  std::vector<std::unique_ptr<Body>> bodies;
  for (size_t i = 0; i < kStreams; ++i) {
    ASSERT_SUCCESS(aclrtSubscribeReport(this_thread(), streams[i].get()));
    bodies.push_back(std::make_unique<Body>([&runs, i] { ++runs[i]; }));
  }
  for (size_t i = 0; i < kStreams; ++i) {
    for (size_t times = 0; times <= i; ++times) launch(*bodies[i], streams[i].get());
  }
  for (size_t i = 0; i < kStreams * (kStreams + 1) / 2; ++i) EXPECT_SUCCESS(serve_one());
  EXPECT_EQ(runs, (std::vector<int>{1, 2, 3, 4, 5}));
  expect_nothing_to_serve();
  for (const TestStream& stream : streams) {
    EXPECT_SUCCESS(finish(stream.get()));
    EXPECT_SUCCESS(aclrtUnSubscribeReport(this_thread(), stream.get()));
  }
}

TEST_F(CallbackSubscription, CB_05_AHeldStreamDoesNotHoldTheOthersOfItsThread) {
  const TestStream held;
  const TestStream idle;
  const Subscription first(held.get());
  const Subscription second(idle.get());
  bool did_run = false;
  Body body([&] { did_run = true; });
  EventGate gate(held.get());
  launch(body, held.get());
  expect_served_here(idle.get());
  EXPECT_FALSE(did_run);
  gate.open();
  EXPECT_SUCCESS(serve_one());
  EXPECT_TRUE(did_run);
  EXPECT_SUCCESS(finish(held.get()));
}

TEST_F(CallbackSubscription, CB_03_CB_05_TheIdNamesTheThreadThatServes) {
  const TestStream streams[2];
  uint64_t ran_on[2] = {};
  Body first([&] { ran_on[0] = this_thread(); });
  Body second([&] { ran_on[1] = this_thread(); });
  Server servers[2];
  // Each is appointed by this thread, not by itself.
  const Subscription first_subscription(streams[0].get(), servers[0].id());
  const Subscription second_subscription(streams[1].get(), servers[1].id());
  EXPECT_FAILS(ACL_ERROR_RT_THREAD_SUBSCRIBE, aclrtProcessReport(1));
  launch(first, streams[0].get());
  launch(second, streams[1].get());
  for (Server& server : servers) server.start();
  for (Server& server : servers) EXPECT_EQ(server.answer(), ACL_SUCCESS);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(ran_on[i], servers[i].id());
    EXPECT_SUCCESS(finish(streams[i].get()));
  }
}

TEST_F(CallbackSubscription, CB_05_CB_11_AThreadServesOneDeviceAtATime) {
  const aclrtContext own = current_context();
  const TestStream stream;
  Subscription subscription(stream.get());
  {
    const DeviceSession second_device(1);
    const aclrtContext other = current_context();
    const TestStream elsewhere;
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtSubscribeReport(this_thread(), elsewhere.get()));
    expect_not_served(elsewhere.get());

    ASSERT_SUCCESS(aclrtSetCurrentContext(own));
    expect_served_here(stream.get());
    subscription.end();

    ASSERT_SUCCESS(aclrtSetCurrentContext(other));
    const Subscription moved(elsewhere.get());
    expect_served_here(elsewhere.get());
  }
  ASSERT_SUCCESS(aclrtSetCurrentContext(own));
}

TEST_F(CallbackSubscription, CB_11_NoMoreThan1024ThreadsSubscribe) {
  constexpr uint64_t kMostThreads = 1024;
  const std::vector<TestStream> streams(kMostThreads + 1);
  // Numbers that no thread of this process has.
  for (uint64_t thread = 0; thread < kMostThreads; ++thread) {
    ASSERT_SUCCESS(aclrtSubscribeReport(thread + 1, streams[thread].get()));
  }
  EXPECT_FAILS(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
               aclrtSubscribeReport(kMostThreads + 1, streams.back().get()));
  EXPECT_SUCCESS(aclrtSubscribeReport(1, streams.back().get())) << "one that serves already";
  EXPECT_SUCCESS(aclrtUnSubscribeReport(2, streams[1].get()));
  EXPECT_SUCCESS(aclrtSubscribeReport(kMostThreads + 1, streams[1].get()));
}

// ---- Waiting for callbacks ----

TEST_F(CallbackSubscription, CB_06_BadLimitsAreRefusedFirst) {
  const auto expect_refused = [] {
    for (int32_t timeout : {0, -2, -1000, INT32_MIN}) {
      SCOPED_TRACE(timeout);
      EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtProcessReport(timeout));
    }
  };
  on_bare_thread(expect_refused);
  expect_refused();
  const TestStream stream;
  const Subscription subscription(stream.get());
  int runs = 0;
  Body body([&] { ++runs; });
  launch(body, stream.get());
  expect_refused();
  EXPECT_EQ(runs, 0);
  EXPECT_SUCCESS(serve_one());
  EXPECT_EQ(runs, 1);
  EXPECT_SUCCESS(finish(stream.get()));
}

TEST_F(CallbackSubscription, CB_06_AThreadThatServesNothingIsRefused) {
  const auto expect_refused = [] {
    for (int32_t timeout : {1, -1, INT32_MAX}) {
      SCOPED_TRACE(timeout);
      EXPECT_FAILS(ACL_ERROR_RT_THREAD_SUBSCRIBE, aclrtProcessReport(timeout));
    }
  };
  expect_refused();
  const TestStream stream;
  const Subscription subscription(stream.get());
  on_bare_thread(expect_refused);
}

TEST_F(CallbackSubscription, CB_06_TimeOverIsAnErrorAndTheCallbackIsServedLater) {
  const TestStream stream;
  const Subscription subscription(stream.get());
  expect_nothing_to_serve();
  EventGate gate(stream.get());
  bool did_run = false;
  Body body([&] { did_run = true; });
  launch(body, stream.get());
  for (int i = 0; i < 3; ++i) expect_nothing_to_serve();
  EXPECT_FALSE(did_run);
  gate.open();
  EXPECT_SUCCESS(aclrtProcessReport(INT32_MAX));
  EXPECT_TRUE(did_run);
  expect_nothing_to_serve();
  EXPECT_SUCCESS(finish(stream.get()));
}

TEST_F(CallbackSubscription, CB_06_MinusOneWaitsForACallback) {
  const TestStream stream;
  bool did_run = false;
  Body body([&] { did_run = true; });
  Server server;
  const Subscription subscription(stream.get(), server.id());
  server.start(-1);
  launch(body, stream.get());
  EXPECT_EQ(server.answer(), ACL_SUCCESS);
  EXPECT_TRUE(did_run);
  EXPECT_SUCCESS(finish(stream.get()));
}

// ---- The end of a subscription ----

TEST_F(CallbackSubscription, CB_07_AfterwardsTheStreamIsAsBefore) {
  const TestStream stream;
  for (int i = 0; i < 3; ++i) {
    Subscription subscription(stream.get());
    expect_served_here(stream.get());
    subscription.end();
    expect_not_served(stream.get());
    EXPECT_FAILS(ACL_ERROR_RT_THREAD_SUBSCRIBE, aclrtProcessReport(1));
  }
  // Host functions are possible again, too.
  bool did_run = false;
  const HostStep step(stream.get(), [&] { did_run = true; });
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(did_run);
}

TEST_F(CallbackSubscription, CB_07_AnotherThreadMayTakeOver) {
  const TestStream stream;
  uint64_t ran_on = 0;
  Body body([&] { ran_on = this_thread(); });
  Server server;
  Subscription first(stream.get());
  expect_served_here(stream.get());
  first.end();
  const Subscription second(stream.get(), server.id());
  launch(body, stream.get());
  EXPECT_FAILS(ACL_ERROR_RT_THREAD_SUBSCRIBE, aclrtProcessReport(1));
  server.start();
  EXPECT_EQ(server.answer(), ACL_SUCCESS);
  EXPECT_EQ(ran_on, server.id());
  EXPECT_SUCCESS(finish(stream.get()));
}

TEST_F(CallbackSubscription, CB_07_WhatWasNotSubscribedCannotBeEnded) {
  const TestStream stream;
  EXPECT_FAILS(ACL_ERROR_RT_STREAM_SUBSCRIBE, aclrtUnSubscribeReport(this_thread(), stream.get()));
  EXPECT_FAILS(ACL_ERROR_RT_STREAM_SUBSCRIBE, aclrtUnSubscribeReport(this_thread(), nullptr));

  Subscription subscription(stream.get());
  const Server other;
  EXPECT_FAILS(ACL_ERROR_RT_THREAD_SUBSCRIBE, aclrtUnSubscribeReport(other.id(), stream.get()));
  expect_served_here(stream.get());
  subscription.end();
  EXPECT_FAILS(ACL_ERROR_RT_STREAM_SUBSCRIBE, aclrtUnSubscribeReport(this_thread(), stream.get()));
}

TEST_F(CallbackSubscription, CB_07_ADroppedBlockingCallbackLetsTheStreamGoOnWithAnError) {
  const TestStream stream;
  const TestEvent before;
  const TestEvent after;
  Subscription subscription(stream.get());
  EXPECT_SUCCESS(aclrtRecordEvent(before.get(), stream.get()));
  EXPECT_SUCCESS(aclrtLaunchCallback(never_runs, nullptr, ACL_CALLBACK_BLOCK, stream.get()));
  EXPECT_SUCCESS(aclrtRecordEvent(after.get(), stream.get()));
  EXPECT_SUCCESS(reach(before.get()));
  EXPECT_EQ(event_status(after.get()), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  subscription.end();
  EXPECT_SUCCESS(reach(after.get()));
  EXPECT_FAILS(ACL_ERROR_RT_STREAM_NO_CB_REG,
               aclrtSynchronizeStreamWithTimeout(stream.get(), kLongMilliseconds));
  EXPECT_SUCCESS(finish(stream.get()));

  // The next subscriber does not find it.
  const Subscription next(stream.get());
  expect_nothing_to_serve();
  expect_served_here(stream.get());
}

TEST_F(CallbackSubscription, CB_07_ADroppedNonBlockingCallbackNeverRuns) {
  const TestStream stream;
  const TestEvent after;
  Subscription subscription(stream.get());
  EXPECT_SUCCESS(aclrtLaunchCallback(never_runs, nullptr, ACL_CALLBACK_NO_BLOCK, stream.get()));
  EXPECT_SUCCESS(aclrtRecordEvent(after.get(), stream.get()));
  EXPECT_SUCCESS(reach(after.get()));
  subscription.end();
  const Subscription next(stream.get());
  expect_nothing_to_serve();
}

TEST_F(CallbackSubscription, CB_07_OtherStreamsOfTheThreadKeepTheirCallbacks) {
  const TestStream dropped;
  const TestStream kept;
  Subscription first(dropped.get());
  const Subscription second(kept.get());
  int runs = 0;
  Body body([&] { ++runs; });
  EXPECT_SUCCESS(aclrtLaunchCallback(never_runs, nullptr, ACL_CALLBACK_BLOCK, dropped.get()));
  launch(body, kept.get());
  launch(body, kept.get());
  first.end();
  EXPECT_SUCCESS(serve_one());
  EXPECT_SUCCESS(serve_one());
  EXPECT_EQ(runs, 2);
  expect_nothing_to_serve();
  EXPECT_SUCCESS(finish(kept.get()));
  EXPECT_FAILS(ACL_ERROR_RT_STREAM_NO_CB_REG,
               aclrtSynchronizeStreamWithTimeout(dropped.get(), kLongMilliseconds));
}

}  // namespace
}  // namespace understudy_test::callbacks
