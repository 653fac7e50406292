// SPDX-License-Identifier: Apache-2.0
#include "memory/registered_memory.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <string>

#include "platform/address_window.h"
#include "platform/host_memory.h"
#include "unit/expect_result.h"
#include "unit/memory/memory_rig.h"
#include "unit/platform/planned_fault.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

// Bytes this process has locked.
uint64_t locked_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kib = 0;
    if (word == "VmLck:" && status >> kib) return kib * kKiB;
  }
  return 0;
}

class RegisteredMemoryTest : public testing::Test {
 protected:
  RegisteredMemoryTest()
      : own_(value_of(platform::map_host_memory(kGranule, platform::HostPages::kSmall))) {}
  ~RegisteredMemoryTest() override {
    platform::unmap_host_memory(own_);
    arena_.for_each_range([](VirtualRange range) { (void)platform::vacate(range); });
  }
  VirtualAddress page(uint64_t number) const { return own_.base + number * kNormalPage; }
  Result<VirtualAddress> lock(VirtualAddress base, uint64_t size) {
    return registered_.add({.range = {base, size}, .lock = true});
  }
  bool can_lock() {
    const bool locked = platform::lock_pages({own_.base, 16 * kNormalPage}).ok();
    platform::unlock_pages({own_.base, 16 * kNormalPage});
    return locked;
  }

  const VirtualRange own_;
  Settings settings_ = rig_settings();
  ReservationIndex reservations_;
  AddressArena arena_{reservations_};
  BackingPools pools_{settings_, rig_server()};
  PinnedMemory pinned_{settings_, pools_};
  RegisteredMemory registered_{settings_, arena_, pinned_};
};

TEST_F(RegisteredMemoryTest, RangeIsKnownFromItsFirstByteToItsLast) {
  ASSERT_TRUE(is_ok(registered_.add({.range = {page(1), 5000}})));
  for (const uint64_t offset : {0U, 1U, 4999U}) {
    EXPECT_EQ(registered_.find(page(1) + offset)->base, page(1));
  }
  EXPECT_FALSE(registered_.find(page(1) - 1));
  EXPECT_FALSE(registered_.find(page(1) + 5000));
  EXPECT_TRUE(is_ok(registered_.remove(page(1))));
  EXPECT_FALSE(registered_.find(page(1)));
  EXPECT_TRUE(fails_with(registered_.remove(page(1)), ErrorCode::kNotRegistered));
}

TEST_F(RegisteredMemoryTest, OverlapsAreRefusedAndNeighboursAreNot) {
  ASSERT_TRUE(is_ok(registered_.add({.range = {page(4), 2 * kNormalPage}})));
  for (const VirtualRange range :
       {VirtualRange{page(4), 1}, VirtualRange{page(5) + 4095, 1}, VirtualRange{page(3), 4097},
        VirtualRange{page(0), 10 * kNormalPage}, VirtualRange{page(5), 9}}) {
    EXPECT_TRUE(registered_.overlaps(range));
    EXPECT_TRUE(fails_with(registered_.add({.range = range, .mapped = true}),
                           ErrorCode::kAlreadyRegistered));
  }
  EXPECT_TRUE(is_ok(registered_.add({.range = {page(3), kNormalPage}})));
  EXPECT_TRUE(is_ok(registered_.add({.range = {page(6), 1}})));
  EXPECT_TRUE(is_ok(registered_.remove(page(4))));
  EXPECT_TRUE(is_ok(registered_.add({.range = {page(4), 1}})));
}

TEST_F(RegisteredMemoryTest, DeviceAddressIsOnlyThatOfTheStartOfMappedMemory) {
  const VirtualAddress device =
      value_of(registered_.add({.range = {page(0), 3 * kGranule}, .mapped = true}));
  EXPECT_TRUE(is_aligned(device, kGranule));
  EXPECT_EQ(value_of(registered_.device_address(page(0))), device);
  EXPECT_TRUE(fails_with(registered_.device_address(page(1)), ErrorCode::kInvalidParam));
  ASSERT_TRUE(is_ok(registered_.remove(page(0))));
  EXPECT_EQ(value_of(registered_.add({.range = {page(0), 100}})), 0u);
  EXPECT_TRUE(fails_with(registered_.device_address(page(0)), ErrorCode::kInvalidParam));
  EXPECT_EQ(
      value_of(registered_.add({.range = {page(9), 100}, .mapped = true, .same_address = true})),
      page(9));
}

