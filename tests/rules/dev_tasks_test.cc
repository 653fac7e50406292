// SPDX-License-Identifier: Apache-2.0
//
// What devices do about queued tasks: a reset and a synchronisation wait for them, a forced reset
// drops them.
// Covers: DEV-07, DEV-09, DEV-12, DEV-19, DEV-20, DEV-21.
#include <vector>

#include "rules/stream_tasks.h"

namespace understudy_test::runtime {
namespace {

class DeviceTasks : public NoDeviceTest {
 protected:
  void SetUp() override {
    NoDeviceTest::SetUp();
    ASSERT_SUCCESS(aclrtSetDevice(0));
  }
};

aclrtStream create_stream() { return TestStream().release(); }

TEST_F(DeviceTasks, DEV_07_TheLastResetWaitsForTheTasks) {
  for (const bool created : {true, false}) {
    SCOPED_TRACE(created);
    TargetPage page;
    const aclrtStream stream = created ? create_stream() : nullptr;
    TaskCounter counter;
    Gate gate(stream);
    page.queue_set(stream, 8);
    counter.queue_on(stream);
    {
      WaitingCall reset(nullptr, [] { return aclrtResetDevice(0); });
      EXPECT_TRUE(reset.waits());
      EXPECT_EQ(counter.runs(), 0);
      gate.open();
      EXPECT_EQ(reset.code(), ACL_SUCCESS) << reset.text();
    }
    EXPECT_EQ(counter.runs(), 1);
    EXPECT_FALSE(default_context_exists(0));
    ASSERT_SUCCESS(aclrtSetDevice(0));
    EXPECT_TRUE(page.holds(8));
  }
}

TEST_F(DeviceTasks, DEV_07_AnEarlierResetWaitsForNothing) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const TestStream stream;
  TaskCounter counter;
  Gate gate(stream.get());
  counter.queue_on(stream.get());
  {
    WaitingCall reset(nullptr, [] { return aclrtResetDevice(0); });
    EXPECT_TRUE(reset.ends()) << "it waits for the tasks";
    EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
    gate.open();
    EXPECT_EQ(reset.code(), ACL_SUCCESS) << reset.text();
  }
  expect_finishes(stream.get());
  EXPECT_EQ(counter.runs(), 1);
}

TEST_F(DeviceTasks, DEV_07_AResetOfAnotherDeviceWaitsForNothingHere) {
  ASSERT_SUCCESS(aclrtSetDevice(1));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const TestStream stream;
  Gate gate(stream.get());
  WaitingCall reset(nullptr, [] { return aclrtResetDevice(1); });
  EXPECT_TRUE(reset.ends());
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
  gate.open();
  EXPECT_EQ(reset.code(), ACL_SUCCESS) << reset.text();
}

TEST_F(DeviceTasks, DEV_07_AFailedTaskDoesNotKeepTheDevice) {
  {
    FailingTask task;
    task.queue_on(create_stream());
    task.queue_on(nullptr);
    EXPECT_SUCCESS(aclrtResetDevice(0));
  }
  EXPECT_FALSE(default_context_exists(0));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  expect_finishes(nullptr);
}

TEST_F(DeviceTasks, DEV_09_AForcedResetDropsTheTasks) {
  TargetPage page;
  TaskCounter counter;
  WordGate word;
  for (const aclrtStream stream : {create_stream(), aclrtStream{nullptr}}) {
    word.hold(stream);
    page.queue_set(stream, 8);
    counter.queue_on(stream);
  }
  ASSERT_SUCCESS(aclrtSetDevice(1));
  {
    WaitingCall reset(nullptr, [] { return aclrtResetDeviceForce(0); });
    EXPECT_TRUE(reset.ends()) << "it waits for the tasks";
    word.open();
    EXPECT_EQ(reset.code(), ACL_SUCCESS) << reset.text();
  }
  EXPECT_FALSE(default_context_exists(0));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  expect_finishes(nullptr);
  EXPECT_EQ(counter.runs(), 0);
  EXPECT_TRUE(page.holds(TargetPage::kInitial));
}

TEST_F(DeviceTasks, DEV_12_StreamsOfAResetDeviceAreStale) {
  for (auto* const reset : {aclrtResetDevice, aclrtResetDeviceForce}) {
    ASSERT_SUCCESS(aclrtSetDevice(0));
    (void)aclrtResetDeviceForce(0);
    ASSERT_SUCCESS(aclrtSetDevice(0));
    const std::vector<aclrtStream> streams = {create_stream(), default_stream()};
    ASSERT_SUCCESS(aclrtSetDevice(1));
    EXPECT_SUCCESS(reset(0));
    // With a new default context of the device the old handles are no better.
    for (const bool set_again : {false, true}) {
      SCOPED_TRACE(set_again);
      if (set_again) {
        ASSERT_SUCCESS(aclrtSetDevice(0));
      }
      for (const aclrtStream stream : streams) {
        EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtSynchronizeStream(stream));
        EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtDestroyStream(stream));
        EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtStreamAbort(stream));
      }
    }
  }
}

