// SPDX-License-Identifier: Apache-2.0
//
// Two threads that met a full budget at once, where all of it was only cached: one gave the cached
// memory back and the other was told that there was none.
#include <atomic>
#include <thread>

#include "support/rule_test.h"

namespace understudy_test {
namespace {

constexpr size_t kShare = 16 * kMiB;

void use_and_free(std::atomic<int>& failures) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  void* const range = reserve(kShare);
  const aclrtDrvMemHandle block = create_block(kShare);
  ASSERT_SUCCESS(aclrtMapMem(range, kShare, 0, block, 0));
  if (aclrtMemset(range, kShare, 1, kShare) != ACL_SUCCESS) ++failures;
  EXPECT_SUCCESS(aclrtUnmapMem(range));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
}

TEST(HostPressure, CachedMemoryServesEveryoneWhoIsShort) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_BUDGET", "64M"});
  std::atomic<int> failures{0};
  for (int round = 0; round < 40; ++round) {
    // Each round's threads find the budget filled by what earlier threads freed.
    std::thread first(use_and_free, std::ref(failures));
    std::thread second(use_and_free, std::ref(failures));
    first.join();
    second.join();
  }
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace understudy_test
