// SPDX-License-Identifier: Apache-2.0
//
// Long queues: adding to one once waited for a host function that only the adding thread could end,
// and a thread that synchronised with a limit ran all of it before it looked at the time.
#include "rules/async_objects.h"
#include "rules/stream_tasks.h"

namespace understudy_test {
namespace {

using LongQueue = DeviceTest;

TEST_F(LongQueue, AddingBehindAHostFunctionDoesNotWaitForIt) {
  constexpr int kTasks = 20'000;
  constexpr size_t kCount = 64;
  const TestStream stream;
  const MallocedMemory memory(kCount);
  TaskCounter last;
  Gate gate(stream.get());
  gate.wait_until_reached();
  const auto add_all = [&]() -> aclError {
    for (int i = 1; i <= kTasks; ++i) {
      const aclError code = aclrtMemsetAsync(memory.data(), kCount, i % 251, kCount, stream.get());
      if (code != ACL_SUCCESS) return code;
    }
    return ACL_SUCCESS;
  };
  EXPECT_SUCCESS(while_held(gate, add_all));
  last.queue_on(stream.get());
  EXPECT_EQ(last.runs(), 0);
  gate.open();
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_EQ(last.runs(), 1);
  EXPECT_EQ(copy_out(memory.data(), kCount), std::vector<uint8_t>(kCount, kTasks % 251));
}

TEST_F(LongQueue, ALimitedSynchroniseReturnsWhileCopiesRemain) {
  constexpr int kCopies = 15'000;
  constexpr int kAttempts = 8;
  const TestStream stream;
  const TestStream recorder;
  const MallocedMemory from(kMiB);
  const MallocedMemory to(kMiB);
  copy_in(from.data(), pattern(kMiB));
  int outlasted = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const TestEvent start(EventFamily::kClassic);
    EXPECT_SUCCESS(aclrtStreamWaitEvent(stream.get(), start.get()));
    for (int i = 0; i < kCopies; ++i) {
      ASSERT_SUCCESS(aclrtMemcpyAsync(to.data(), kMiB, from.data(), kMiB,
                                      ACL_MEMCPY_DEVICE_TO_DEVICE, stream.get()));
    }
    EXPECT_SUCCESS(aclrtRecordEvent(start.get(), recorder.get()));
    const aclError code = aclrtSynchronizeStreamWithTimeout(stream.get(), kShortLimit);
    EXPECT_TRUE(code == ACL_SUCCESS || code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT) << code;
    if (code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT) ++outlasted;
    // What remains need not run.
    EXPECT_SUCCESS(aclrtStreamAbort(stream.get()));
    EXPECT_SUCCESS(finish(recorder.get()));
  }
  // On a busy machine a worker may do them all while this thread gets no processor. Not often.
  EXPECT_GE(outlasted, kAttempts - 1);
}

}  // namespace
}  // namespace understudy_test