TEST_F(RegisteredMemoryTest, DeviceAddressesComeBackAlsoAfterARefusal) {
  const RegistrationRequest wanted{.range = {page(0), kNormalPage}, .mapped = true};
  const VirtualAddress device = value_of(registered_.add(wanted));
  EXPECT_TRUE(fails_with(registered_.add(wanted), ErrorCode::kAlreadyRegistered));
  ASSERT_TRUE(is_ok(registered_.remove(page(0))));
  EXPECT_EQ(value_of(registered_.add(wanted)), device);
}

TEST_F(RegisteredMemoryTest, PageSharedByNeighboursStaysLockedUntilBothAreGone) {
  if (!can_lock()) GTEST_SKIP() << "the lock limit of this process is too low";
  const uint64_t before = locked_bytes();
  ASSERT_TRUE(is_ok(lock(page(0) + 100, 2 * kNormalPage)));  // pages 0 to 2
  ASSERT_TRUE(is_ok(lock(page(2) + 200, 2 * kNormalPage)));  // pages 2 to 4
  ASSERT_TRUE(is_ok(lock(page(2) + 150, 10)));               // within page 2
  EXPECT_EQ(locked_bytes(), before + 5 * kNormalPage);
  ASSERT_TRUE(is_ok(registered_.remove(page(0) + 100)));
  EXPECT_EQ(locked_bytes(), before + 3 * kNormalPage);
  ASSERT_TRUE(is_ok(registered_.remove(page(2) + 200)));
  EXPECT_EQ(locked_bytes(), before + kNormalPage);
  ASSERT_TRUE(is_ok(registered_.remove(page(2) + 150)));
  EXPECT_EQ(locked_bytes(), before);
}

TEST_F(RegisteredMemoryTest, WholeRangeIsUnlockedAtItsEnd) {
  if (!can_lock()) GTEST_SKIP() << "the lock limit of this process is too low";
  const uint64_t before = locked_bytes();
  for (const uint64_t pages : {1U, 2U, 3U, 10U}) {
    ASSERT_TRUE(is_ok(lock(page(1), pages * kNormalPage)));
    EXPECT_EQ(locked_bytes(), before + pages * kNormalPage);
    ASSERT_TRUE(is_ok(registered_.remove(page(1))));
    EXPECT_EQ(locked_bytes(), before);
  }
}

TEST_F(RegisteredMemoryTest, FailedLockIsNoErrorInBestEffort) {
  const PlannedFault fault(SystemCall::kLock, 1, ENOMEM);
  ASSERT_TRUE(is_ok(lock(page(1), 3 * kNormalPage)));
  EXPECT_TRUE(fault.happened());
  EXPECT_TRUE(is_ok(registered_.remove(page(1))));
}

TEST_F(RegisteredMemoryTest, FailedLockInStrictModeRegistersNothing) {
  settings_.host_lock = HostLock::kStrict;
  {
    const PlannedFault fault(SystemCall::kLock, 1, ENOMEM);
    EXPECT_TRUE(fails_with(lock(page(1), 3 * kNormalPage), ErrorCode::kOutOfMemory));
    EXPECT_TRUE(fault.happened());
  }
  EXPECT_FALSE(registered_.find(page(1)));
  EXPECT_TRUE(fails_with(registered_.remove(page(1)), ErrorCode::kNotRegistered));
}

TEST_F(RegisteredMemoryTest, FailedLockDoesNotUnlockANeighboursPage) {
  if (!can_lock()) GTEST_SKIP() << "the lock limit of this process is too low";
  const uint64_t before = locked_bytes();
  ASSERT_TRUE(is_ok(lock(page(0), kNormalPage + 10)));
  {
    const PlannedFault fault(SystemCall::kLock, 1, ENOMEM);
    ASSERT_TRUE(is_ok(lock(page(1) + 20, kNormalPage)));
  }
  EXPECT_TRUE(is_ok(registered_.remove(page(1) + 20)));
  EXPECT_EQ(locked_bytes(), before + 2 * kNormalPage);
  EXPECT_TRUE(is_ok(registered_.remove(page(0))));
  EXPECT_EQ(locked_bytes(), before);
}

}  // namespace
}  // namespace understudy
