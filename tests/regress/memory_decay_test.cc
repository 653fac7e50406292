// SPDX-License-Identifier: Apache-2.0
//
// A process that had freed its memory once kept gigabytes of the host until it ended or ran short.
// These poll: how long it may take is the business of the test's time limit.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "acl/acl_understudy.h"
#include "rules/live_mapping.h"
#include "support/fork_safety.h"
#include "support/fresh_process.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

uint64_t taken_from_host() {
  aclUnderstudyBacking backing;
  EXPECT_SUCCESS(aclUnderstudyGetBacking(0, &backing));
  return backing.processTotal;
}

void wait_until_host_has_all_but(uint64_t bytes) {
  while (taken_from_host() > bytes) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(taken_from_host(), bytes);
}

// An allocation of the device, each byte of it set.
void* allocate_filled(size_t size, int value) {
  void* block = nullptr;
  EXPECT_SUCCESS(aclrtMalloc(&block, size, ACL_MEM_MALLOC_HUGE_ONLY));
  EXPECT_SUCCESS(aclrtMemset(block, size, value, size));
  return block;
}

bool holds(const void* block, size_t size, uint8_t value) {
  std::vector<uint8_t> bytes(size);
  EXPECT_SUCCESS(aclrtMemcpy(bytes.data(), size, block, size, ACL_MEMCPY_DEVICE_TO_HOST));
  return std::all_of(bytes.begin(), bytes.end(), [&](uint8_t byte) { return byte == value; });
}

TEST(MemoryDecayRegress, FreedMemoryGoesBackToTheHostAndLiveMemoryStays) {
  US_FRESH_PROCESS();
  constexpr size_t kLive = 3 * kMiB;
  const DeviceSession session;
  void* const live = allocate_filled(kLive, 0x11);
  std::vector<void*> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(allocate_filled(3 * kMiB, 0x22));
  void* small = nullptr;
  EXPECT_SUCCESS(aclrtMalloc(&small, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_SUCCESS(aclrtMemset(small, 64, 1, 64));
  void* host = nullptr;
  EXPECT_SUCCESS(aclrtMallocHost(&host, 3 * kMiB));
  EXPECT_SUCCESS(aclrtFreeHost(host));
  EXPECT_SUCCESS(aclrtFree(small));
  for (void* const block : blocks) EXPECT_SUCCESS(aclrtFree(block));
  wait_until_host_has_all_but(4 * kMiB);
  EXPECT_TRUE(holds(live, kLive, 0x11));
  EXPECT_SUCCESS(aclrtFree(live));
  wait_until_host_has_all_but(0);
}

TEST(MemoryDecayRegress, BlockThatIsUsedAgainKeepsItsBytes) {
  US_FRESH_PROCESS();
  const DeviceSession session;
  EXPECT_SUCCESS(aclrtFree(allocate_filled(8 * kMiB, 0x33)));
  void* const again = allocate_filled(8 * kMiB, 0x44);
  EXPECT_SUCCESS(aclrtFree(allocate_filled(20 * kMiB, 0x55)));
  wait_until_host_has_all_but(8 * kMiB);
  EXPECT_TRUE(holds(again, 8 * kMiB, 0x44));
  EXPECT_SUCCESS(aclrtFree(again));
}

// A fork child has no thread of its parent's, and one of its own when it needs it.
TEST(MemoryDecayRegress, MemoryOfAForkChildGoesBackAsWell) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  US_FRESH_PROCESS();
  const DeviceSession session;
  EXPECT_SUCCESS(aclrtFree(allocate_filled(4 * kMiB, 1)));
  const pid_t child = fork();
  if (child == 0) {
    const DeviceSession own;
    EXPECT_SUCCESS(aclrtFree(allocate_filled(6 * kMiB, 2)));
    wait_until_host_has_all_but(0);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  wait_until_host_has_all_but(0);
}

}  // namespace
}  // namespace understudy_test
