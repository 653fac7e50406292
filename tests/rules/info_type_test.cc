// SPDX-License-Identifier: Apache-2.0
//
// aclrtCheckMemType: which addresses are device memory of this process.
// Covers: INFO-14, INFO-15, INFO-16, INFO-17, INFO-18.
#include <cstdint>
#include <memory>
#include <vector>

#include "rules/allocation_objects.h"

namespace understudy_test {
namespace {

using CheckMemoryType = DeviceTest;

constexpr uint32_t kUntouchedResult = 0x5EA7ED;

uint32_t check(std::vector<void*> addresses, uint32_t types = ACL_RT_MEM_TYPE_DEV) {
  uint32_t result = kUntouchedResult;
  EXPECT_SUCCESS(aclrtCheckMemType(addresses.data(), static_cast<uint32_t>(addresses.size()), types,
                                   &result, 0));
  return result;
}

TEST_F(CheckMemoryType, INFO_14_NullListOrResultIsRefused) {
  const DeviceBlock block(kMiB);
  void* list[] = {block.data()};
  uint32_t result = kUntouchedResult;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtCheckMemType(nullptr, 1, ACL_RT_MEM_TYPE_DEV, &result, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtCheckMemType(list, 1, ACL_RT_MEM_TYPE_DEV, nullptr, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtCheckMemType(nullptr, 0, 0, nullptr, 1));
  EXPECT_EQ(result, kUntouchedResult);
}

TEST_F(CheckMemoryType, INFO_15_OddArgumentsAreRefused) {
  const DeviceBlock block(kMiB);
  void* list[] = {block.data()};
  const MemoryFigures before = memory_figures();
  const struct {
    uint32_t size, types, reserve;
  } cases[] = {
      {0, ACL_RT_MEM_TYPE_DEV, 0},
      {1, ACL_RT_MEM_TYPE_DEV, 1},
      {1, ACL_RT_MEM_TYPE_DEV, UINT32_MAX},
      {1, 0, 0},
      {1, 0x1, 0},
      {1, 0x4, 0},
      {1, 0x20, 0},
      {1, ACL_RT_MEM_TYPE_DEV | 0x1, 0},
      {1, ACL_RT_MEM_TYPE_DEV | 0x40, 0},
      {1, 0x80000000, 0},
      {1, UINT32_MAX, 0},
  };
  for (const auto& odd : cases) {
    SCOPED_TRACE(testing::Message()
                 << odd.size << " addresses, types " << odd.types << ", reserve " << odd.reserve);
    uint32_t result = kUntouchedResult;
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtCheckMemType(list, odd.size, odd.types, &result, odd.reserve));
    EXPECT_EQ(result, kUntouchedResult);
  }
  EXPECT_EQ(memory_figures(), before);
}

TEST_F(CheckMemoryType, INFO_16_EveryByteOfDeviceMemoryIsDeviceMemory) {
  const LiveMapping mapping;
  EXPECT_EQ(check({mapping.data(), mapping.at(kPage + 1)}), 1u);
  for (const DeviceMalloc& function : kDeviceMallocs) {
    SCOPED_TRACE(function.name);
    for (const size_t size : {size_t{100}, 3 * kMiB}) {
      const DeviceBlock block(size, ACL_MEM_MALLOC_HUGE_FIRST, function);
      EXPECT_EQ(check({block.data()}), 1u);
      EXPECT_EQ(check({block.data(), block.at(1), block.at(size - 1), mapping.data()}), 1u);
    }
  }
}

TEST_F(CheckMemoryType, INFO_16_OneOtherAddressMakesItZero) {
  const DeviceBlock block(kMiB);
  const auto on_heap = std::make_unique<char[]>(kPage);
  void* const reserved = reserve(kGranule);
  int on_stack = 0;
  void* host = nullptr;
  ASSERT_SUCCESS(aclrtMallocHost(&host, kPage));
  for (void* const other :
       {static_cast<void*>(on_heap.get()), static_cast<void*>(&on_stack), host, reserved,
        address(1), address(UINT64_MAX), static_cast<void*>(nullptr)}) {
    SCOPED_TRACE(other);
    EXPECT_EQ(check({other}), 0u);
    EXPECT_EQ(check({other, block.data()}), 0u);
    EXPECT_EQ(check({block.data(), block.data(), other}), 0u);
  }
  EXPECT_SUCCESS(aclrtFreeHost(host));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(reserved));
}

TEST_F(CheckMemoryType, INFO_16_FreedBlockIsNoMemoryOfAnyType) {
  DeviceBlock block(3 * kMiB);
  void* const data = block.data();
  EXPECT_EQ(check({data}), 1u);
  block.free();
  EXPECT_EQ(check({data}), 0u);
  EXPECT_EQ(check({data}, ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_DVPP | ACL_RT_MEM_TYPE_RSVD), 0u);
}

TEST_F(CheckMemoryType, INFO_16_MemoryOfEveryDeviceCounts) {
  const DeviceBlock on_0(kMiB);
  ASSERT_SUCCESS(aclrtSetDevice(1));
  DeviceBlock on_1(kMiB);
  EXPECT_EQ(check({on_0.data(), on_1.data()}), 1u);
  on_1.free();
  EXPECT_SUCCESS(aclrtResetDeviceForce(1));
}

TEST_F(CheckMemoryType, INFO_16_INFO_17_TypesAreAlternatives) {
  const DeviceBlock block(kMiB);
  constexpr uint32_t kDev = ACL_RT_MEM_TYPE_DEV;
  constexpr uint32_t kDvpp = ACL_RT_MEM_TYPE_DVPP;
  constexpr uint32_t kReserved = ACL_RT_MEM_TYPE_RSVD;
  EXPECT_EQ(check({block.data()}, kDvpp), 0u);
  EXPECT_EQ(check({block.data()}, kReserved), 0u);
  EXPECT_EQ(check({block.data()}, kDvpp | kReserved), 0u);
  EXPECT_EQ(check({block.data()}, kDev | kDvpp), 1u);
  EXPECT_EQ(check({block.data()}, kDev | kReserved), 1u);
  EXPECT_EQ(check({block.data()}, kDev | kDvpp | kReserved), 1u);
}

TEST_F(CheckMemoryType, INFO_16_LongListsAreReadToTheEnd) {
  const DeviceBlock block(kMiB);
  std::vector<void*> addresses;
  for (size_t i = 0; i < 10000; ++i) addresses.push_back(block.at(i));
  EXPECT_EQ(check(addresses), 1u);
  addresses.back() = address(1);
  EXPECT_EQ(check(addresses), 0u);
}

TEST(CheckMemoryTypeOn950, INFO_18_MediaMemoryIsDeviceMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "950"});
  const ContextSession session;
  const DeviceBlock block(kMiB);
  std::vector<uint8_t> heap(1);
  for (const uint32_t type :
       {ACL_RT_MEM_TYPE_DEV, ACL_RT_MEM_TYPE_DVPP, ACL_RT_MEM_TYPE_DVPP | ACL_RT_MEM_TYPE_RSVD}) {
    EXPECT_EQ(check({block.data()}, type), 1u);
    EXPECT_EQ(check({heap.data()}, type), 0u);
  }
  EXPECT_EQ(check({block.data()}, ACL_RT_MEM_TYPE_RSVD), 0u);
}

TEST(CheckMemoryTypeOnIpv350, INFO_14_INFO_15_ProductLacksTheFunction) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "ipv350"}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const DeviceBlock block(kMiB);
  void* list[] = {block.data()};
  uint32_t result = kUntouchedResult;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtCheckMemType(nullptr, 1, ACL_RT_MEM_TYPE_DEV, &result, 0));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtCheckMemType(list, 1, ACL_RT_MEM_TYPE_DEV, &result, 0));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtCheckMemType(list, 0, 0, &result, 1));
  EXPECT_EQ(result, kUntouchedResult);
}

}  // namespace
}  // namespace understudy_test
