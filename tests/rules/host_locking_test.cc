// SPDX-License-Identifier: Apache-2.0
//
// Page-locked means locked as the kernel sees it; and what happens to an ordinary user whose lock
// limit is reached.
// Covers: HOST-04, HOST-10, HOST-13.
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "rules/host_objects.h"
#include "support/server_directory.h"

namespace understudy_test {
namespace {

constexpr size_t kBlockSize = 3 * kMiB;

void expect_locked(const HostBlock& block) {
  EXPECT_TRUE(is_page_locked(block.data(), block.size()));
  EXPECT_TRUE(is_resident(block.data(), block.size()));
}

class HostLocking : public HostMemoryTest {};

TEST_F(HostLocking, HOST_04_BlocksOfEverySizeAreLocked) {
  US_SKIP_UNLESS_LOCKABLE(2 * kBlockSize);
  for (const size_t size : {size_t{1}, size_t{100}, kPage + 1, 300 * kKiB, kBlockSize}) {
    SCOPED_TRACE(size);
    const HostBlock block(size);
    expect_locked(block);
  }
}

TEST_F(HostLocking, HOST_04_KernelCountsTheLock) {
  US_SKIP_UNLESS_LOCKABLE(2 * kBlockSize);
  const HostBlock block(kBlockSize);
  const bool from_pool = kernel_flags(block.data(), 1).at(0).find(" ht ") != std::string::npos;
  if (from_pool) GTEST_SKIP() << "pages of the hugetlb pool are not in VmLck";
  EXPECT_GE(locked_bytes(), kBlockSize);
}

TEST_F(HostLocking, HOST_04_HOST_13_ConfiguredBlocksAreLockedToo) {
  US_SKIP_UNLESS_LOCKABLE(2 * kBlockSize);
  HostConfiguration module = {host_attribute(ACL_RT_MEM_ATTR_MODULE_ID, 5)};
  HostConfiguration one_address = {host_attribute(ACL_RT_MEM_ATTR_VA_FLAG, 1)};
  for (aclrtMallocConfig* config :
       {static_cast<aclrtMallocConfig*>(nullptr), module.get(), one_address.get()}) {
    const HostBlock block(allocate_host_with(kGranule, config), kGranule);
    expect_locked(block);
  }
}

TEST_F(HostLocking, HOST_04_NeighbourStaysLockedWhenABlockIsFreed) {
  US_SKIP_UNLESS_LOCKABLE(2 * kBlockSize);
  for (const size_t size : {size_t{100}, kPage, 300 * kKiB}) {
    SCOPED_TRACE(size);
    const HostBlock before(size);
    HostBlock block(size);
    const HostBlock after(size);
    EXPECT_SUCCESS(aclrtFreeHost(block.give_up()));
    expect_locked(before);
    expect_locked(after);
  }
}

TEST(HostLockingStrict, HOST_04_HOST_10_BlocksAreLockedWithinTheLimit) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_LOCK", "strict"});
  US_SKIP_UNLESS_LOCKABLE(2 * kBlockSize);
  const DeviceSession session;
  const HostBlock small(100);
  const HostBlock large(kBlockSize);
  expect_locked(small);
  expect_locked(large);
}

// ---- The limit of an ordinary user ----

constexpr uid_t kNobody = 65534;

bool limit_locks(size_t limit) {
  const rlimit limits = {limit, limit};
  return setrlimit(RLIMIT_MEMLOCK, &limits) == 0;
}

// The limit does not bind root, so root becomes somebody else. Only for a process of its own, and
// before its first ACL call.
bool become_ordinary_user() {
  if (geteuid() != 0) return true;
  // The software NPUs of the process are in a directory that only their user may use.
  return chown(getenv(kServerVariable), kNobody, kNobody) == 0 && setgroups(0, nullptr) == 0 &&
         setgid(kNobody) == 0 && setuid(kNobody) == 0 &&
         // A process that changed its user cannot read its own /proc/self/smaps otherwise.
         prctl(PR_SET_DUMPABLE, 1) == 0;
}

bool lock_is_refused(size_t size) {
  const OwnMemory probe(size);
  return !lock_for_real(probe.data(), size);
}

bool is_bound_by_lock_limit(size_t limit) {
  return limit_locks(limit) && become_ordinary_user() && lock_is_refused(limit + kMiB);
}

#define US_SKIP_UNLESS_BOUND_BY_LOCK_LIMIT(limit) \
  if (!is_bound_by_lock_limit(limit))             \
  GTEST_SKIP() << "no lock limit can be set for this process (its privileges)"

void expect_populated_but_unlocked(size_t size) {
  SCOPED_TRACE(size);
  const HostBlock block(size);
  EXPECT_EQ(number(block.data()) % 64, 0u);
  EXPECT_TRUE(is_resident(block.data(), size));
  EXPECT_FALSE(is_page_locked(block.data(), size));
  expect_at_host(block.data());
  store(block.data(), pattern(size, 3));
  EXPECT_TRUE(holds(block.data(), pattern(size, 3)));
}

void expect_served_without_lock() {
  for (const size_t limit : {64 * kKiB, size_t{0}}) {
    SCOPED_TRACE(limit);
    ASSERT_TRUE(limit_locks(limit));
    expect_populated_but_unlocked(kBlockSize);
    expect_populated_but_unlocked(kGranule);
  }
}

TEST(HostLockingLimited, HOST_10_BestEffortServesPopulatedButUnlockedMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_LOCK", "best_effort"}, {"UNDERSTUDY_BACKING", "small"});
  US_SKIP_UNLESS_BOUND_BY_LOCK_LIMIT(64 * kKiB);
  const DeviceSession session;
  expect_served_without_lock();
}

TEST(HostLockingLimited, HOST_10_BestEffortIsTheDefault) {
  US_FRESH_PROCESS({"UNDERSTUDY_BACKING", "small"});
  US_SKIP_UNLESS_BOUND_BY_LOCK_LIMIT(64 * kKiB);
  const DeviceSession session;
  expect_served_without_lock();
}

void expect_lock_refused(size_t size) {
  SCOPED_TRACE(size);
  const size_t locked = locked_bytes();
  void* data = host_sentinel();
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMallocHost(&data, size));
  EXPECT_FAILS(ACL_ERROR_RT_MEMORY_ALLOCATION, aclrtMallocHostWithCfg(&data, size, nullptr));
  EXPECT_EQ(data, host_sentinel());
  EXPECT_EQ(locked_bytes(), locked);
}