// ---- Synchronising ----

struct SynchronizeFunction {
  const char* name;
  aclError (*call)();
};
constexpr SynchronizeFunction kSynchronizeFunctions[] = {
    {"aclrtSynchronizeDevice", aclrtSynchronizeDevice},
    {"aclrtSynchronizeDeviceWithTimeout, no limit",
     [] { return aclrtSynchronizeDeviceWithTimeout(-1); }},
    {"aclrtSynchronizeDeviceWithTimeout",
     [] { return aclrtSynchronizeDeviceWithTimeout(kLongLimit); }},
};

TEST_F(DeviceTasks, DEV_19_DEV_20_EveryStreamOfTheContextIsWaitedFor) {
  const TestStream first;
  const TestStream second;
  for (const SynchronizeFunction& synchronize : kSynchronizeFunctions) {
    SCOPED_TRACE(synchronize.name);
    TaskCounter counter;
    TargetPage page;
    Gate first_gate(first.get());
    Gate second_gate(second.get());
    Gate default_gate(nullptr);
    for (const aclrtStream stream : {first.get(), second.get(), aclrtStream{nullptr}}) {
      counter.queue_on(stream);
    }
    page.queue_set(nullptr, 8);
    WaitingCall waiting(synchronize.call);
    for (Gate* gate : {&first_gate, &default_gate, &second_gate}) {
      EXPECT_TRUE(waiting.waits());
      gate->open();
    }
    EXPECT_EQ(waiting.code(), ACL_SUCCESS) << waiting.text();
    EXPECT_EQ(counter.runs(), 3);
    EXPECT_TRUE(page.holds(8));
  }
}

TEST_F(DeviceTasks, DEV_19_AnyStreamAloneIsWaitedFor) {
  const TestStream created;
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    SCOPED_TRACE(stream);
    Gate gate(stream);
    EXPECT_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeDeviceWithTimeout(kShortLimit));
    gate.open();
    EXPECT_SUCCESS(aclrtSynchronizeDeviceWithTimeout(kLongLimit));
  }
}

TEST_F(DeviceTasks, DEV_19_OtherContextsAndDevicesAreNotWaitedFor) {
  const TestStream held;
  Gate gate(held.get());
  for (const int32_t device : {0, 1}) {
    SCOPED_TRACE(device);
    const ContextScope other(device);
    TaskCounter counter;
    counter.queue_on(nullptr);
    EXPECT_SUCCESS(aclrtSynchronizeDeviceWithTimeout(kLongLimit));
    EXPECT_EQ(counter.runs(), 1);
  }
  EXPECT_EQ(stream_status(held.get()), ACL_STREAM_STATUS_NOT_READY);
}

TEST_F(DeviceTasks, DEV_21_WhenTheTimeIsOverTheTasksStayQueued) {
  const TestStream stream;
  TargetPage page;
  TaskCounter counter;
  Gate gate(stream.get());
  page.queue_set(stream.get(), 8);
  counter.queue_on(stream.get());
  for (int i = 0; i < 3; ++i) {
    EXPECT_FAILS(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, aclrtSynchronizeDeviceWithTimeout(kShortLimit));
  }
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
  EXPECT_EQ(counter.runs(), 0);
  EXPECT_TRUE(page.holds(TargetPage::kInitial));
  gate.open();
  EXPECT_SUCCESS(aclrtSynchronizeDeviceWithTimeout(kLongLimit));
  EXPECT_EQ(counter.runs(), 1);
  EXPECT_TRUE(page.holds(8));
}

TEST_F(DeviceTasks, DEV_20_BadLimitsAreRefusedWhileTasksWait) {
  const TestStream stream;
  Gate gate(stream.get());
  for (const int32_t limit : {0, -2}) {
    SCOPED_TRACE(limit);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtSynchronizeDeviceWithTimeout(limit));
  }
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
}

}  // namespace
}  // namespace understudy_test::runtime
