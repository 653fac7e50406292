// SPDX-License-Identifier: Apache-2.0
#include "memory/device_memory.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "unit/memory/memory_rig.h"
#include "unit/platform/planned_fault.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

AllocationRequest request(uint64_t size, PagePolicy policy = PagePolicy::kHugeFirst) {
  return {.device = 0, .asked = size, .usable = size, .policy = policy};
}

class DeviceMemoryTest : public testing::Test {
 protected:
  VirtualAddress allocate(uint64_t size, PagePolicy policy = PagePolicy::kHugeFirst) {
    return value_of(rig_.device_memory.allocate(request(size, policy)));
  }
  void expect_nothing_taken(MemoryRig& rig) {
    for (const PageKind kind : {PageKind::kNormal, PageKind::kHuge}) {
      EXPECT_EQ(rig.charged(0, kind), 0u);
    }
    rig.pools.relieve_pressure();
    EXPECT_EQ(rig.host_bytes_in_use(), 0u);
  }

  MemoryRig rig_;
};

// ---- Policies ----

TEST_F(DeviceMemoryTest, PoliciesChargeThePagesTheyName) {
  struct Case {
    uint64_t size;
    PagePolicy policy;
    uint64_t normal;
    uint64_t huge;
  };
  const Case cases[] = {
      {100, PagePolicy::kHugeFirst, kNormalPage, 0},
      {kMiB, PagePolicy::kHugeFirst, kMiB, 0},
      {kMiB + 1, PagePolicy::kHugeFirst, 0, kHugePage},
      {100, PagePolicy::kPeerHugeFirst, 0, kHugePage},
      {100, PagePolicy::kHugeOnly, 0, kHugePage},
      {kHugePage + 1, PagePolicy::kHugeOnly, 0, 2 * kHugePage},
      {5 * kMiB + 1, PagePolicy::kNormalOnly, 5 * kMiB + kNormalPage, 0},
      {1, PagePolicy::kGiantOnly, 0, kGiantPage},
      {kHugePage - 1, PagePolicy::kBySize, kHugePage, 0},
      {kHugePage, PagePolicy::kBySize, 0, kHugePage},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(std::to_string(one.size) + ", policy " +
                 std::to_string(static_cast<int>(one.policy)));
    const VirtualAddress address = allocate(one.size, one.policy);
    EXPECT_EQ(rig_.charged(0, PageKind::kNormal), one.normal);
    EXPECT_EQ(rig_.charged(0, PageKind::kHuge), one.huge);
    EXPECT_TRUE(is_ok(rig_.device_memory.free(address)));
    EXPECT_EQ(rig_.charged(0, PageKind::kNormal), 0u);
    EXPECT_EQ(rig_.charged(0, PageKind::kHuge), 0u);
  }
}

TEST_F(DeviceMemoryTest, OnlyTheHugeFirstPoliciesFallBackToNormalPages) {
  allocate(kRigHugeMemory, PagePolicy::kHugeOnly);
  for (const PagePolicy policy : {PagePolicy::kHugeFirst, PagePolicy::kPeerHugeFirst}) {
    const VirtualAddress address = allocate(3 * kMiB, policy);
    EXPECT_EQ(rig_.charged(0, PageKind::kNormal), 3 * kMiB);
    EXPECT_TRUE(is_ok(rig_.device_memory.free(address)));
  }
  for (const PagePolicy policy :
       {PagePolicy::kHugeOnly, PagePolicy::kGiantOnly, PagePolicy::kBySize}) {
    EXPECT_TRUE(fails_with(rig_.device_memory.allocate(request(3 * kMiB, policy)),
                           ErrorCode::kOutOfMemory));
  }
  EXPECT_EQ(rig_.charged(0, PageKind::kNormal), 0u);
}

TEST_F(DeviceMemoryTest, GiantSizesAreOutOfMemoryAndNothingElse) {
  for (const uint64_t size : {kRigHugeMemory + 1, 300 * kTiB, UINT64_MAX - 31, UINT64_MAX}) {
    for (int policy = 0; policy <= static_cast<int>(PagePolicy::kBySize); ++policy) {
      EXPECT_TRUE(
          fails_with(rig_.device_memory.allocate(request(size, static_cast<PagePolicy>(policy))),
                     ErrorCode::kOutOfMemory))
          << size << ", policy " << policy;
    }
  }
  expect_nothing_taken(rig_);
}

// ---- What may be used ----

