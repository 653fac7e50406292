// SPDX-License-Identifier: Apache-2.0
//
// What is told about failed tasks, aborting the tasks of a device, and the ids of tasks.
// Covers: ERR-08, ERR-09, ERR-10, ERR-11, ERR-16, ERR-17, ERR-20.
#include <algorithm>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "rules/stream_tasks.h"

namespace understudy_test::runtime {
namespace {

class FaultsOfTasks : public NoDeviceTest {
 protected:
  void SetUp() override {
    NoDeviceTest::SetUp();
    ASSERT_SUCCESS(aclrtSetDevice(0));
  }
};

// ---- Exceptions ----

struct Exception {
  uint32_t task;
  uint32_t stream;
  uint32_t thread;
  uint32_t device;
  uint32_t code;
  std::thread::id called_on;
};

// Callbacks have no argument of their own, so each has a list.
class Exceptions {
 public:
  void note(const aclrtExceptionInfo* info) {
    const std::lock_guard lock(mutex_);
    list_.push_back({aclrtGetTaskIdFromExceptionInfo(info), aclrtGetStreamIdFromExceptionInfo(info),
                     aclrtGetThreadIdFromExceptionInfo(info),
                     aclrtGetDeviceIdFromExceptionInfo(info),
                     aclrtGetErrorCodeFromExceptionInfo(info), std::this_thread::get_id()});
  }
  std::vector<Exception> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(list_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<Exception> list_;
};
Exceptions first_exceptions;
Exceptions second_exceptions;
void note_first(aclrtExceptionInfo* info) { first_exceptions.note(info); }
void note_second(aclrtExceptionInfo* info) { second_exceptions.note(info); }

// A registration that ends with its scope.
class ExceptionWatch {
 public:
  explicit ExceptionWatch(aclrtExceptionInfoCallback callback) : callback_(callback) {
    EXPECT_SUCCESS(aclrtExceptionInfoCallbackRegister(callback_));
  }
  ~ExceptionWatch() { EXPECT_SUCCESS(aclrtExceptionInfoCallbackUnregister(callback_)); }
  ExceptionWatch(const ExceptionWatch&) = delete;
  ExceptionWatch& operator=(const ExceptionWatch&) = delete;

