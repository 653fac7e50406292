// SPDX-License-Identifier: Apache-2.0
//
// Callbacks of streams that end: ones that were sent were once lost with their stream, and the last
// reset of a device and the thread it waited for blocked each other.
#include <cstdlib>
#include <future>

#include "rules/callback_objects.h"
#include "rules/stream_tasks.h"

namespace understudy_test {
namespace {

using callbacks::this_thread;

class CallbackEnd : public DeviceTest {};

TEST_F(CallbackEnd, CallbacksSentBeforeTheirStreamIsDestroyedRun) {
  constexpr int kCallbacks = 5;
  TestStream stream;
  // Keeps this thread one that serves.
  const TestStream kept;
  const callbacks::Subscription subscription(kept.get());
  EXPECT_SUCCESS(aclrtSubscribeReport(this_thread(), stream.get()));
  TaskCounter counter;
  for (int i = 0; i < kCallbacks; ++i) {
    EXPECT_SUCCESS(
        aclrtLaunchCallback(TaskCounter::run, &counter, ACL_CALLBACK_NO_BLOCK, stream.get()));
  }
  expect_finishes(stream.get());
  stream.destroy();
  EXPECT_EQ(counter.runs(), 0) << "they run in aclrtProcessReport alone";
  for (int i = 0; i < kCallbacks; ++i) ASSERT_SUCCESS(callbacks::serve_one());
  EXPECT_EQ(counter.runs(), kCallbacks);
  callbacks::expect_nothing_to_serve();
}

TEST(CallbackEndOfDevice, TheServingThreadMaySetTheDeviceWhileTheLastResetWaitsForIt) {
  // Threads that block each other cannot be got back; only a process of their own ends with them.
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  ASSERT_SUCCESS(aclrtCreateStream(&stream));
  TaskCounter counter;
  std::promise<void> is_subscribed;
  std::promise<void> may_serve;
  WaitingCall serving([&] {
    EXPECT_SUCCESS(aclrtSubscribeReport(this_thread(), stream));
    is_subscribed.set_value();
    may_serve.get_future().wait();
    EXPECT_SUCCESS(aclrtSetDevice(0));
    return callbacks::serve_one();
  });
  is_subscribed.get_future().wait();
  EXPECT_SUCCESS(aclrtLaunchCallback(TaskCounter::run, &counter, ACL_CALLBACK_BLOCK, stream));
  WaitingCall reset([] { return aclrtResetDevice(0); });
  EXPECT_TRUE(reset.waits()) << "the callback has not run yet";
  may_serve.set_value();
  if (!serving.ends() || !reset.ends()) {
    ADD_FAILURE() << "the reset and the thread that serves wait for each other";
    std::_Exit(EXIT_FAILURE);
  }
  EXPECT_EQ(serving.code(), ACL_SUCCESS) << serving.text();
  EXPECT_EQ(reset.code(), ACL_SUCCESS) << reset.text();
  EXPECT_EQ(counter.runs(), 1);
}

}  // namespace
}  // namespace understudy_test