TEST_F(DeviceMemoryTest, BytesBehindTheUsableSizeCannotBeCopied) {
  for (const uint64_t size : {uint64_t{100}, 3 * kMiB + 32, 2 * kGranule, uint64_t{5000}}) {
    SCOPED_TRACE(size);
    const VirtualAddress address = allocate(size, PagePolicy::kHugeOnly);
    EXPECT_TRUE(is_ok(rig_.transfer.set(address, 7, size, 0)));
    EXPECT_EQ(rig_.byte_at(address + size - 1), 7);
    for (const uint64_t offset : {size, size - 1, uint64_t{0}}) {
      EXPECT_TRUE(fails_with(rig_.transfer.set(address + offset, 9, size - offset + 1, 0),
                             ErrorCode::kInvalidParam));
    }
    EXPECT_EQ(rig_.byte_at(address + size - 1), 7);
    EXPECT_EQ(rig_.space.translation().find(address + size - 1)->range.size, size);
    EXPECT_FALSE(rig_.space.translation().find(address + size));
  }
}

TEST_F(DeviceMemoryTest, GiantAllocationEndsAtItsUsableSize) {
  const uint64_t size = kGiB + 5;
  const VirtualAddress address = allocate(size, PagePolicy::kGiantOnly);
  EXPECT_EQ(rig_.charged(), 2 * kGiB);
  rig_.write(address + kGiB, {1, 2, 3, 4, 5});
  EXPECT_EQ(rig_.byte_at(address + size - 1), 5);
  for (const uint64_t offset : {size, kGiB + kGranule, 2 * kGiB - 1}) {
    EXPECT_FALSE(rig_.space.translation().find(address + offset)) << offset;
  }
  EXPECT_TRUE(is_ok(rig_.device_memory.free(address)));
  expect_nothing_taken(rig_);
}

TEST_F(DeviceMemoryTest, ReadOnlyMemoryCanBeReadAndNotWritten) {
  for (const uint64_t size : {uint64_t{100}, 3 * kMiB}) {
    AllocationRequest wanted = request(size);
    wanted.read_only = true;
    const VirtualAddress address = value_of(rig_.device_memory.allocate(wanted));
    EXPECT_TRUE(fails_with(rig_.transfer.set(address, 1, 1, 0), ErrorCode::kNoPermission));
    EXPECT_EQ(rig_.byte_at(address + size - 1), 0);
    EXPECT_TRUE(is_ok(rig_.device_memory.free(address)));
  }
  expect_nothing_taken(rig_);
}

TEST(DeviceMemoryPoison, MemoryThatIsUsedAgainIsPoisoned) {
  Settings settings = rig_settings();
  settings.poison = Poison::kOn;
  MemoryRig rig(settings);
  for (const uint64_t size : {uint64_t{5000}, 3 * kMiB}) {
    for (int round = 0; round < 2; ++round) {
      const VirtualAddress address = value_of(rig.device_memory.allocate(request(size)));
      EXPECT_EQ(rig.read(address, size), std::vector<uint8_t>(size, BackingFile::kPoisonByte));
      EXPECT_TRUE(is_ok(rig.transfer.set(address, 0, size, 0)));
      EXPECT_TRUE(is_ok(rig.device_memory.free(address)));
    }
  }
}

// ---- Frees ----

TEST_F(DeviceMemoryTest, WrongAddressesAreRefusedAndFreeNothing) {
  const VirtualAddress small = allocate(5000);
  const VirtualAddress large = allocate(5 * kMiB);
  const uint64_t normal = rig_.charged(0, PageKind::kNormal);
  const VirtualAddress mapped = rig_.reserve(kGranule);
  rig_.map_fresh(mapped);
  for (const VirtualAddress wrong : {small + 1, small + kNormalPage, large + kGranule, large + 64,
                                     mapped, UINT64_MAX, to_address(&small)}) {
    EXPECT_TRUE(fails_with(rig_.device_memory.free(wrong), ErrorCode::kInvalidParam)) << wrong;
  }
  EXPECT_EQ(rig_.charged(0, PageKind::kNormal), normal);
  for (const VirtualAddress address : {small, large}) {
    EXPECT_TRUE(is_ok(rig_.device_memory.free(address)));
    EXPECT_TRUE(fails_with(rig_.device_memory.free(address), ErrorCode::kInvalidParam));
  }
}