 private:
  const aclrtExceptionInfoCallback callback_;
};

void fail_once(aclrtStream stream) {
  FailingTask task(static_cast<uint32_t>(current_device()));
  task.queue_on(stream);
  EXPECT_FAILS(ACL_ERROR_RT_SYS_DMA, aclrtSynchronizeStreamWithTimeout(stream, kLongLimit));
}

uint32_t last_task() {
  uint32_t task = 0xAAAAAAAA;
  EXPECT_SUCCESS(aclrtGetThreadLastTaskId(&task));
  return task;
}

TEST_F(FaultsOfTasks, ERR_08_ERR_10_TheCallbackLearnsWhatFailedWhere) {
  const ExceptionWatch watch(note_first);
  for (const int32_t device : {0, 2}) {
    SCOPED_TRACE(device);
    const ContextScope context(device);
    const TestStream created;
    for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
      SCOPED_TRACE(stream);
      (void)first_exceptions.take();
      fail_once(stream);
      const std::vector<Exception> exceptions = first_exceptions.take();
      ASSERT_EQ(exceptions.size(), 1u) << "once, before the synchronisation returned";
      EXPECT_EQ(exceptions[0].device, static_cast<uint32_t>(device));
      EXPECT_EQ(exceptions[0].stream, static_cast<uint32_t>(id_of(stream)));
      EXPECT_EQ(exceptions[0].code, static_cast<uint32_t>(ACL_ERROR_RT_SYS_DMA));
      if (stream != nullptr) {
        EXPECT_EQ(exceptions[0].task, last_task());
      }
      EXPECT_NE(exceptions[0].thread, 0xFFFFFFFFu);
      EXPECT_NE(exceptions[0].called_on, std::this_thread::get_id()) << "a thread of the runtime";
    }
  }
}

TEST_F(FaultsOfTasks, ERR_08_ERR_10_EveryFailedTaskIsTold) {
  const ExceptionWatch watch(note_first);
  const TestStream stream;
  FailingTask task;
  TargetPage page;
  (void)first_exceptions.take();
  std::vector<uint32_t> failing;
  for (int i = 0; i < 3; ++i) {
    page.queue_set(stream.get(), 1);
    task.queue_on(stream.get());
    failing.push_back(last_task());
  }
  EXPECT_FAILS(ACL_ERROR_RT_SYS_DMA, aclrtSynchronizeDeviceWithTimeout(kLongLimit));
  std::vector<uint32_t> told;
  for (const Exception& exception : first_exceptions.take()) told.push_back(exception.task);
  EXPECT_EQ(told, failing);
}

TEST_F(FaultsOfTasks, ERR_08_EveryRegisteredCallbackRuns) {
  (void)first_exceptions.take();
  (void)second_exceptions.take();
  const ExceptionWatch first(note_first);
  {
    const ExceptionWatch second(note_second);
    fail_once(nullptr);
    EXPECT_EQ(first_exceptions.take().size(), 1u);
    EXPECT_EQ(second_exceptions.take().size(), 1u);
  }
  fail_once(nullptr);
  EXPECT_EQ(first_exceptions.take().size(), 1u);
  EXPECT_EQ(second_exceptions.take().size(), 0u) << "unregistered";
}

TEST_F(FaultsOfTasks, ERR_08_RefusedCallsAndGoodTasksAreNotTold) {
  (void)first_exceptions.take();
  const ExceptionWatch watch(note_first);
  TargetPage page;
  page.queue_set(nullptr, 5);
  EXPECT_NE(aclrtMemsetAsync(&page, 1, 0, 2, nullptr), ACL_SUCCESS);
  EXPECT_NE(aclrtSynchronizeStreamWithTimeout(nullptr, 0), ACL_SUCCESS);
  expect_finishes(nullptr);
  EXPECT_TRUE(first_exceptions.take().empty());
}

TEST_F(FaultsOfTasks, ERR_09_TheSingleCallbackRunsBesideTheOthers) {
  (void)first_exceptions.take();
  (void)second_exceptions.take();
  EXPECT_SUCCESS(aclrtSetExceptionInfoCallback(note_first));
  {
    const ExceptionWatch watch(note_second);
    fail_once(nullptr);
  }
  EXPECT_EQ(first_exceptions.take().size(), 1u);
  EXPECT_EQ(second_exceptions.take().size(), 1u);

  EXPECT_SUCCESS(aclrtSetExceptionInfoCallback(note_second));
  fail_once(nullptr);
  EXPECT_EQ(first_exceptions.take().size(), 0u) << "replaced";
  EXPECT_EQ(second_exceptions.take().size(), 1u);

  EXPECT_SUCCESS(aclrtSetExceptionInfoCallback(nullptr));
  fail_once(nullptr);
  EXPECT_EQ(first_exceptions.take().size(), 0u);
  EXPECT_EQ(second_exceptions.take().size(), 0u) << "removed";
}

TEST_F(FaultsOfTasks, ERR_17_AFunctionRegisteredTwiceIsCalledOnce) {
  (void)first_exceptions.take();
  EXPECT_SUCCESS(aclrtExceptionInfoCallbackRegister(note_first));
  EXPECT_SUCCESS(aclrtExceptionInfoCallbackRegister(note_first));
  fail_once(nullptr);
  EXPECT_EQ(first_exceptions.take().size(), 1u);
  EXPECT_SUCCESS(aclrtExceptionInfoCallbackUnregister(note_first));
  fail_once(nullptr);
  EXPECT_EQ(first_exceptions.take().size(), 0u) << "one call unregisters it";
}

TEST_F(FaultsOfTasks, ERR_17_AnUnknownFunctionMayBeUnregistered) {
  EXPECT_SUCCESS(aclrtExceptionInfoCallbackUnregister(note_second));
  EXPECT_SUCCESS(aclrtExceptionInfoCallbackUnregister(note_second));
}

TEST_F(FaultsOfTasks, ERR_17_AFunctionThatIsBothSetAndRegisteredIsCalledTwice) {
  (void)first_exceptions.take();
  EXPECT_SUCCESS(aclrtSetExceptionInfoCallback(note_first));
  {
    const ExceptionWatch watch(note_first);
    fail_once(nullptr);
    EXPECT_EQ(first_exceptions.take().size(), 2u);
  }
  fail_once(nullptr);
  EXPECT_EQ(first_exceptions.take().size(), 1u) << "the one that was set stays";
  EXPECT_SUCCESS(aclrtSetExceptionInfoCallback(nullptr));
}

std::promise<void> callback_began;
std::promise<void> callback_may_end;
void hold_the_stream(aclrtExceptionInfo*) {
  callback_began.set_value();
  callback_may_end.get_future().wait();
}

TEST_F(FaultsOfTasks, ERR_17_UnregisteringDoesNotWaitForARunningCallback) {
  callback_began = {};
  callback_may_end = {};
  ASSERT_SUCCESS(aclrtExceptionInfoCallbackRegister(hold_the_stream));
  const TestStream stream;
  FailingTask task;
  task.queue_on(stream.get());
  callback_began.get_future().wait();
  EXPECT_SUCCESS(aclrtExceptionInfoCallbackUnregister(hold_the_stream));
  callback_may_end.set_value();
  EXPECT_NE(aclrtSynchronizeStreamWithTimeout(stream.get(), kLongLimit), ACL_SUCCESS);
}

// ---- Aborting a device ----

void expect_runs(aclrtStream stream) {
  TargetPage page;
  TaskCounter counter;
  page.queue_set(stream, 3);
  counter.queue_on(stream);
  expect_finishes(stream);
  EXPECT_TRUE(page.holds(3));
  EXPECT_EQ(counter.runs(), 1);
}

TEST_F(FaultsOfTasks, ERR_11_TheTasksOfEveryStreamAreDropped) {
  for (const uint32_t limit : {0u, 10'000u}) {
    SCOPED_TRACE(limit);
    const TestStream created;
    TargetPage page;
    TaskCounter counter;
    WordGate word;
    const std::vector<aclrtStream> streams = {created.get(), nullptr};
    for (const aclrtStream stream : streams) {
      word.hold(stream);
      page.queue_set(stream, 5);
      counter.queue_on(stream);
    }
    {
      WaitingCall abort([limit] { return aclrtDeviceTaskAbort(0, limit); });
      EXPECT_TRUE(abort.ends()) << "it waits for the tasks";
      for (const aclrtStream stream : streams) {
        expect_finishes(stream);
        EXPECT_EQ(stream_status(stream), ACL_STREAM_STATUS_COMPLETE);
      }
      word.open();
      EXPECT_EQ(abort.code(), ACL_SUCCESS) << abort.text();
    }
    for (const aclrtStream stream : streams) expect_runs(stream);
    EXPECT_EQ(counter.runs(), 0);
    EXPECT_TRUE(page.holds(TargetPage::kInitial));
  }
}

TEST_F(FaultsOfTasks, ERR_11_EveryContextOfTheDeviceIsMeant) {
  WordGate word;
  TaskCounter counter;
  const ContextScope context(0);
  const TestStream stream;
  word.hold(stream.get());
  counter.queue_on(stream.get());
  context.leave();
  EXPECT_SUCCESS(aclrtDeviceTaskAbort(0, 0));
  context.enter();
  expect_finishes(stream.get());
  word.open();
  expect_runs(stream.get());
  EXPECT_EQ(counter.runs(), 0);
}

TEST_F(FaultsOfTasks, ERR_11_OtherDevicesGoOn) {
  TaskCounter counter;
  const ContextScope context(1);
  const TestStream stream;
  Gate gate(stream.get());
  counter.queue_on(stream.get());
  EXPECT_SUCCESS(aclrtDeviceTaskAbort(0, 0));
  EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_NOT_READY);
  gate.open();
  expect_finishes(stream.get());
  EXPECT_EQ(counter.runs(), 1);
}

TEST_F(FaultsOfTasks, ERR_11_ARefusedAbortDropsNothing) {
  WordGate word;
  TaskCounter counter;
  word.hold(nullptr);
  counter.queue_on(nullptr);
  for (const int32_t id : bad_device_ids()) {
    SCOPED_TRACE(id);
    EXPECT_NE(aclrtDeviceTaskAbort(id, 0), ACL_SUCCESS);
  }
  EXPECT_EQ(stream_status(nullptr), ACL_STREAM_STATUS_NOT_READY);
  word.open();
  expect_finishes(nullptr);
  EXPECT_EQ(counter.runs(), 1);
}

TEST_F(FaultsOfTasks, ERR_11_WaitingSynchronisationsReturnTheAbort) {
  const TestStream created;
  const auto abort = [] { EXPECT_SUCCESS(aclrtDeviceTaskAbort(0, 0)); };
  for (const aclrtStream stream : {created.get(), aclrtStream{nullptr}}) {
    SCOPED_TRACE(stream);
    EXPECT_EQ(
        code_of_interrupted(
            {stream}, [=] { return aclrtSynchronizeStreamWithTimeout(stream, kLongLimit); }, abort),
        ACL_ERROR_RT_DEVICE_TASK_ABORT);
    EXPECT_EQ(code_of_interrupted(
                  {stream}, [=] { return aclrtSynchronizeStream(stream); }, abort),
              ACL_ERROR_RT_DEVICE_TASK_ABORT);
    expect_runs(stream);
  }
}

TEST_F(FaultsOfTasks, ERR_11_WaitingSynchronisationsOfTheDeviceReturnTheAbort) {
  const TestStream created;
  const auto abort = [] { EXPECT_SUCCESS(aclrtDeviceTaskAbort(0, 0)); };
  EXPECT_EQ(code_of_interrupted(
                {created.get(), nullptr},
                [] { return aclrtSynchronizeDeviceWithTimeout(kLongLimit); }, abort),
            ACL_ERROR_RT_DEVICE_TASK_ABORT);
  EXPECT_EQ(code_of_interrupted(
                {created.get()}, [] { return aclrtSynchronizeDevice(); }, abort),
            ACL_ERROR_RT_DEVICE_TASK_ABORT);
  EXPECT_SUCCESS(aclrtSynchronizeDeviceWithTimeout(kLongLimit));
  expect_runs(created.get());
}

TEST_F(FaultsOfTasks, ERR_11_FailuresAreForgotten) {
  const TestStream stream;
  const TestEvent event;
  FailingTask task;
  task.queue_on(stream.get());
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(event.get(), kLongLimit));
  EXPECT_SUCCESS(aclrtDeviceTaskAbort(0, 0));
  expect_finishes(stream.get());
  EXPECT_SUCCESS(aclrtSynchronizeDeviceWithTimeout(kLongLimit));
}

// ---- Ids of tasks ----

TEST_F(FaultsOfTasks, ERR_20_TasksOfDefaultStreamsHaveNoId) {
  const TestStream stream;
  TargetPage page;
  page.queue_set(stream.get(), 5);
  const uint32_t before = last_task();
  EXPECT_GT(before, 0u);
  for (int i = 0; i < 3; ++i) {
    page.queue_set(nullptr, 5);
    page.queue_set(runtime::default_stream(), 5);
  }
  EXPECT_EQ(last_task(), before);
  page.queue_set(stream.get(), 5);
  EXPECT_EQ(last_task(), before + 1);
  expect_finishes(stream.get());
  expect_finishes(nullptr);
}

TEST_F(FaultsOfTasks, ERR_16_BeforeTheFirstTaskTheIdIsZero) {
  const aclrtContext context = current_context();
  const TestStream stream;
  TargetPage page;
  page.queue_set(stream.get(), 5);
  EXPECT_GT(last_task(), 0u);
  on_new_thread([context] {
    ASSERT_SUCCESS(aclrtSetCurrentContext(context));
    EXPECT_EQ(last_task(), 0u) << "tasks of other threads do not count";
  });
  expect_finishes(stream.get());
}

TEST_F(FaultsOfTasks, ERR_16_TheIdsOfAStreamRise) {
  const TestStream stream;
  const TestEvent event;
  TargetPage page;
  TaskCounter counter;
  uint32_t before = 0;
  const auto expect_next = [&before] {
    const uint32_t now = last_task();
    EXPECT_GT(now, before);
    before = now;
  };
  for (int i = 0; i < 100; ++i) {
    page.queue_set(stream.get(), 5);
    expect_next();
    counter.queue_on(stream.get());
    expect_next();
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
    expect_next();
  }
  expect_finishes(stream.get());
  EXPECT_EQ(last_task(), before) << "nothing was queued since";
}

TEST_F(FaultsOfTasks, ERR_16_RefusedCallsHaveNoId) {
  const TestStream stream;
  TargetPage page;
  page.queue_set(stream.get(), 5);
  const uint32_t before = last_task();
  int no_stream = 0;
  EXPECT_NE(page.try_set(&no_stream, 6), ACL_SUCCESS);
  EXPECT_NE(aclrtLaunchHostFunc(nullptr, nullptr, nullptr), ACL_SUCCESS);
  EXPECT_EQ(last_task(), before);
  on_new_thread([&page] { EXPECT_NE(page.try_set(nullptr, 6), ACL_SUCCESS); });
  EXPECT_EQ(last_task(), before);
  expect_finishes(nullptr);
  expect_finishes(stream.get());
  EXPECT_TRUE(page.holds(5));
}

}  // namespace
}  // namespace understudy_test::runtime
