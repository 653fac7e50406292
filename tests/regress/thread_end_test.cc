// SPDX-License-Identifier: Apache-2.0
//
// A fault once found with threads that end in the middle: pthread_exit in a function of the program
// that the library calls, and pthread_cancel of a thread inside a call, ended the process. Now no
// function of the library is a cancellation point, and unwinding passes through it.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>
#include <string>

#include "rules/share_objects.h"
#include "support/rule_test.h"

extern "C" void __asan_handle_no_return() __attribute__((weak));  // NOLINT: the sanitizer's name

namespace understudy_test {
namespace {

// How a thread came to its end.
enum class End { kReturned, kExited };

// Runs the body on a thread of its own, which may end in the middle of it.
End run_to_end(std::function<void()> body) {
  static char returned;
  const auto start = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return &returned;
  };
  pthread_t thread;
  void* result = nullptr;
  EXPECT_EQ(pthread_create(&thread, nullptr, start, &body), 0);
  EXPECT_EQ(pthread_join(thread, &result), 0);
  return result == &returned ? End::kReturned : End::kExited;
}

// Code that the address sanitizer has instrumented does this before it leaves frames for good; this
// program runs uninstrumented on the sanitizer's library.
void leave_frames() {
  if (__asan_handle_no_return != nullptr) __asan_handle_no_return();
}

[[noreturn]] void exit_thread() {
  leave_frames();
  pthread_exit(nullptr);
}

void end_thread(void*) { exit_thread(); }

// What the program does last when it is cancelled.
void reach_cancellation_point(void*) {
  leave_frames();
  pthread_cancel(pthread_self());
  pthread_testcancel();
}

void count(void* counter) { static_cast<std::atomic<int>*>(counter)->fetch_add(1); }

using ThreadEnd = DeviceTest;

// ---- On threads of the program ----

TEST_F(ThreadEnd, ReportCallbackMayEndItsThread) {
  for (const aclrtCallback ending : {&end_thread, &reach_cancellation_point}) {
    for (const aclrtCallbackBlockType block : {ACL_CALLBACK_BLOCK, ACL_CALLBACK_NO_BLOCK}) {
      aclrtStream stream = nullptr;
      ASSERT_SUCCESS(aclrtCreateStream(&stream));
      uint64_t server = 0;
      EXPECT_EQ(run_to_end([&] {
                  server = pthread_self();
                  EXPECT_SUCCESS(aclrtSetDevice(0));
                  EXPECT_SUCCESS(aclrtSubscribeReport(server, stream));
                  EXPECT_SUCCESS(aclrtLaunchCallback(ending, nullptr, block, stream));
                  (void)aclrtProcessReport(-1);
                  ADD_FAILURE() << "the callback ended nothing";
                }),
                End::kExited);
      // The stream goes on, and so does everything else.
      EXPECT_SUCCESS(aclrtSynchronizeStream(stream));
      EXPECT_SUCCESS(aclrtUnSubscribeReport(server, stream));
      EXPECT_SUCCESS(aclrtDestroyStream(stream));
      EXPECT_SUCCESS(aclrtResetDevice(0));  // what the thread had set
    }
  }
}

void end_when_set(uint32_t, aclrtDeviceState state, void*) {
  if (state == ACL_RT_DEVICE_STATE_SET_PRE) exit_thread();
}

TEST(ThreadEndInSetDevice, StateCallbackMayEndItsThread) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclrtRegDeviceStateCallback("ends", end_when_set, nullptr));
  EXPECT_EQ(run_to_end([] { (void)aclrtSetDevice(1); }), End::kExited);
  ASSERT_SUCCESS(aclrtRegDeviceStateCallback("ends", nullptr, nullptr));
  // It was not set.
  EXPECT_EQ(aclrtResetDevice(1), ACL_ERROR_RT_CONTEXT_RELEASE_ERROR);
  EXPECT_SUCCESS(aclrtSetDevice(1));
  EXPECT_SUCCESS(aclrtResetDevice(1));
}

aclError end_in_init(const char*, size_t, void*) { exit_thread(); }
aclError end_in_finalize(void*) { exit_thread(); }

TEST(ThreadEndInInit, InitThatDidNotReturnDoesNotCount) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, end_in_init, nullptr));
  EXPECT_EQ(run_to_end([] { (void)aclInit(nullptr); }), End::kExited);
  ASSERT_SUCCESS(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, end_in_init));
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
  EXPECT_SUCCESS(aclInit(nullptr));
  EXPECT_SUCCESS(aclFinalize());
}

