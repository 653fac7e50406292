// SPDX-License-Identifier: Apache-2.0
//
// aclrtPointerGetAttributes on mapped blocks, on parts of them and on memory of no block.
// Covers: PTR-01, PTR-02, PTR-04, PTR-06, PTR-07, PTR-09, PTR-10.
#include <cstdint>
#include <cstring>
#include <memory>

#include "rules/live_mapping.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

using PointerAttributes = DeviceTest;

// Starts from values no answer can have, so that a forgotten field shows.
aclrtPtrAttributes attributes_of(const void* pointer) {
  aclrtPtrAttributes attributes;
  memset(&attributes, 0x5a, sizeof attributes);
  EXPECT_SUCCESS(aclrtPointerGetAttributes(pointer, &attributes));
  return attributes;
}

void expect_device(const void* pointer, uint32_t device, uint32_t page_size) {
  SCOPED_TRACE(pointer);
  const aclrtPtrAttributes attributes = attributes_of(pointer);
  EXPECT_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(attributes.location.id, device);
  EXPECT_EQ(attributes.pageSize, page_size);
}

void expect_unregistered(const void* pointer) {
  SCOPED_TRACE(pointer);
  EXPECT_EQ(attributes_of(pointer).location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
}

aclrtPhysicalMemProp on_device(uint32_t device) {
  return block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, device);
}

TEST_F(PointerAttributes, PTR_01_NullPointerIsRefused) {
  const LiveMapping block;
  aclrtPtrAttributes attributes;
  memset(&attributes, 0x5a, sizeof attributes);
  const aclrtPtrAttributes untouched = attributes;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtPointerGetAttributes(nullptr, &attributes));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtPointerGetAttributes(block.data(), nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtPointerGetAttributes(nullptr, nullptr));
  EXPECT_EQ(memcmp(&attributes, &untouched, sizeof attributes), 0);
}

TEST_F(PointerAttributes, PTR_02_DeviceMemoryNamesItsDeviceAndPageSize) {
  for (const uint32_t device : {0u, 1u, 7u}) {
    SCOPED_TRACE(device);
    const LiveMapping block(kGranule, on_device(device));
    expect_device(block.data(), device, kGranule);
  }
}

TEST(PointerAttributesOfVisibleDevices, PTR_02_DeviceIsNumberedAsThisProcessSeesIt) {
  US_FRESH_PROCESS({"ASCEND_RT_VISIBLE_DEVICES", "3,5"});
  for (const uint32_t device : {0u, 1u}) {
    SCOPED_TRACE(device);
    const LiveMapping block(kGranule, on_device(device));
    expect_device(block.data(), device, kGranule);
  }
}

TEST_F(PointerAttributes, PTR_04_AnyOtherAddressIsUnregistered) {
  const int on_stack = 0;
  static const int in_image = 0;
  const auto on_heap = std::make_unique<char[]>(kPage);
  void* const reserved = reserve(2 * kGranule);

  expect_unregistered(&on_stack);
  expect_unregistered(&in_image);
  expect_unregistered(on_heap.get());
  expect_unregistered(reserved);
  expect_unregistered(at(reserved, kGranule + 1));
  expect_unregistered(address(1));
  expect_unregistered(address(UINT64_MAX));
  expect_unregistered(address(uint64_t{1} << 63));

  EXPECT_SUCCESS(aclrtReleaseMemAddress(reserved));
  expect_unregistered(reserved);
}

TEST_F(PointerAttributes, PTR_04_PartsOfAReservationWithoutMappingAreUnregistered) {
  void* const range = reserve(3 * kGranule);
  const aclrtDrvMemHandle block = create_block(kGranule);
  ASSERT_SUCCESS(aclrtMapMem(at(range, kGranule), kGranule, 0, block, 0));
  expect_unregistered(range);
  expect_unregistered(at(range, kGranule - 1));
  expect_device(at(range, kGranule), 0, kGranule);
  expect_unregistered(at(range, 2 * kGranule));

  EXPECT_SUCCESS(aclrtUnmapMem(at(range, kGranule)));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
}

TEST_F(PointerAttributes, PTR_06_InteriorAddressesAnswerAsTheirBlock) {
  constexpr size_t kSize = 3 * kGranule;
  const LiveMapping device_block(kSize);
  const LiveMapping host_block(kSize, host_property());
  for (const size_t offset : {size_t{0}, size_t{1}, kPage, kGranule - 1, kGranule, kSize - 1}) {
    SCOPED_TRACE(offset);
    expect_device(device_block.at(offset), 0, kGranule);
    const aclrtMemLocation location = attributes_of(host_block.at(offset)).location;
    EXPECT_EQ(location.type, ACL_MEM_LOCATION_TYPE_HOST);
    EXPECT_EQ(location.id, 0u);
  }
}

TEST_F(PointerAttributes, PTR_07_NoContextIsNeeded) {
  const LiveMapping block;
  on_bare_thread([&] {
    const int on_stack = 0;
    expect_device(block.at(kPage), 0, kGranule);
    expect_unregistered(&on_stack);
    aclrtPtrAttributes attributes;
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtPointerGetAttributes(nullptr, &attributes));
  });
}

TEST_F(PointerAttributes, PTR_09_FreedBlockLeavesItsAddressUnregistered) {
  void* const range = reserve(2 * kGranule);
  const aclrtDrvMemHandle block = create_block(kGranule);
  ASSERT_SUCCESS(aclrtMapMem(range, kGranule, 0, block, 0));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
  expect_device(range, 0, kGranule);  // the mapping still keeps the block
  EXPECT_SUCCESS(aclrtUnmapMem(range));
  expect_unregistered(range);
  expect_unregistered(at(range, kGranule - 1));

  const aclrtDrvMemHandle next =
      create_block(2 * kGranule, block_property(ACL_MEM_NORMAL, ACL_MEM_LOCATION_TYPE_DEVICE, 0));
  ASSERT_SUCCESS(aclrtMapMem(range, 2 * kGranule, 0, next, 0));
  expect_device(at(range, kGranule), 0, kPage);
  EXPECT_SUCCESS(aclrtUnmapMem(range));
  EXPECT_SUCCESS(aclrtFreePhysical(next));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range));
  expect_unregistered(range);
}

TEST_F(PointerAttributes, PTR_02_PTR_10_PageSizeIsThatOfTheAttribute) {
  const struct {
    aclrtMemAttr attribute;
    size_t size;
    uint32_t page_size;
  } cases[] = {
      {ACL_MEM_NORMAL, kGranule, 4096},       {ACL_MEM_P2P_NORMAL, kGranule, 4096},
      {ACL_MEM_HUGE, kGranule, 2097152},      {ACL_MEM_P2P_HUGE, kGranule, 2097152},
      {ACL_HBM_MEM_HUGE, kGranule, 2097152},  {ACL_HBM_MEM_NORMAL, kGranule, 2097152},
      {ACL_HBM_MEM_HUGE1G, kGiB, 1073741824}, {ACL_MEM_HUGE1G, kGiB, 1073741824},
  };
  for (const auto& expected : cases) {
    SCOPED_TRACE(expected.attribute);
    const LiveMapping block(expected.size, block_property(expected.attribute));
    expect_device(block.data(), 0, expected.page_size);
    expect_device(block.at(expected.size - 1), 0, expected.page_size);
  }
}

}  // namespace
}  // namespace understudy_test
