// SPDX-License-Identifier: Apache-2.0
//
// Streams that hold their tasks for a model, and functions for streams of models: there are none.
// Covers: STREAM-12, STREAM-28, STREAM-29, STREAM-30, STREAM-31.
#include <cstring>
#include <vector>

#include "rules/product_objects.h"
#include "rules/stream_tasks.h"

namespace understudy_test {
namespace {

class PersistentStream : public DeviceTest {};

constexpr uint32_t kPersistentFlags[] = {ACL_STREAM_PERSISTENT,
                                         ACL_STREAM_PERSISTENT | ACL_STREAM_FAST_SYNC,
                                         ACL_STREAM_PERSISTENT | ACL_STREAM_CPU_SCHEDULE};

TEST_F(PersistentStream, STREAM_28_BadStreamsAreRefused) {
  const TestStream ordinary;
  const TestStream persistent(0, ACL_STREAM_PERSISTENT);
  aclrtStream gone = TestStream(0, ACL_STREAM_PERSISTENT).release();
  EXPECT_SUCCESS(aclrtDestroyStream(gone));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtPersistentTaskClean(nullptr));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtPersistentTaskClean(ordinary.get()));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtPersistentTaskClean(runtime::default_stream()));
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtPersistentTaskClean(gone));
  {
    const ContextScope other(0);
    EXPECT_FAILS(ACL_ERROR_RT_STREAM_CONTEXT, aclrtPersistentTaskClean(persistent.get()));
  }
  on_bare_thread(
      [&] { EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtPersistentTaskClean(persistent.get())); });
  EXPECT_SUCCESS(aclrtPersistentTaskClean(persistent.get()));
}

// Every kind of task, each of which would be noticed if it ran.
class HeldTasks {
 public:
  HeldTasks() {
    EXPECT_SUCCESS(aclrtMallocHost(&locked_, kBytes));
    memset(locked_, 0x44, kBytes);
    copy_in(target_.data(), std::vector<uint8_t>(kBytes, 0));
    EXPECT_SUCCESS(aclrtRecordEvent(recorded_.get(), nullptr));
    EXPECT_SUCCESS(aclrtSynchronizeStream(nullptr));
  }
  ~HeldTasks() { EXPECT_SUCCESS(aclrtFreeHost(locked_)); }

