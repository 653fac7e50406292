// SPDX-License-Identifier: Apache-2.0
//
// Registrations of host memory once left locks behind when a lock failed half-way, ran over memory
// of the library's own, and met the lock limit because of memory that was only cached.
#include <sys/mman.h>

#include "rules/host_objects.h"

namespace understudy_test {
namespace {

constexpr size_t kPage = 4 * kKiB;

TEST(RegistrationRegress, ALockThatFailsHalfWayLeavesNothingLocked) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_LOCK", "best_effort"});
  US_SKIP_UNLESS_LOCKABLE(kMiB);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const OwnMemory memory(kMiB);
  ASSERT_EQ(mprotect(at(memory.data(), kMiB - kPage), kPage, PROT_NONE), 0);
  const size_t before = locked_bytes();
  EXPECT_SUCCESS(aclrtHostRegisterV2(memory.data(), kMiB, ACL_HOST_REG_PINNED));
  EXPECT_EQ(locked_bytes(), before);
  EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
  EXPECT_EQ(locked_bytes(), before);
}

TEST(RegistrationRegress, MemoryOfTheLibraryIsRegisteredByWholeBlocksAlone) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  void* first = nullptr;
  void* second = nullptr;
  ASSERT_SUCCESS(aclrtMallocHost(&first, kPage));
  ASSERT_SUCCESS(aclrtMallocHost(&second, kPage));
  void* const lower = std::min(first, second);
  // From one small block into its neighbour.
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtHostRegisterV2(lower, 2 * kPage, ACL_HOST_REG_MAPPED));
  EXPECT_SUCCESS(aclrtFreeHost(first));
  EXPECT_SUCCESS(aclrtFreeHost(second));
  // Freed, but kept for the next block.
  void* large = nullptr;
  ASSERT_SUCCESS(aclrtMallocHost(&large, 2 * kMiB));
  ASSERT_SUCCESS(aclrtFreeHost(large));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtHostRegisterV2(large, 2 * kMiB, ACL_HOST_REG_MAPPED));
  EXPECT_SUCCESS(aclrtResetDevice(0));
}

}  // namespace
}  // namespace understudy_test
