// SPDX-License-Identifier: Apache-2.0
//
// Mappings that the CPU may look through: the backing file is really mapped at the address.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>

#include "memory/address_space.h"
#include "platform/address_window.h"
#include "unit/memory/memory_rig.h"
#include "unit/platform/mapped_bytes.h"
#include "unit/platform/planned_fault.h"

namespace understudy {
namespace {

using platform::cpu_can_read;
using platform::PlannedFault;
using platform::SystemCall;

class HostMappingTest : public testing::Test {
 protected:
  HostMappingTest() : base_(rig_.reserve(2 * kGranule)) {
    EXPECT_TRUE(platform::is_mapped(base_)) << "the host does not hold the range";
  }
  static uint8_t* bytes_at(VirtualAddress address) {
    return static_cast<uint8_t*>(to_pointer(address));
  }
  Result<void> grant_host() {
    const Location host[] = {kHostLocation};
    return rig_.space.mapper().grant({base_, kGranule}, host);
  }

  MemoryRig rig_;
  const VirtualAddress base_;
};

TEST_F(HostMappingTest, DeviceMemoryIsNotReadableByTheCpuUntilTheHostIsGranted) {
  rig_.map_fresh(base_);
  ASSERT_TRUE(is_ok(rig_.transfer.set(base_, 0x31, 16, 0)));
  EXPECT_FALSE(cpu_can_read(base_));
  ASSERT_TRUE(is_ok(grant_host()));
  EXPECT_TRUE(value_of(rig_.space.mapper().has_access(base_, kHostLocation)));
  EXPECT_EQ(bytes_at(base_)[15], 0x31);
  bytes_at(base_)[3] = 0x32;
  EXPECT_EQ(rig_.byte_at(base_ + 3), 0x32);
}

TEST_F(HostMappingTest, GrantGetsAllMemoryFirstSoThatNoTouchRaisesASignal) {
  rig_.map_fresh(base_);
  EXPECT_EQ(rig_.host_bytes(), 0u);
  ASSERT_TRUE(is_ok(grant_host()));
  EXPECT_EQ(rig_.host_bytes(), kGranule);
  EXPECT_EQ(bytes_at(base_)[kGranule - 1], 0);
}

TEST_F(HostMappingTest, UnmapTakesTheHostMappingAwayAndKeepsTheAddresses) {
  rig_.map_fresh(base_);
  ASSERT_TRUE(is_ok(grant_host()));
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
  EXPECT_FALSE(cpu_can_read(base_));
  EXPECT_TRUE(platform::is_mapped(base_));
  ASSERT_TRUE(is_ok(rig_.space.reservations().release(base_)));
  EXPECT_FALSE(platform::is_mapped(base_));
}

TEST_F(HostMappingTest, NextMappingAtTheAddressHasNoHostMappingOfItsOwn) {
  rig_.map_fresh(base_);
  ASSERT_TRUE(is_ok(grant_host()));
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
  rig_.map_fresh(base_);
  EXPECT_FALSE(cpu_can_read(base_));
  EXPECT_FALSE(value_of(rig_.space.mapper().has_access(base_, kHostLocation)));
}

TEST_F(HostMappingTest, HostMemoryAndPermittedHostAccessHaveAHostMappingFromTheStart) {
  rig_.map_fresh(base_, kGranule, kHostLocation);
  EXPECT_TRUE(cpu_can_read(base_));

  Settings settings = rig_settings();
  settings.host_access = HostAccess::kAllow;
  MemoryRig allowing(settings);
  const VirtualAddress base = allowing.reserve(2 * kGranule);
  allowing.map_fresh(base);
  EXPECT_TRUE(cpu_can_read(base));
  ASSERT_TRUE(
      is_ok(allowing.map(base + kGranule, kGranule, allowing.create(), InitialAccess::kNone)));
  EXPECT_FALSE(cpu_can_read(base + kGranule));
}

TEST_F(HostMappingTest, HostMappingThatCannotBeCoveredIsClosedAndCountsAsUnmapped) {
  rig_.map_fresh(base_);
  ASSERT_TRUE(is_ok(rig_.transfer.set(base_, 0x44, 8, 0)));
  ASSERT_TRUE(is_ok(grant_host()));
  {
    const PlannedFault fault(SystemCall::kUnmap, 1, ENOMEM);
    EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
    EXPECT_TRUE(fault.happened());
  }
  EXPECT_FALSE(cpu_can_read(base_));
  EXPECT_FALSE(rig_.space.translation().find(base_));
  EXPECT_EQ(rig_.charged(), 0u);
  EXPECT_EQ(rig_.host_bytes_in_use(), 0u);

  // The next mapping there shows its own bytes, to the device and to the CPU.
  rig_.map_fresh(base_);
  EXPECT_FALSE(cpu_can_read(base_));
  EXPECT_EQ(rig_.byte_at(base_), 0);
  ASSERT_TRUE(is_ok(rig_.transfer.set(base_, 0x45, 8, 0)));
  ASSERT_TRUE(is_ok(grant_host()));
  EXPECT_EQ(bytes_at(base_)[0], 0x45);
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
  ASSERT_TRUE(is_ok(rig_.space.reservations().release(base_)));
  EXPECT_FALSE(platform::is_mapped(base_));
}

TEST_F(HostMappingTest, GrantWithoutAHostMappingGrantsNothing) {
  rig_.map_fresh(base_);
  {
    const PlannedFault fault(SystemCall::kMapFile, 1, ENOMEM);
    EXPECT_TRUE(fails_with(grant_host(), ErrorCode::kOutOfResources));
  }
  EXPECT_FALSE(value_of(rig_.space.mapper().has_access(base_, kHostLocation)));
  EXPECT_FALSE(cpu_can_read(base_));
  {
    // Memory for the host mapping is there by now, so that nothing is committed any more.
    const PlannedFault fault(SystemCall::kCommit, 1, ENOSPC);
    EXPECT_TRUE(is_ok(grant_host()));
    EXPECT_FALSE(fault.happened());
  }
  EXPECT_TRUE(cpu_can_read(base_));
}

TEST_F(HostMappingTest, MappingWithoutItsHostMappingIsNoMapping) {
  const BlockHandle host = rig_.create(kGranule, kHostLocation);
  ASSERT_TRUE(is_ok(rig_.map(base_, kGranule, host)));
  const uint32_t number = rig_.space.translation().look_up(base_).mapping();
  ASSERT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
  {
    const PlannedFault fault(SystemCall::kMapFile, 1, ENOMEM);
    EXPECT_TRUE(fails_with(rig_.map(base_, kGranule, host), ErrorCode::kOutOfResources));
  }
  EXPECT_FALSE(rig_.space.translation().find(base_));
  EXPECT_FALSE(cpu_can_read(base_));
  EXPECT_TRUE(is_ok(rig_.map(base_, kGranule, host)));
  // Its number was not lost either.
  EXPECT_EQ(rig_.space.translation().look_up(base_).mapping(), number);
  EXPECT_TRUE(is_ok(rig_.physical.free(host)));
  EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(base_)));
  EXPECT_EQ(rig_.host_bytes_in_use(), 0u);
}

