// SPDX-License-Identifier: Apache-2.0
//
// aclrtPointerGetAttributes on allocated and registered memory, and aclrtMemP2PMap.
// Covers: PTR-02, PTR-03, PTR-06, PTR-07, PTR-09, PTR-10, PTR-11, PTR-12.
#include <cstdint>
#include <string>
#include <vector>

#include "rules/host_objects.h"

namespace understudy_test {
namespace {

class PointerOfAllocation : public HostMemoryTest {};

constexpr uint32_t kNormalPage = 4096;
constexpr uint32_t kHugePage = 2097152;
constexpr uint32_t kGiantPage = 1073741824;

TEST_F(PointerOfAllocation, PTR_02_PTR_10_DeviceMemoryNamesThePagesItWasTakenFrom) {
  const struct {
    aclrtMemMallocPolicy policy;
    size_t size;
    uint32_t page_size;
  } cases[] = {
      {ACL_MEM_MALLOC_HUGE_FIRST, 100, kNormalPage},
      {ACL_MEM_MALLOC_HUGE_FIRST, kMiB - 64, kNormalPage},
      {ACL_MEM_MALLOC_HUGE_FIRST, kMiB + 1, kHugePage},
      {ACL_MEM_MALLOC_HUGE_ONLY, 1, kHugePage},
      {ACL_MEM_MALLOC_HUGE_ONLY, 5 * kMiB, kHugePage},
      {ACL_MEM_MALLOC_NORMAL_ONLY, 1, kNormalPage},
      {ACL_MEM_MALLOC_NORMAL_ONLY, 5 * kMiB, kNormalPage},
      {ACL_MEM_MALLOC_HUGE_ONLY_P2P, kMiB, kHugePage},
      {ACL_MEM_MALLOC_NORMAL_ONLY_P2P, 5 * kMiB, kNormalPage},
      {ACL_MEM_MALLOC_HUGE1G_ONLY, 1, kGiantPage},
      {ACL_MEM_MALLOC_HUGE1G_ONLY, kGiB + 1, kGiantPage},
      {ACL_MEM_MALLOC_HUGE1G_ONLY_P2P, kGiB, kGiantPage},
  };
  for (const auto& expected : cases) {
    SCOPED_TRACE(testing::Message() << expected.policy << ", " << expected.size << " bytes");
    const MallocedMemory block(expected.size, expected.policy);
    expect_at_device(block.data(), 0, expected.page_size);
    expect_at_device(block.at(expected.size - 1), 0, expected.page_size);
  }
}

TEST_F(PointerOfAllocation, PTR_02_DeviceMemoryNamesTheDeviceOfItsContext) {
  const MallocedMemory on_0(kPage);
  ASSERT_SUCCESS(aclrtSetDevice(3));
  {
    const MallocedMemory on_3(kPage);
    expect_at_device(on_3.data(), 3, kNormalPage);
    expect_at_device(on_0.data(), 0, kNormalPage);
  }
  EXPECT_SUCCESS(aclrtResetDeviceForce(3));
  ASSERT_SUCCESS(aclrtSetDevice(0));
}

TEST_F(PointerOfAllocation, PTR_03_PTR_06_HostBlockIsHostMemoryInEveryByte) {
  HostConfiguration module = {host_attribute(ACL_RT_MEM_ATTR_MODULE_ID, 4)};
  for (const size_t size : {size_t{1}, size_t{100}, kPage + 1, 3 * kMiB}) {
    SCOPED_TRACE(size);
    const HostBlock plain(size);
    const HostBlock configured(allocate_host_with(size, module.get()), size);
    for (const HostBlock* block : {&plain, &configured}) {
      for (const size_t offset : {size_t{0}, size / 3, size / 2, size - 1}) {
        expect_at_host(block->at(offset));
      }
    }
  }
}

TEST_F(PointerOfAllocation, PTR_03_HostBlockHasId0WhateverTheDevice) {
  ASSERT_SUCCESS(aclrtSetDevice(5));
  {
    const HostBlock block(kPage);
    const OwnMemory memory(kPage);
    void* device_address = nullptr;
    ASSERT_SUCCESS(
        aclrtHostRegister(memory.data(), kPage, ACL_HOST_REGISTER_MAPPED, &device_address));
    expect_at_host(block.data());
    expect_at_host(memory.data());
    EXPECT_SUCCESS(aclrtHostUnregister(memory.data()));
  }
  EXPECT_SUCCESS(aclrtResetDeviceForce(5));
  ASSERT_SUCCESS(aclrtSetDevice(0));
}

TEST_F(PointerOfAllocation, PTR_03_PTR_06_RegisteredMemoryIsHostMemoryInItsPages) {
  const OwnMemory memory(5 * kPage);
  expect_unknown_place(memory.at(kPage));
  void* device_address = nullptr;
  ASSERT_SUCCESS(aclrtHostRegister(memory.at(kPage), 2 * kPage + 1, ACL_HOST_REGISTER_MAPPED,
                                   &device_address));
  for (const size_t offset : {kPage, kPage + 1, 2 * kPage, 3 * kPage - 1, 3 * kPage}) {
    expect_at_host(memory.at(offset));
  }
  expect_unknown_place(memory.at(kPage - 1));
  expect_unknown_place(memory.at(4 * kPage));
  EXPECT_SUCCESS(aclrtHostUnregister(memory.at(kPage)));
}

TEST_F(PointerOfAllocation, PTR_06_InteriorOfDeviceMemoryAnswersAsItsBlock) {
  const MallocedMemory normal(5 * kMiB, ACL_MEM_MALLOC_NORMAL_ONLY);
  const MallocedMemory huge(5 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY);
  for (const size_t offset : {size_t{0}, size_t{1}, kPage, kGranule - 1, kGranule, 5 * kMiB - 1}) {
    expect_at_device(normal.at(offset), 0, kNormalPage);
    expect_at_device(huge.at(offset), 0, kHugePage);
  }
}

TEST_F(PointerOfAllocation, PTR_07_ThreadWithoutContextIsAnswered) {
  const HostBlock host_block(kPage);
  const MallocedMemory device_memory(kPage);
  on_bare_thread([&] {
    expect_at_host(host_block.at(1));
    expect_at_device(device_memory.at(1), 0, kNormalPage);
  });
}

TEST_F(PointerOfAllocation, PTR_09_FreedMemoryIsUnregistered) {
  for (const size_t size : {size_t{100}, 2 * kPage, 3 * kMiB}) {
    SCOPED_TRACE(size);
    // Neighbours of the same pool must not answer for it.
    const MallocedMemory device_neighbour(size);
    const HostBlock host_neighbour(size);
    MallocedMemory device_memory(size);
    HostBlock host_block(size);
    void* const device_start = device_memory.give_up();
    void* const host_start = host_block.give_up();
    EXPECT_SUCCESS(aclrtFree(device_start));
    EXPECT_SUCCESS(aclrtFreeHost(host_start));
    for (const size_t offset : {size_t{0}, size - 1}) {
      expect_unknown_place(at(device_start, offset));
      expect_unknown_place(at(host_start, offset));
    }
    expect_at_host(host_neighbour.data());
  }
}

TEST_F(PointerOfAllocation, PTR_09_MemoryEndedByAResetIsUnregistered) {
  MallocedMemory device_memory(kGranule);
  void* const start = device_memory.give_up();
  ASSERT_SUCCESS(aclrtResetDeviceForce(0));
  expect_unknown_place(start);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  expect_unknown_place(start);
}

// ---- aclrtMemP2PMap ----

class PeerMap : public HostMemoryTest {
 protected:
  // What is enabled belongs to the device and may outlive its reset: leave nothing behind.
  void TearDown() override {
    (void)aclrtDeviceDisablePeerAccess(1);
    HostMemoryTest::TearDown();
  }
};

TEST_F(PeerMap, PTR_11_OuterChecks) {
  const MallocedMemory block(kGranule, ACL_MEM_MALLOC_HUGE_ONLY_P2P);
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemP2PMap(nullptr, kGranule, 1, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemP2PMap(block.data(), 0, 1, 0));
  for (const uint64_t flags : {uint64_t{1}, uint64_t{1} << 32, UINT64_MAX}) {
    SCOPED_TRACE(flags);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemP2PMap(block.data(), kGranule, 1, flags));
  }
  on_bare_thread(
      [] { EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemP2PMap(nullptr, kGranule, 1, 0)); });
}

