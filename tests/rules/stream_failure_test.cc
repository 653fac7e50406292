// SPDX-License-Identifier: Apache-2.0
//
// Tasks that fail when they run: for which reasons, who is told, and that other tasks go on.
// stream_stop_mode_test.cc has the other failure mode.
// Covers: DEV-19, ERR-05, STREAM-08, STREAM-10.
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "rules/allocation_objects.h"
#include "rules/host_objects.h"
#include "rules/stream_tasks.h"

namespace understudy_test {
namespace {

using TaskFailure = DeviceTest;

aclError synchronize(aclrtStream stream) {
  return aclrtSynchronizeStreamWithTimeout(stream, kLongLimit);
}

void expect_failed(aclrtStream stream) {
  EXPECT_FAILS(ACL_ERROR_RT_SYS_DMA, aclrtSynchronizeStreamWithTimeout(stream, kLongLimit));
}

std::string as_text(const void* address) {
  std::ostringstream text;
  text << address;
  return text.str();
}

// A stream held by a gate, so that something can happen to memory between queueing and running.
class HeldStream {
 public:
  HeldStream() { gate_->wait_until_reached(); }

  aclrtStream get() const { return stream_.get(); }
  // Lets the tasks run. They must fail, and the text must say where.
  void expect_failure_at(const void* place) {
    gate_.reset();
    (void)recent_error();
    EXPECT_EQ(synchronize(get()), ACL_ERROR_RT_SYS_DMA);
    const std::string text = recent_error();
    EXPECT_NE(text.find(as_text(place)), std::string::npos) << text;
    EXPECT_NE(text.find("aclrtSynchronizeStreamWithTimeout"), std::string::npos) << text;
    expect_finishes(get());
  }
  void expect_success() {
    gate_.reset();
    expect_finishes(get());
  }