  void queue_on(aclrtStream stream) {
    page_.queue_set(stream, 9);
    void* const to = target_.data();
    EXPECT_SUCCESS(
        aclrtMemcpyAsync(to, kBytes, locked_, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    EXPECT_SUCCESS(
        aclrtMemcpyAsync(to, kBytes, heap_.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    EXPECT_SUCCESS(
        aclrtMemcpyAsync(heap_.data(), kBytes, to, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    EXPECT_SUCCESS(aclrtMemcpyAsync(to, kBytes, heap_.data(), kBytes,
                                    ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, stream));
    EXPECT_SUCCESS(
        aclrtMemcpy2dAsync(to, 64, heap_.data(), 64, 32, 4, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    EXPECT_SUCCESS(aclrtMemsetD32Async(to, kBytes, 7, kBytes / 4, stream));
    EXPECT_SUCCESS(aclrtValueWrite(to, 7, 0, stream));
    EXPECT_SUCCESS(aclrtRecordEvent(never_.get(), stream));
    EXPECT_SUCCESS(aclrtRecordEvent(recorded_.get(), stream));
    EXPECT_SUCCESS(aclrtResetEvent(recorded_.get(), stream));
    EXPECT_SUCCESS(aclrtStreamWaitEvent(stream, never_.get()));
    EXPECT_SUCCESS(aclrtValueWait(to, 1, ACL_STREAM_WAIT_VALUE_EQ, stream));
    counter_.queue_on(stream);
  }
  // That none has run, and that nothing waits for any.
  void expect_untouched() {
    EXPECT_TRUE(page_.holds(TargetPage::kInitial));
    EXPECT_EQ(copy_out(target_.data(), kBytes), std::vector<uint8_t>(kBytes, 0));
    EXPECT_EQ(heap_, std::vector<uint8_t>(kBytes, 0x55));
    EXPECT_EQ(counter_.runs(), 0);
    EXPECT_EQ(event_status(never_.get()), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    EXPECT_EQ(event_status(recorded_.get()), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(never_.get(), kLongLimit));
    EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(recorded_.get(), kLongLimit));
    auto waits = ACL_EVENT_WAIT_STATUS_RESERVED;
    EXPECT_SUCCESS(aclrtQueryEventWaitStatus(never_.get(), &waits));
    EXPECT_EQ(waits, ACL_EVENT_WAIT_STATUS_COMPLETE);
  }

 private:
  static constexpr size_t kBytes = 256;

  TargetPage page_;
  DeviceBlock target_{kBytes};
  std::vector<uint8_t> heap_ = std::vector<uint8_t>(kBytes, 0x55);
  void* locked_ = nullptr;
  TestEvent never_{EventFamily::kClassic, ACL_EVENT_SYNC};
  TestEvent recorded_{EventFamily::kClassic, ACL_EVENT_SYNC};
  TaskCounter counter_;
};

TEST_F(PersistentStream, STREAM_12_STREAM_30_TasksAreHeldAndNothingWaitsForThem_C15) {
  for (const uint32_t flags : kPersistentFlags) {
    SCOPED_TRACE(flags);
    HeldTasks tasks;
    const TestStream stream(0, flags);
    tasks.queue_on(stream.get());
    EXPECT_SUCCESS(aclrtSynchronizeStreamWithTimeout(stream.get(), kLongLimit));
    EXPECT_SUCCESS(aclrtSynchronizeDeviceWithTimeout(kLongLimit));
    EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_COMPLETE);
    tasks.expect_untouched();
  }
}

TEST_F(PersistentStream, STREAM_29_CleaningDropsThemAndTheStreamTakesMore_C15) {
  HeldTasks tasks;
  const TestStream stream(0, ACL_STREAM_PERSISTENT);
  for (int round = 0; round < 3; ++round) {
    tasks.queue_on(stream.get());
    EXPECT_SUCCESS(aclrtPersistentTaskClean(stream.get()));
    EXPECT_SUCCESS(aclrtPersistentTaskClean(stream.get())) << "with nothing to drop";
  }
  tasks.expect_untouched();
}

TEST_F(PersistentStream, STREAM_30_TheEndOfAStreamDropsThem_C15) {
  HeldTasks tasks;
  for (auto* const destroy : {aclrtDestroyStream, aclrtDestroyStreamForce}) {
    const aclrtStream stream = TestStream(0, ACL_STREAM_PERSISTENT).release();
    tasks.queue_on(stream);
    EXPECT_SUCCESS(destroy(stream));
    tasks.expect_untouched();
  }
  {
    const ContextScope context(0);
    tasks.queue_on(TestStream(0, ACL_STREAM_PERSISTENT).release());
  }
  tasks.expect_untouched();
}

TEST_F(PersistentStream, STREAM_30_TheEndOfADeviceDropsThem_C15) {
  for (auto* const reset : {aclrtResetDevice, aclrtResetDeviceForce}) {
    TaskCounter counter;
    counter.queue_on(TestStream(0, ACL_STREAM_PERSISTENT).release());
    EXPECT_SUCCESS(reset(0));
    ASSERT_SUCCESS(aclrtSetDevice(0));
    EXPECT_EQ(counter.runs(), 0);
  }
}

TEST_F(PersistentStream, STREAM_30_AStreamMayHoldAnyNumberOfTasks_C15) {
  const TestStream stream(0, ACL_STREAM_PERSISTENT);
  TargetPage page;
  for (int i = 0; i < 100'000; ++i) ASSERT_SUCCESS(page.try_set(stream.get(), 9));
  EXPECT_TRUE(page.holds(TargetPage::kInitial));
}

TEST_F(PersistentStream, STREAM_30_RefusedTasksAreRefusedAllTheSame_C15) {
  const TestStream stream(0, ACL_STREAM_PERSISTENT);
  std::vector<uint8_t> heap(64);
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemcpyAsync(heap.data(), 32, heap.data() + 32, 32, ACL_MEMCPY_HOST_TO_HOST,
                                stream.get()));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtLaunchHostFunc(stream.get(), nullptr, nullptr));
  EXPECT_FAILS(ACL_ERROR_RT_STREAM_NO_CB_REG,
               aclrtLaunchCallback(TaskCounter::run, nullptr, ACL_CALLBACK_BLOCK, stream.get()));
}

TEST_F(PersistentStream, STREAM_31_StreamsOfModelsDoNotExist) {
  const TestStream first;
  const TestStream second(0, ACL_STREAM_PERSISTENT);
  const DeviceBlock values(16);
  void* const left = values.data();
  void* const right = values.at(8);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtActiveStream(nullptr, first.get()));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtActiveStream(first.get(), nullptr));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtActiveStream(first.get(), second.get()));
  const auto switch_stream = [&](void* a, void* b, aclrtStream yes, aclrtStream no,
                                 aclrtStream on) {
    return aclrtSwitchStream(a, ACL_RT_EQUAL, b, ACL_RT_SWITCH_INT32, yes, no, on);
  };
  const aclrtStream yes = first.get();
  const aclrtStream on = second.get();
  const auto expect_switch_fails = [&](aclError expected, aclError actual) {
    EXPECT_TRUE(fails_with(expected, actual, "aclrtSwitchStream"));
    (void)recent_error();
  };
  (void)recent_error();
  expect_switch_fails(ACL_ERROR_INVALID_PARAM, switch_stream(nullptr, right, yes, nullptr, on));
  expect_switch_fails(ACL_ERROR_INVALID_PARAM, switch_stream(left, nullptr, yes, nullptr, on));
  expect_switch_fails(ACL_ERROR_INVALID_PARAM, switch_stream(left, right, nullptr, nullptr, on));
  expect_switch_fails(ACL_ERROR_INVALID_PARAM, switch_stream(left, right, yes, nullptr, nullptr));
  expect_switch_fails(ACL_ERROR_INVALID_PARAM, switch_stream(left, right, yes, yes, on));
  expect_switch_fails(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                      switch_stream(left, right, yes, nullptr, on));
}

class PersistentStreamOn : public ProductTest {};
INSTANTIATE_TEST_SUITE_P(Products, PersistentStreamOn, every_product(), product_name);

TEST_P(PersistentStreamOn, STREAM_28_STREAM_31_SomeProductsCleanAndNoneSwitches) {
  US_ON_PRODUCT();
  const ContextSession session;
  const TestStream stream(0, ACL_STREAM_PERSISTENT);
  EXPECT_SUPPORTED(is_modern(), aclrtPersistentTaskClean(stream.get()));
  EXPECT_FAILS(is_modern() ? ACL_ERROR_RT_PARAM_INVALID : ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtPersistentTaskClean(nullptr));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtActiveStream(stream.get(), stream.get()));
}

}  // namespace
}  // namespace understudy_test