TEST_F(PeerMap, PTR_12_NeedsEnabledPeerAccess) {
  const MallocedMemory block(kGranule, ACL_MEM_MALLOC_HUGE_ONLY_P2P);
  copy_in(block.data(), pattern(kPage, 1));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemP2PMap(block.data(), kGranule, 1, 0));
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemP2PMap(block.data(), kGranule, 2, 0));
  EXPECT_SUCCESS(aclrtMemP2PMap(block.data(), kGranule, 1, 0));
  EXPECT_SUCCESS(aclrtDeviceDisablePeerAccess(1));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemP2PMap(block.data(), kGranule, 1, 0));
  EXPECT_TRUE(copy_out(block.data(), kPage) == pattern(kPage, 1));
}

TEST_F(PeerMap, PTR_12_UnknownDeviceIsRefused) {
  const MallocedMemory block(kGranule);
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  for (const int32_t device : {-1, 8, INT32_MAX, INT32_MIN}) {
    SCOPED_TRACE(device);
    EXPECT_NE(aclrtMemP2PMap(block.data(), kGranule, device, 0), ACL_SUCCESS);
  }
}

TEST_F(PeerMap, PTR_12_RangeMustBeDeviceMemory) {
  int on_stack = 0;
  const HostBlock host_block(kGranule);
  const MallocedMemory block(kGranule);
  void* const reserved = reserve(kGranule);
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  for (void* start : {static_cast<void*>(&on_stack), host_block.data(), reserved, address(1)}) {
    SCOPED_TRACE(start);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemP2PMap(start, kPage, 1, 0));
  }
  for (const size_t size : {kGiB, SIZE_MAX}) {
    SCOPED_TRACE(size);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemP2PMap(block.data(), size, 1, 0));
  }
  EXPECT_SUCCESS(aclrtReleaseMemAddress(reserved));
}