TEST(ThreadEndInInit, FinalizeThatDidNotReturnDoesNotCount) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclInit(nullptr));
  ASSERT_SUCCESS(aclFinalizeCallbackRegister(ACL_REG_TYPE_OTHER, end_in_finalize, nullptr));
  EXPECT_EQ(run_to_end([] { (void)aclFinalize(); }), End::kExited);
  ASSERT_SUCCESS(aclFinalizeCallbackUnRegister(ACL_REG_TYPE_OTHER, end_in_finalize));
  EXPECT_SUCCESS(aclFinalize());
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
}

aclError throw_in_init(const char*, size_t, void*) { throw std::string("no"); }

TEST(ThreadEndInInit, InitThatThrewDoesNotCount) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclInitCallbackRegister(ACL_REG_TYPE_OTHER, throw_in_init, nullptr));
  EXPECT_NE(aclInit(nullptr), ACL_SUCCESS);
  ASSERT_SUCCESS(aclInitCallbackUnRegister(ACL_REG_TYPE_OTHER, throw_in_init));
  EXPECT_EQ(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
}

// ---- On threads of the library ----

// More often than there are workers.
constexpr int kOften = 100;

TEST_F(ThreadEnd, HostFunctionMayEndItsThread) {
  for (const aclrtHostFunc ending : {&end_thread, &reach_cancellation_point}) {
    aclrtStream stream = nullptr;
    ASSERT_SUCCESS(aclrtCreateStream(&stream));
    std::atomic<int> ran{0};
    for (int i = 0; i < kOften; ++i) {
      ASSERT_SUCCESS(aclrtLaunchHostFunc(stream, ending, nullptr));
      ASSERT_SUCCESS(aclrtLaunchHostFunc(stream, count, &ran));
    }
    const aclError failed = aclrtSynchronizeStream(stream);
    // Threads of the library cannot be cancelled.
    EXPECT_EQ(failed, ending == &end_thread ? ACL_ERROR_INTERNAL_ERROR : ACL_SUCCESS);
    if (failed != ACL_SUCCESS) {
      EXPECT_NE(recent_error().find("a host function that ended its thread"), std::string::npos);
    }
    EXPECT_EQ(ran.load(), kOften);
    EXPECT_SUCCESS(aclrtSynchronizeStream(stream));
    EXPECT_SUCCESS(aclrtDestroyStream(stream));
  }
}

TEST_F(ThreadEnd, HostFunctionsOfManyStreamsMayEndTheirThreads) {
  constexpr int kStreams = 16;
  aclrtStream streams[kStreams];
  std::atomic<int> ran{0};
  for (aclrtStream& stream : streams) ASSERT_SUCCESS(aclrtCreateStream(&stream));
  for (int i = 0; i < kOften / 10; ++i) {
    for (const aclrtStream stream : streams) {
      ASSERT_SUCCESS(aclrtLaunchHostFunc(stream, end_thread, nullptr));
      ASSERT_SUCCESS(aclrtLaunchHostFunc(stream, count, &ran));
    }
  }
  for (const aclrtStream stream : streams) {
    (void)aclrtSynchronizeStream(stream);
    EXPECT_SUCCESS(aclrtSynchronizeStream(stream));
    EXPECT_SUCCESS(aclrtDestroyStream(stream));
  }
  EXPECT_EQ(ran.load(), kStreams * (kOften / 10));
}

void wait_for(void* promise) { static_cast<std::promise<void>*>(promise)->get_future().wait(); }

void end_when_told(aclrtExceptionInfo*) { exit_thread(); }

TEST_F(ThreadEnd, ExceptionCallbackMayEndItsThread) {
  ASSERT_SUCCESS(aclrtExceptionInfoCallbackRegister(end_when_told));
  aclrtStream stream = nullptr;
  ASSERT_SUCCESS(aclrtCreateStream(&stream));
  std::atomic<int> ran{0};
  for (int i = 0; i < kOften; ++i) {
    void* memory = nullptr;
    ASSERT_SUCCESS(aclrtMalloc(&memory, 2 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST));
    // The memory is gone when the task that names it runs.
    std::promise<void> freed;
    ASSERT_SUCCESS(aclrtLaunchHostFunc(stream, wait_for, &freed));
    ASSERT_SUCCESS(aclrtMemsetAsync(memory, kMiB, 1, kMiB, stream));
    ASSERT_SUCCESS(aclrtLaunchHostFunc(stream, count, &ran));
    ASSERT_SUCCESS(aclrtFree(memory));
    freed.set_value();
    EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_SYS_DMA);
  }
  EXPECT_EQ(ran.load(), kOften);
  EXPECT_SUCCESS(aclrtExceptionInfoCallbackUnregister(end_when_told));
  EXPECT_SUCCESS(aclrtDestroyStream(stream));
}