 private:
  TestStream stream_;
  std::optional<Gate> gate_{std::in_place, stream_.get()};
};

// ---- Reasons ----

TEST_F(TaskFailure, STREAM_10_FreedMemoryIsGoneWhenTheTaskRuns) {
  HeldStream stream;
  DeviceBlock block(4 * kPage);
  void* const data = block.data();
  EXPECT_SUCCESS(aclrtMemsetAsync(data, kPage, 1, kPage, stream.get()));
  block.free();
  stream.expect_failure_at(data);
}

TEST_F(TaskFailure, STREAM_10_AFreedSourceLeavesTheTargetAlone) {
  HeldStream stream;
  const LiveMapping target;
  copy_in(target.data(), pattern(kPage));
  DeviceBlock source(4 * kPage);
  void* const data = source.data();
  EXPECT_SUCCESS(aclrtMemcpyAsync(target.data(), kPage, data, kPage, ACL_MEMCPY_DEVICE_TO_DEVICE,
                                  stream.get()));
  source.free();
  stream.expect_failure_at(data);
  EXPECT_TRUE(copy_out(target.data(), kPage) == pattern(kPage));
}

TEST_F(TaskFailure, STREAM_10_UnmappedMemoryIsGoneWhenTheTaskRuns) {
  HeldStream stream;
  const runtime::MappedBlock block = runtime::map_new_block();
  copy_in(block.address, pattern(kPage));
  EXPECT_SUCCESS(aclrtMemsetAsync(block.address, kPage, 1, kPage, stream.get()));
  EXPECT_SUCCESS(aclrtUnmapMem(block.address));
  stream.expect_failure_at(block.address);
  EXPECT_SUCCESS(aclrtMapMem(block.address, block.size, 0, block.handle, 0));
  EXPECT_TRUE(copy_out(block.address, kPage) == pattern(kPage));
  runtime::drop(block);
}

TEST_F(TaskFailure, STREAM_10_FreedHostMemoryIsGoneWhenTheTaskRuns) {
  HeldStream stream;
  const LiveMapping target;
  copy_in(target.data(), pattern(kPage));
  HostBlock source(kPage);
  store(source.data(), pattern(kPage, 9));
  EXPECT_SUCCESS(aclrtMemcpyAsync(target.data(), kPage, source.data(), kPage,
                                  ACL_MEMCPY_HOST_TO_DEVICE, stream.get()));
  void* const data = source.give_up();
  EXPECT_SUCCESS(aclrtFreeHost(data));
  stream.expect_failure_at(data);
  EXPECT_TRUE(copy_out(target.data(), kPage) == pattern(kPage));
}

TEST_F(TaskFailure, STREAM_10_UnregisteredMemoryIsGoneWhenTheTaskRuns) {
  HeldStream stream;
  const LiveMapping target;
  copy_in(target.data(), pattern(kPage));
  const OwnMemory source(kPage);
  store(source.data(), pattern(kPage, 9));
  ASSERT_SUCCESS(aclrtHostRegisterV2(source.data(), kPage, ACL_HOST_REG_PINNED));
  EXPECT_SUCCESS(aclrtMemcpyAsync(target.data(), kPage, source.data(), kPage,
                                  ACL_MEMCPY_HOST_TO_DEVICE, stream.get()));
  EXPECT_SUCCESS(aclrtHostUnregister(source.data()));
  stream.expect_failure_at(source.data());
  EXPECT_TRUE(copy_out(target.data(), kPage) == pattern(kPage));
}

TEST_F(TaskFailure, STREAM_10_ARangeThatLeavesItsAllocationFailsAsAWhole) {
  HeldStream stream;
  const DeviceBlock block(4 * kPage);
  copy_in(block.data(), pattern(4 * kPage));
  EXPECT_SUCCESS(aclrtMemsetAsync(block.data(), kGiB, 1, 16 * kMiB, stream.get()));
  stream.expect_failure_at(block.data());
  EXPECT_TRUE(copy_out(block.data(), 4 * kPage) == pattern(4 * kPage));
}

TEST_F(TaskFailure, STREAM_10_ARangeWithAHoleFailsAsAWhole) {
  HeldStream stream;
  void* const range = reserve(3 * kGranule);
  const aclrtDrvMemHandle block = create_block(kGranule);
  ASSERT_SUCCESS(aclrtMapMem(range, kGranule, 0, block, 0));
  ASSERT_SUCCESS(aclrtMapMem(at(range, 2 * kGranule), kGranule, 0, block, 0));
  copy_in(range, pattern(kPage));
  EXPECT_SUCCESS(aclrtMemsetAsync(range, 3 * kGranule, 1, 3 * kGranule, stream.get()));
  stream.expect_failure_at(range);
  EXPECT_TRUE(copy_out(range, kPage) == pattern(kPage));
  EXPECT_SUCCESS(aclrtUnmapMem(range));
  EXPECT_SUCCESS(aclrtUnmapMem(at(range, 2 * kGranule)));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
}

TEST_F(TaskFailure, STREAM_10_AReadOnlyTargetFails) {
  HeldStream stream;
  const DeviceBlock block(kPage, ACL_MEM_ACCESS_USER_SPACE_READONLY, kMallocWithCfg);
  const std::vector<uint8_t> before = copy_out(block.data(), kPage);
  EXPECT_SUCCESS(aclrtMemsetAsync(block.data(), kPage, ~before[0], kPage, stream.get()));
  stream.expect_failure_at(block.data());
  EXPECT_TRUE(copy_out(block.data(), kPage) == before);
}

TEST_F(TaskFailure, STREAM_10_AWordThatIsGoneFails) {
  for (const bool waits : {false, true}) {
    SCOPED_TRACE(waits);
    HeldStream stream;
    DeviceBlock block(kPage);
    void* const data = block.data();
    if (waits) {
      EXPECT_SUCCESS(aclrtValueWait(data, 0, ACL_STREAM_WAIT_VALUE_GEQ, stream.get()));
    } else {
      EXPECT_SUCCESS(aclrtValueWrite(data, 1, 0, stream.get()));
    }
    block.free();
    stream.expect_failure_at(data);
  }
}

TEST_F(TaskFailure, STREAM_10_MemoryMappedThereAgainIsWhatTheTaskFinds) {
  HeldStream stream;
  const runtime::MappedBlock block = runtime::map_new_block();
  copy_in(block.address, pattern(kPage));
  EXPECT_SUCCESS(aclrtMemsetAsync(block.address, kPage, 6, kPage, stream.get()));
  EXPECT_SUCCESS(aclrtUnmapMem(block.address));
  const aclrtDrvMemHandle successor = create_block(block.size);
  EXPECT_SUCCESS(aclrtMapMem(block.address, block.size, 0, successor, 0));
  stream.expect_success();
  EXPECT_TRUE(copy_out(block.address, kPage) == std::vector<uint8_t>(kPage, 6));
  EXPECT_SUCCESS(aclrtUnmapMem(block.address));
  EXPECT_SUCCESS(aclrtMapMem(block.address, block.size, 0, block.handle, 0));
  EXPECT_TRUE(copy_out(block.address, kPage) == pattern(kPage)) << "the old block was written";
  EXPECT_SUCCESS(aclrtFreePhysical(successor));
  runtime::drop(block);
}

// ---- Who is told ----

void throw_something(void*) { throw std::runtime_error("a host function that throws"); }

TEST_F(TaskFailure, STREAM_10_LaterTasksStillRun) {
  const TestStream stream;
  FailingTask task;
  TargetPage page;
  TaskCounter counter;
  task.queue_on(stream.get());
  page.queue_set(stream.get(), 5);
  counter.queue_on(stream.get());
  expect_failed(stream.get());
  EXPECT_TRUE(page.holds(5));
  EXPECT_EQ(counter.runs(), 1);
  task.expect_nothing_written();
}

TEST_F(TaskFailure, STREAM_10_OneSynchronisationReturnsTheFirstError) {
  const TestStream stream;
  FailingTask task;
  task.queue_on(stream.get());
  task.queue_on(stream.get());
  EXPECT_SUCCESS(aclrtLaunchHostFunc(stream.get(), throw_something, nullptr));
  expect_failed(stream.get());
  expect_finishes(stream.get());

  EXPECT_SUCCESS(aclrtLaunchHostFunc(stream.get(), throw_something, nullptr));
  task.queue_on(stream.get());
  EXPECT_FAILS(ACL_ERROR_INTERNAL_ERROR,
               aclrtSynchronizeStreamWithTimeout(stream.get(), kLongLimit));
  expect_finishes(stream.get());
}

TEST_F(TaskFailure, STREAM_10_TheErrorStaysUntilItIsAskedFor) {
  const TestStream stream;
  FailingTask task;
  TargetPage page;
  task.queue_on(stream.get());
  const TestEvent event;
  EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
  EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(event.get(), kLongLimit));
  EXPECT_SUCCESS(page.try_set(stream.get(), 5)) << "queueing tells nothing";
  expect_failed(stream.get());
  EXPECT_TRUE(page.holds(5));
}

TEST_F(TaskFailure, STREAM_10_OtherStreamsAreNotTold) {
  const TestStream failed;
  const TestStream other;
  FailingTask task;
  task.queue_on(failed.get());
  TaskCounter counter;
  counter.queue_on(other.get());
  expect_finishes(other.get());
  expect_finishes(nullptr);
  EXPECT_EQ(counter.runs(), 1);
  expect_failed(failed.get());
}

TEST_F(TaskFailure, STREAM_10_DEV_19_TheDeviceIsToldOnce) {
  const TestStream stream;
  FailingTask task;
  for (auto* const synchronize_device :
       {+[] { return aclrtSynchronizeDevice(); },
        +[] { return aclrtSynchronizeDeviceWithTimeout(kLongLimit); }}) {
    task.queue_on(stream.get());
    (void)recent_error();
    EXPECT_TRUE(fails_with(ACL_ERROR_RT_SYS_DMA, synchronize_device(), "aclrtSynchronizeDevice"));
    EXPECT_SUCCESS(synchronize_device());
    expect_finishes(stream.get());
  }
}

TEST_F(TaskFailure, STREAM_10_ERR_05_TheSynchronisationSetsTheLastErrorOfItsThread) {
  const TestStream stream;
  FailingTask task;
  (void)aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  task.queue_on(stream.get());
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
  expect_failed(stream.get());
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_SYS_DMA);
}

TEST_F(TaskFailure, STREAM_08_DestroyingTellsNothing) {
  for (auto* const destroy : {aclrtDestroyStream, aclrtDestroyStreamForce}) {
    FailingTask task;
    TestStream stream;
    task.queue_on(stream.get());
    const TestEvent event;
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
    EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(event.get(), kLongLimit));
    EXPECT_SUCCESS(destroy(stream.release()));
  }
}

}  // namespace
}  // namespace understudy_test