TEST_F(PeerMap, PTR_12_MappedBlockIsCopiedBothWaysAndKeepsItsFigures) {
  const MallocedMemory block(kGranule, ACL_MEM_MALLOC_HUGE_FIRST_P2P);
  copy_in(block.data(), pattern(kGranule, 2));
  const MemoryFigures before = memory_figures();
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  EXPECT_SUCCESS(aclrtMemP2PMap(block.data(), kGranule, 1, 0));
  EXPECT_SUCCESS(aclrtMemP2PMap(block.data(), kGranule, 1, 0));  // once more changes nothing
  EXPECT_EQ(memory_figures(), before);
  expect_at_device(block.data(), 0, kHugePage);

  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(0, 0));
  {
    const MallocedMemory on_peer(kGranule);
    EXPECT_SUCCESS(
        aclrtMemcpy(on_peer.data(), kGranule, block.data(), kGranule, ACL_MEMCPY_DEVICE_TO_DEVICE));
    EXPECT_TRUE(copy_out(on_peer.data(), kGranule) == pattern(kGranule, 2));
    copy_in(on_peer.data(), pattern(kGranule, 3));
    EXPECT_SUCCESS(
        aclrtMemcpy(block.data(), kGranule, on_peer.data(), kGranule, ACL_MEMCPY_DEVICE_TO_DEVICE));
  }
  EXPECT_SUCCESS(aclrtDeviceDisablePeerAccess(0));
  EXPECT_SUCCESS(aclrtResetDeviceForce(1));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_TRUE(copy_out(block.data(), kGranule) == pattern(kGranule, 3));
}

TEST_F(PeerMap, PTR_12_PartOfABlockAndMappedVirtualMemoryAreMappedToo) {
  const MallocedMemory block(3 * kMiB);
  const LiveMapping mapping;
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  EXPECT_SUCCESS(aclrtMemP2PMap(block.at(kPage), kMiB, 1, 0));
  EXPECT_SUCCESS(aclrtMemP2PMap(mapping.data(), kGranule, 1, 0));
}

class PeerMapMissing : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Products, PeerMapMissing, testing::Values("200i", "200i-rc", "ipv350"),
                         host_product_name);

TEST_P(PeerMapMissing, PTR_11_NotSupportedAfterTheOuterChecks) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemP2PMap(nullptr, kPage, 1, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemP2PMap(address(kGiB), 0, 1, 0));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtMemP2PMap(address(kGiB), kPage, 1, 0));
}

}  // namespace
}  // namespace understudy_test