// ---- Calls of a thread that is cancelled ----

// Runs the body on a thread that would end at the first cancellation point.
void expect_no_cancellation_point(const std::function<void()>& body) {
  bool reached = false;
  EXPECT_EQ(run_to_end([&] {
              pthread_cancel(pthread_self());
              body();
              reached = true;
              pthread_testcancel();
            }),
            End::kExited);
  EXPECT_TRUE(reached) << "a call ended the thread";
}

TEST(CallsOfCancelledThreads, FirstCallIsNoCancellationPoint) {
  US_FRESH_PROCESS();
  expect_no_cancellation_point([] { EXPECT_SUCCESS(aclrtSetDevice(0)); });
  EXPECT_SUCCESS(aclrtResetDevice(0));
}

TEST(CallsOfCancelledThreads, InitIsNoCancellationPoint) {
  US_FRESH_PROCESS();
  expect_no_cancellation_point([] {
    EXPECT_EQ(aclInit("/nowhere/file.json"), ACL_ERROR_INVALID_FILE);
    EXPECT_SUCCESS(aclInit(nullptr));
    aclAppLog(ACL_ERROR, __func__, __FILE__, __LINE__, "%s", "a line that a test writes");
    EXPECT_SUCCESS(aclFinalize());
  });
}

void use_memory() {
  EXPECT_SUCCESS(aclrtSetDevice(0));
  void* device = nullptr;
  void* host = nullptr;
  EXPECT_SUCCESS(aclrtMalloc(&device, 64 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_SUCCESS(aclrtMallocHost(&host, 64 * kMiB));
  EXPECT_SUCCESS(aclrtMemcpy(device, 64 * kMiB, host, 64 * kMiB, ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_SUCCESS(aclrtFree(device));
  EXPECT_SUCCESS(aclrtFreeHost(host));
  const aclrtPhysicalMemProp property =
      block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST_NUMA);
  aclrtDrvMemHandle block = nullptr;
  EXPECT_SUCCESS(aclrtMallocPhysical(&block, 2 * kMiB, &property, 0));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtResetDevice(0));
}

TEST(CallsOfCancelledThreads, MemoryIsNoCancellationPoint) {
  US_FRESH_PROCESS();
  expect_no_cancellation_point(use_memory);
}

TEST(CallsOfCancelledThreads, MemoryOfSmallPagesIsNoCancellationPoint) {
  US_FRESH_PROCESS({"UNDERSTUDY_BACKING", "small"});
  expect_no_cancellation_point(use_memory);
}

TEST(CallsOfCancelledThreads, StreamsAreNoCancellationPoints) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclrtSetDevice(0));
  expect_no_cancellation_point([] {
    EXPECT_SUCCESS(aclrtSetDevice(0));
    aclrtStream stream = nullptr;
    EXPECT_SUCCESS(aclrtCreateStream(&stream));
    std::atomic<int> ran{0};
    EXPECT_SUCCESS(aclrtLaunchHostFunc(stream, count, &ran));
    EXPECT_SUCCESS(aclrtSynchronizeStream(stream));
    EXPECT_EQ(ran.load(), 1);
    EXPECT_SUCCESS(aclrtDestroyStream(stream));
    EXPECT_NE(aclrtProcessReport(1), ACL_SUCCESS);
    EXPECT_SUCCESS(aclrtResetDevice(0));
  });
}

TEST(CallsOfCancelledThreads, SharingIsNoCancellationPoint) {
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclrtSetDevice(0));
  share::Remote other;
  for (const uint64_t rule : share::kAccessRules) {
    const share::Offer theirs = other.call(share::offer_block, share::kGranule, rule, uint8_t{7});
    if (rule == share::kListed) {
      EXPECT_EQ(other.call(share::list_with, share::Version::kV1, theirs.token,
                           share::Ids{share::own_id()}),
                ACL_SUCCESS);
    }
    share::View view{};
    share::Offer offer{};
    expect_no_cancellation_point([&] {
      EXPECT_SUCCESS(aclrtSetDevice(0));
      view = share::import_view(theirs.token, share::kGranule, 0);
      EXPECT_TRUE(share::is_marked(view.start, share::kGranule, 7));
      share::close_view(view);
      offer = share::offer_block(share::kGranule, rule, 8);
      if (rule == share::kListed) share::list(offer.token, {getpid()});
      EXPECT_SUCCESS(aclrtResetDevice(0));
    });
    if (rule == share::kEveryone) {
      share::RemoteView there(other, offer.token);
      EXPECT_TRUE(there.shows(8));
    }
  }
}

}  // namespace
}  // namespace understudy_test