TEST_F(HostMappingTest, HostMappingThatIsLargerThanTheBudgetIsNone) {
  const VirtualAddress base = rig_.reserve(kRigBudget + kGranule);
  const BlockHandle host = rig_.create(kRigBudget + kGranule, kHostLocation);
  EXPECT_TRUE(fails_with(rig_.map(base, kRigBudget + kGranule, host), ErrorCode::kOutOfMemory));
  EXPECT_FALSE(rig_.space.translation().find(base));
  EXPECT_FALSE(cpu_can_read(base));
  EXPECT_TRUE(is_ok(rig_.physical.free(host)));
  EXPECT_TRUE(is_ok(rig_.space.reservations().release(base)));
  EXPECT_EQ(rig_.host_bytes_in_use(), 0u);
}

TEST_F(HostMappingTest, AddressThatTheHostCannotMapIsNotSupportedForTheCpu) {
  const VirtualAddress far =
      value_of(rig_.space.reservations().reserve_uncached(2 * kGranule, 200 * kTiB));
  rig_.map_fresh(far);
  ASSERT_TRUE(is_ok(rig_.transfer.set(far, 0x51, 8, 0)));
  EXPECT_EQ(rig_.byte_at(far + 7), 0x51);
  const Location host[] = {kHostLocation};
  EXPECT_TRUE(
      fails_with(rig_.space.mapper().grant({far, kGranule}, host), ErrorCode::kNotSupported));
  EXPECT_TRUE(is_ok(rig_.space.mapper().unmap(far)));
  EXPECT_TRUE(is_ok(rig_.space.reservations().release(far)));
}

}  // namespace
}  // namespace understudy
