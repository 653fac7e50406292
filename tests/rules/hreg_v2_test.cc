// SPDX-License-Identifier: Apache-2.0
//
// aclrtHostRegisterV2 (mapped, pinned or both) and aclrtHostGetDevicePointer.
// Covers: HREG-05, HREG-06, HREG-10, HREG-11, HREG-12, HREG-13, HREG-14, HREG-15, HREG-16, HREG-17,
// HREG-18, HREG-19, HREG-21, HREG-22.
#include <cstdint>
#include <vector>

#include "rules/host_objects.h"

namespace understudy_test {
namespace {

class HostRegisterV2 : public HostMemoryTest {};

constexpr uint32_t kMapped = ACL_HOST_REG_MAPPED;
constexpr uint32_t kPinned = ACL_HOST_REG_PINNED;
constexpr uint32_t kAccepted[] = {kMapped, kPinned, kMapped | kPinned};

void expect_register_refused(aclError code, void* start, uint64_t size, uint32_t flag) {
  SCOPED_TRACE(flag);
  const MemoryFigures before = memory_figures();
  EXPECT_FAILS(code, aclrtHostRegisterV2(start, size, flag));
  EXPECT_EQ(memory_figures(), before);
}

void expect_not_registered(void* start) {
  EXPECT_FAILS(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, aclrtHostUnregister(start));
}

void expect_no_device_pointer(aclError code, void* start, uint32_t flag = 0) {
  SCOPED_TRACE(start);
  void* device_address = host_sentinel();
  EXPECT_FAILS(code, aclrtHostGetDevicePointer(start, &device_address, flag));
  EXPECT_EQ(device_address, host_sentinel());
}

void* device_pointer(void* start) {
  void* device_address = nullptr;
  EXPECT_SUCCESS(aclrtHostGetDevicePointer(start, &device_address, 0));
  EXPECT_NE(device_address, nullptr);
  return device_address;
}

TEST_F(HostRegisterV2, HREG_10_NullAndSizeZeroAreRefusedFirst) {
  const OwnMemory memory(kPage);
  for (const uint32_t flag : {kMapped, kPinned, 0u, 1u}) {
    expect_register_refused(ACL_ERROR_INVALID_PARAM, nullptr, kPage, flag);
    expect_register_refused(ACL_ERROR_INVALID_PARAM, memory.data(), 0, flag);
  }
  expect_not_registered(memory.data());
}

TEST_F(HostRegisterV2, HREG_11_NoFlagAndUnknownFlagsAreRefused) {
  const OwnMemory memory(kPage);
  for (const uint32_t flag :
       {0u, 1u, 0x10u, 0x100u, 0x08000000u, 0x20000000u, 0x80000000u, UINT32_MAX, kMapped | 1u,
        kPinned | 0x10u, kMapped | kPinned | 0x40000000u}) {
    expect_register_refused(ACL_ERROR_RT_PARAM_INVALID, memory.data(), kPage, flag);
    expect_not_registered(memory.data());
    expect_unknown_place(memory.data());
  }
}

TEST_F(HostRegisterV2, HREG_12_HREG_18_MappedRangeHasADeviceAddress) {
  const OwnMemory memory(kGranule);
  store(memory.data(), pattern(kGranule, 1));
  for (const uint32_t flag : {kMapped, kMapped | kPinned}) {
    SCOPED_TRACE(flag);
    ASSERT_SUCCESS(aclrtHostRegisterV2(memory.data(), kGranule, flag));
    EXPECT_EQ(device_pointer(memory.data()), device_pointer(memory.data()));
    expect_at_host(memory.at(kPage));
    EXPECT_TRUE(holds(memory.data(), pattern(kGranule, 1)));
    EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
    expect_unknown_place(memory.at(kPage));
  }
}

TEST_F(HostRegisterV2, HREG_12_PinnedRangeCountsAsHostMemory) {
  const OwnMemory memory(3 * kPage);
  store(memory.data(), pattern(3 * kPage, 2));
  ASSERT_SUCCESS(aclrtHostRegisterV2(memory.data(), 2 * kPage, kPinned));
  expect_at_host(memory.data());
  expect_at_host(memory.at(2 * kPage - 1));
  expect_unknown_place(memory.at(2 * kPage));
  EXPECT_TRUE(holds(memory.data(), pattern(3 * kPage, 2)));
  EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
  expect_unknown_place(memory.data());
  EXPECT_TRUE(holds(memory.data(), pattern(3 * kPage, 2)));
}

TEST_F(HostRegisterV2, HREG_12_HREG_22_PinnedPagesAreLockedUntilUnregistered) {
  constexpr size_t kSize = 64 * kKiB;
  US_SKIP_UNLESS_LOCKABLE(kSize);
  const OwnMemory memory(kSize);
  for (const uint32_t flag : {kPinned, kMapped | kPinned}) {
    SCOPED_TRACE(flag);
    ASSERT_SUCCESS(aclrtHostRegisterV2(memory.data(), kSize, flag));
    EXPECT_TRUE(is_page_locked(memory.data(), kSize));
    EXPECT_TRUE(is_resident(memory.data(), kSize));
    EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
    EXPECT_FALSE(is_page_locked(memory.data(), kSize));
  }
}

TEST_F(HostRegisterV2, HREG_12_NeighbourStaysLockedWhenARangeIsUnregistered) {
  constexpr size_t kSize = 64 * kKiB;
  US_SKIP_UNLESS_LOCKABLE(2 * kSize);
  const OwnMemory memory(2 * kSize);
  ASSERT_SUCCESS(aclrtHostRegisterV2(memory.data(), kSize - 100, kPinned));
  ASSERT_SUCCESS(aclrtHostRegisterV2(memory.at(kSize), kSize, kPinned));
  EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
  EXPECT_FALSE(is_page_locked(memory.data(), kSize));
  EXPECT_TRUE(is_page_locked(memory.at(kSize), kSize));
  EXPECT_SUCCESS(aclrtHostUnregister(memory.at(kSize)));
}

TEST_F(HostRegisterV2, HREG_05_MappedStartMustBeAWholePage) {
  const OwnMemory memory(2 * kPage);
  for (const size_t offset : {size_t{1}, size_t{64}, kPage - 1}) {
    expect_register_refused(ACL_ERROR_RT_PARAM_INVALID, memory.at(offset), kPage, kMapped);
    expect_not_registered(memory.at(offset));
  }
}

TEST_F(HostRegisterV2, HREG_13_OverlapIsRefusedWhateverTheFlags) {
  const OwnMemory memory(6 * kPage);
  void* const start = memory.at(kPage);
  for (const uint32_t first : kAccepted) {
    SCOPED_TRACE(first);
    ASSERT_SUCCESS(aclrtHostRegisterV2(start, 2 * kPage + 1, first));  // takes three pages
    for (const uint32_t second : kAccepted) {
      for (const size_t page : {size_t{0}, size_t{1}, size_t{2}, size_t{3}}) {
        SCOPED_TRACE(page);
        expect_register_refused(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, memory.at(page * kPage),
                                2 * kPage, second);
      }
    }
    expect_at_host(start);
    expect_unknown_place(memory.data());
    expect_unknown_place(memory.at(4 * kPage));

    ASSERT_SUCCESS(aclrtHostRegisterV2(memory.at(4 * kPage), 2 * kPage, first));
    EXPECT_SUCCESS(aclrtHostUnregister(memory.at(4 * kPage)));
    EXPECT_SUCCESS(aclrtHostUnregister(start));
  }
}

TEST_F(HostRegisterV2, HREG_06_HREG_13_BothRegisterCallsKnowEachOther) {
  const OwnMemory memory(2 * kPage);
  void* device_address = host_sentinel();
  for (const uint32_t flag : kAccepted) {
    SCOPED_TRACE(flag);
    ASSERT_SUCCESS(aclrtHostRegisterV2(memory.data(), 2 * kPage, flag));
    EXPECT_FAILS(
        ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
        aclrtHostRegister(memory.at(kPage), kPage, ACL_HOST_REGISTER_MAPPED, &device_address));
    EXPECT_EQ(device_address, host_sentinel());
    EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
  }
  ASSERT_SUCCESS(
      aclrtHostRegister(memory.data(), 2 * kPage, ACL_HOST_REGISTER_MAPPED, &device_address));
  for (const uint32_t flag : kAccepted) {
    expect_register_refused(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, memory.data(), kPage, flag);
  }
  EXPECT_EQ(device_pointer(memory.data()), device_address);
  EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
}

TEST_F(HostRegisterV2, HREG_14_MemoryOfMallocHostIsNotPinnedAgain) {
  const HostBlock block(kGranule);
  store(block.data(), pattern(kGranule, 3));
  for (const uint32_t flag : {kPinned, kMapped | kPinned}) {
    expect_register_refused(ACL_ERROR_RT_PARAM_INVALID, block.data(), kGranule, flag);
    expect_register_refused(ACL_ERROR_RT_PARAM_INVALID, block.data(), kPage, flag);
    expect_not_registered(block.data());
    expect_no_device_pointer(ACL_ERROR_RT_PARAM_INVALID, block.data());
  }
  expect_at_host(block.data());
  EXPECT_TRUE(holds(block.data(), pattern(kGranule, 3)));
}

TEST_F(HostRegisterV2, HREG_15_MemoryOfMallocHostIsMapped) {
  const HostBlock block(kGranule);
  store(block.data(), pattern(kGranule, 4));
  ASSERT_SUCCESS(aclrtHostRegisterV2(block.data(), kGranule, kMapped));
  device_pointer(block.data());
  expect_at_host(block.data());
  EXPECT_SUCCESS(aclrtHostUnregister(block.data()));
  expect_no_device_pointer(ACL_ERROR_RT_PARAM_INVALID, block.data());
  expect_at_host(block.data());
  EXPECT_TRUE(holds(block.data(), pattern(kGranule, 4)));
}

TEST_F(HostRegisterV2, HREG_12_RefusedRegistrationOfMallocHostKeepsItsLock) {
  US_SKIP_UNLESS_LOCKABLE(2 * kGranule);
  const HostBlock block(kGranule);
  expect_register_refused(ACL_ERROR_RT_PARAM_INVALID, block.data(), kGranule, kPinned);
  ASSERT_SUCCESS(aclrtHostRegisterV2(block.data(), kGranule, kMapped));
  EXPECT_SUCCESS(aclrtHostUnregister(block.data()));
  EXPECT_TRUE(is_page_locked(block.data(), kGranule));
}

TEST_F(HostRegisterV2, HREG_16_NullIsRefused) {
  const OwnMemory memory(kPage);
  ASSERT_SUCCESS(aclrtHostRegisterV2(memory.data(), kPage, kMapped));
  expect_no_device_pointer(ACL_ERROR_INVALID_PARAM, nullptr);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtHostGetDevicePointer(memory.data(), nullptr, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtHostGetDevicePointer(nullptr, nullptr, 1));
  EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
}

TEST_F(HostRegisterV2, HREG_17_FlagIsReserved) {
  const OwnMemory memory(kPage);
  ASSERT_SUCCESS(aclrtHostRegisterV2(memory.data(), kPage, kMapped));
  for (const uint32_t flag : {1u, 2u, kMapped, kPinned, UINT32_MAX}) {
    SCOPED_TRACE(flag);
    expect_no_device_pointer(ACL_ERROR_INVALID_PARAM, memory.data(), flag);
    // Noticed before the address is looked at.
    expect_no_device_pointer(ACL_ERROR_INVALID_PARAM, memory.at(1), flag);
  }
  EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
}

TEST_F(HostRegisterV2, HREG_19_OnlyTheBaseOfAMappedRangeHasADeviceAddress) {
  int on_stack = 0;
  const OwnMemory unregistered(kPage);
  const OwnMemory pinned(kPage);
  const OwnMemory mapped(3 * kPage);
  const HostBlock block(kGranule);
  ASSERT_SUCCESS(aclrtHostRegisterV2(pinned.data(), kPage, kPinned));
  ASSERT_SUCCESS(aclrtHostRegisterV2(mapped.data(), 3 * kPage, kMapped));
  for (void* start : {static_cast<void*>(&on_stack), unregistered.data(), pinned.data(),
                      mapped.at(1), mapped.at(kPage), mapped.at(3 * kPage - 1), block.data()}) {
    expect_no_device_pointer(ACL_ERROR_RT_PARAM_INVALID, start);
  }
  device_pointer(mapped.data());
  EXPECT_SUCCESS(aclrtHostUnregister(mapped.data()));
  EXPECT_SUCCESS(aclrtHostUnregister(pinned.data()));
  expect_no_device_pointer(ACL_ERROR_RT_PARAM_INVALID, mapped.data());
}

TEST_F(HostRegisterV2, HREG_21_HREG_22_UnregisterEndsEveryKindAndMemoryStays) {
  const OwnMemory memory(2 * kPage);
  store(memory.data(), pattern(2 * kPage, 5));
  for (const uint32_t first : kAccepted) {
    for (const uint32_t second : kAccepted) {
      SCOPED_TRACE(testing::Message() << first << " then " << second);
      ASSERT_SUCCESS(aclrtHostRegisterV2(memory.data(), 2 * kPage, first));
      expect_not_registered(memory.at(kPage));
      EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
      expect_not_registered(memory.data());
      ASSERT_SUCCESS(aclrtHostRegisterV2(memory.data(), 2 * kPage, second));
      EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
    }
  }
  EXPECT_TRUE(cpu_can_write(memory.data()));
  EXPECT_TRUE(holds(memory.data(), pattern(2 * kPage, 5)));
}

}  // namespace
}  // namespace understudy_test
