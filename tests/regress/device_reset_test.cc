// SPDX-License-Identifier: Apache-2.0
//
// The reset of a device once ended the allocation of another device, if that had just been given
// the address of one that was being ended.
#include <atomic>
#include <thread>

#include "support/rule_test.h"

namespace understudy_test {
namespace {

TEST(DeviceResetRegress, AnotherDevicesNewAllocationsStay) {
  constexpr int kRounds = 300;
  constexpr int kMostRounds =
      10'000 * kRounds;        // on a busy machine the other thread waits for its turn
  constexpr int kFrees = 100;  // of device 1, while device 0 is reset
  constexpr size_t kSize = 2 * kMiB;
  std::atomic<bool> stop{false};
  std::atomic<int> freed{0};
  std::atomic<int> lost{0};
  // Frees a block of device 0 and takes one of device 1, which gets the same address.
  std::thread other([&] {
    while (!stop.load()) {
      void* first = nullptr;
      if (aclrtSetDevice(0) != ACL_SUCCESS) continue;
      if (aclrtMallocAlign32(&first, kSize, ACL_MEM_MALLOC_HUGE_ONLY) != ACL_SUCCESS) continue;
      (void)aclrtFree(first);  // the reset may have done it
      void* second = nullptr;
      if (aclrtSetDevice(1) != ACL_SUCCESS) continue;
      if (aclrtMallocAlign32(&second, kSize, ACL_MEM_MALLOC_HUGE_ONLY) != ACL_SUCCESS) continue;
      ++(aclrtFree(second) == ACL_SUCCESS ? freed : lost);
    }
  });
  const auto has_enough = [&] { return freed.load() + lost.load() >= kFrees; };
  for (int round = 0; round < kRounds || (!has_enough() && round < kMostRounds); ++round) {
    EXPECT_SUCCESS(aclrtSetDevice(0));
    EXPECT_SUCCESS(aclrtResetDeviceForce(0));
  }
  stop.store(true);
  other.join();
  EXPECT_EQ(lost.load(), 0);
  EXPECT_GE(freed.load(), kFrees) << "device 1 had too few allocations to lose one";
}

}  // namespace
}  // namespace understudy_test
