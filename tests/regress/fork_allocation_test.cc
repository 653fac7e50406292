// SPDX-License-Identifier: Apache-2.0
//
// Allocations across fork: the child has the bytes of host blocks, none of the parent's objects,
// and memory of its own; the parent notices nothing. A child answers through its exit code.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "support/rule_test.h"

namespace understudy_test {
namespace {

constexpr size_t kSmall = 5000;
constexpr size_t kLarge = 4 * kMiB;

struct Blocks {
  void* device = nullptr;
  void* small_host = nullptr;
  void* large_host = nullptr;
};

// 0, or the number of the step that went wrong.
int use_memory_in_child(const Blocks& inherited) {
  if (aclrtFree(inherited.device) != ACL_ERROR_RT_PARAM_INVALID) return 1;
  if (aclrtFreeHost(inherited.small_host) != ACL_ERROR_RT_PARAM_INVALID) return 2;
  if (aclrtFreeHost(inherited.large_host) != ACL_ERROR_RT_PARAM_INVALID) return 3;
  if (static_cast<char*>(inherited.large_host)[kLarge - 1] != 8) return 4;
  Blocks own;
  if (aclrtSetDevice(0) != ACL_SUCCESS) return 5;
  if (aclrtMalloc(&own.device, kSmall, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return 6;
  if (aclrtMallocHost(&own.small_host, kSmall) != ACL_SUCCESS) return 7;
  memset(own.small_host, 1, kSmall);
  memset(inherited.small_host, 2, kSmall);
  if (aclrtMemcpy(own.device, kSmall, inherited.small_host, kSmall, ACL_MEMCPY_HOST_TO_DEVICE) !=
      ACL_SUCCESS) {
    return 8;
  }
  if (aclrtMemcpy(own.small_host, kSmall, own.device, kSmall, ACL_MEMCPY_DEVICE_TO_HOST) !=
      ACL_SUCCESS) {
    return 9;
  }
  if (static_cast<char*>(own.small_host)[kSmall - 1] != 2) return 10;
  if (aclrtFree(own.device) != ACL_SUCCESS || aclrtFreeHost(own.small_host) != ACL_SUCCESS) {
    return 11;
  }
  return 0;
}

TEST(ForkAllocation, AChildHasMemoryOfItsOwnAndTheParentKeepsIts) {
  // A process that is forked has one thread.
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  Blocks blocks;
  ASSERT_SUCCESS(aclrtMalloc(&blocks.device, kSmall, ACL_MEM_MALLOC_HUGE_FIRST));
  ASSERT_SUCCESS(aclrtMallocHost(&blocks.small_host, kSmall));
  ASSERT_SUCCESS(aclrtMallocHost(&blocks.large_host, kLarge));
  copy_in(blocks.device, pattern(kSmall));
  memset(blocks.small_host, 7, kSmall);
  memset(blocks.large_host, 8, kLarge);

  const pid_t child = fork();
  if (child == 0) _exit(use_memory_in_child(blocks));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the step of the child that went wrong";

  EXPECT_TRUE(copy_out(blocks.device, kSmall) == pattern(kSmall));
  EXPECT_EQ(static_cast<char*>(blocks.small_host)[0], 7);
  EXPECT_SUCCESS(aclrtFree(blocks.device));
  EXPECT_SUCCESS(aclrtFreeHost(blocks.small_host));
  EXPECT_SUCCESS(aclrtFreeHost(blocks.large_host));
}

}  // namespace
}  // namespace understudy_test
