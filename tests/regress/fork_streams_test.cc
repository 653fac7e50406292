// SPDX-License-Identifier: Apache-2.0
//
// Streams across fork: the child has none of its parent's streams and workers, and may use streams
// of its own at once; the parent's go on. A child answers through its exit code.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "rules/stream_objects.h"
#include "support/fork_safety.h"

namespace understudy_test {
namespace {

constexpr size_t kBytes = 3 * kMiB;

// 0, or the number of the step that went wrong.
int use_streams_in_child(aclrtStream inherited_stream, aclrtEvent inherited_event) {
  if (aclrtSetDevice(0) != ACL_SUCCESS) return 1;
  if (aclrtSynchronizeStream(inherited_stream) != ACL_ERROR_RT_INVALID_HANDLE) return 2;
  if (aclrtSynchronizeEvent(inherited_event) != ACL_ERROR_RT_INVALID_HANDLE) return 3;
  aclrtStream stream = nullptr;
  void* device = nullptr;
  void* host = nullptr;
  if (aclrtCreateStream(&stream) != ACL_SUCCESS) return 4;
  if (aclrtMalloc(&device, kBytes, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return 5;
  if (aclrtMallocHost(&host, kBytes) != ACL_SUCCESS) return 6;
  if (aclrtMemsetAsync(device, kBytes, 9, kBytes, stream) != ACL_SUCCESS) return 7;
  if (aclrtMemcpyAsync(host, kBytes, device, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream) !=
      ACL_SUCCESS) {
    return 8;
  }
  // Only a worker of the child's own can run this.
  bool ran = false;
  if (aclrtLaunchHostFunc(
          stream, [](void* flag) { *static_cast<bool*>(flag) = true; }, &ran) != ACL_SUCCESS) {
    return 9;
  }
  if (aclrtSynchronizeStreamWithTimeout(stream, 60000) != ACL_SUCCESS) return 10;
  if (!ran || static_cast<char*>(host)[kBytes - 1] != 9) return 11;
  // Copies of the parent's worker were under way: their pins must not hold this up.
  if (aclrtFreeHost(host) != ACL_SUCCESS || aclrtFree(device) != ACL_SUCCESS) return 12;
  return aclrtResetDevice(0) == ACL_SUCCESS ? 0 : 13;
}

TEST(ForkStreams, AChildHasStreamsOfItsOwnAndTheParentsGoOn) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  void* device = nullptr;
  void* host = nullptr;
  ASSERT_SUCCESS(aclrtMalloc(&device, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_SUCCESS(aclrtMallocHost(&host, kBytes));
  memset(host, 5, kBytes);
  {
    const TestStream stream;
    const TestEvent event;
    for (int round = 0; round < 20; ++round) {
      // Some are queued, one runs, when the process is forked.
      for (int copies = 0; copies < 50; ++copies) {
        ASSERT_SUCCESS(aclrtMemcpyAsync(device, kBytes, host, kBytes, ACL_MEMCPY_HOST_TO_DEVICE,
                                        stream.get()));
      }
      ASSERT_SUCCESS(aclrtRecordEvent(event.get(), stream.get()));
      const pid_t child = fork();
      if (child == 0) _exit(use_streams_in_child(stream.get(), event.get()));
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status)) << "round " << round;
      ASSERT_EQ(WEXITSTATUS(status), 0) << "the step of the child that went wrong";
    }
    EXPECT_SUCCESS(aclrtSynchronizeStreamWithTimeout(stream.get(), 60000));
    EXPECT_EQ(event_status(event.get()), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  }
  EXPECT_EQ(copy_out(device, kBytes).back(), 5);
  EXPECT_SUCCESS(aclrtFreeHost(host));
  EXPECT_SUCCESS(aclrtFree(device));
  EXPECT_SUCCESS(aclrtResetDevice(0));
}

}  // namespace
}  // namespace understudy_test