TEST(HostLockingLimited, HOST_10_StrictIsOutOfMemoryAtTheLimit) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_LOCK", "strict"}, {"UNDERSTUDY_BACKING", "small"});
  US_SKIP_UNLESS_BOUND_BY_LOCK_LIMIT(64 * kKiB);
  const DeviceSession session;
  const MemoryFigures before = memory_figures();
  for (const size_t limit : {64 * kKiB, size_t{0}}) {
    SCOPED_TRACE(limit);
    ASSERT_TRUE(limit_locks(limit));
    expect_lock_refused(kBlockSize);
    expect_lock_refused(kGranule);
  }
  EXPECT_EQ(memory_figures(), before);
}

TEST(HostLockingLimited, HOST_10_StrictServesAgainOnceLockedMemoryIsFreed) {
  constexpr size_t kLimit = 8 * kMiB;
  constexpr size_t kSize = 2 * kMiB;
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_LOCK", "strict"}, {"UNDERSTUDY_BACKING", "small"});
  // An ordinary user cannot raise the limit to where this test needs it.
  if (!can_lock_pages(kLimit)) GTEST_SKIP() << "the lock limit of this process is too low";
  US_SKIP_UNLESS_BOUND_BY_LOCK_LIMIT(kLimit);
  const DeviceSession session;
  std::vector<HostBlock> blocks;
  aclError result = ACL_SUCCESS;
  for (void* data = nullptr; blocks.size() <= kLimit / kSize &&
                             (result = aclrtMallocHost(&data, kSize)) == ACL_SUCCESS;) {
    blocks.emplace_back(data, kSize);
    expect_locked(blocks.back());
  }
  EXPECT_EQ(result, ACL_ERROR_RT_MEMORY_ALLOCATION);
  ASSERT_GE(blocks.size(), 1u);
  EXPECT_LE(blocks.size(), kLimit / kSize);

  blocks.pop_back();
  blocks.emplace_back(kSize);
  expect_locked(blocks.back());
}

}  // namespace
}  // namespace understudy_test