TEST_F(DeviceMemoryTest, InternalMemoryIsNotTheProgramsToFree) {
  const VirtualAddress address = value_of(rig_.device_memory.allocate_internal(0, 64));
  EXPECT_TRUE(fails_with(rig_.device_memory.free(address), ErrorCode::kInvalidParam));
  EXPECT_FALSE(rig_.device_memory.find_block(address).ok());
  prepare_pins();
  rig_.device_memory.free_all(0);
  EXPECT_EQ(rig_.charged(0, PageKind::kNormal), kNormalPage);
  ASSERT_TRUE(is_ok(rig_.transfer.set(address, 1, 64, 0)));
  rig_.device_memory.free_internal(address);
  rig_.device_memory.free_internal(address);  // as of nothing
  expect_nothing_taken(rig_);
}

TEST_F(DeviceMemoryTest, FreeAllEndsTheAllocationsOfOneDevice) {
  const VirtualAddress small = allocate(5000);
  const VirtualAddress large = allocate(5 * kMiB);
  const VirtualAddress giant = allocate(kGiB + 1, PagePolicy::kGiantOnly);
  AllocationRequest elsewhere = request(5000);
  elsewhere.device = 1;
  const VirtualAddress other = value_of(rig_.device_memory.allocate(elsewhere));
  rig_.device_memory.free_all(0);
  expect_nothing_taken(rig_);
  for (const VirtualAddress gone : {small, large, giant})
    EXPECT_FALSE(rig_.space.translation().find(gone));
  EXPECT_EQ(rig_.charged(1, PageKind::kNormal), 2 * kNormalPage);
  EXPECT_TRUE(is_ok(rig_.device_memory.free(other)));
}

TEST_F(DeviceMemoryTest, FreeAllLeavesBytesInUseToTheirReader) {
  for (const uint64_t size : {uint64_t{5000}, 3 * kMiB}) {
    const VirtualAddress address = allocate(size);
    ASSERT_TRUE(is_ok(rig_.transfer.set(address, 0x99, size, 0)));
    HazardPin pin;
    const std::optional<Place> place = rig_.space.translation().locate(address, pin);
    ASSERT_TRUE(place);
    const auto* const bytes =
        static_cast<const uint8_t*>(to_pointer(place->entry.host() + address % kGranule));
    rig_.device_memory.free_all(0);
    EXPECT_EQ(rig_.charged(0, PageKind::kNormal) + rig_.charged(), 0u);
    rig_.pools.relieve_pressure();
    const VirtualAddress heir = allocate(size);
    ASSERT_TRUE(is_ok(rig_.transfer.set(heir, 0x11, size, 0)));
    EXPECT_EQ(bytes[0], 0x99);
    EXPECT_EQ(bytes[size - 1], 0x99);
    EXPECT_TRUE(is_ok(rig_.device_memory.free(heir)));
    pin.clear();
    rig_.space.retired().reclaim();
    expect_nothing_taken(rig_);
  }
}

// ---- Faults of the host ----

TEST(DeviceMemoryFaults, FailedAllocationTakesNothingWhicheverCallFails) {
  for (const SystemCall call :
       {SystemCall::kCreateFile, SystemCall::kResizeFile, SystemCall::kReserveAddresses,
        SystemCall::kMapFile, SystemCall::kCommit}) {
    for (const uint64_t size : {uint64_t{5000}, 3 * kMiB}) {
      for (int n = 1; n <= 4; ++n) {
        SCOPED_TRACE(std::to_string(static_cast<int>(call)) + ", call " + std::to_string(n));
        Settings settings = rig_settings();
        settings.memory = 0;
        settings.commit = Commit::kEager;
        settings.host_access = HostAccess::kAllow;
        MemoryRig rig(settings);
        Result<VirtualAddress> address = [&] {
          const PlannedFault fault(call, n, ENOMEM);
          return rig.device_memory.allocate(request(size));
        }();
        if (address.ok()) {
          EXPECT_TRUE(is_ok(rig.device_memory.free(address.value())));
        }
        EXPECT_EQ(rig.charged(0, PageKind::kNormal) + rig.charged(), 0u);
        rig.pools.relieve_pressure();
        EXPECT_EQ(rig.host_bytes_in_use(), 0u);
        const VirtualAddress again = value_of(rig.device_memory.allocate(request(size)));
        EXPECT_TRUE(is_ok(rig.device_memory.free(again)));
      }
    }
  }
}

}  // namespace
}  // namespace understudy
