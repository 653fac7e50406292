// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemGetAddressRange: from any byte of an allocation to the allocation, and which size it has.
// Covers: RANGE-04, RANGE-05, RANGE-10.
#include <cstddef>
#include <string>

#include "rules/host_objects.h"

namespace understudy_test {
namespace {

class RangeOfAllocation : public HostMemoryTest {};

using Allocate = aclError (*)(void** data, size_t size, aclrtMemMallocPolicy policy);

aclError malloc_with_cfg(void** data, size_t size, aclrtMemMallocPolicy policy) {
  return aclrtMallocWithCfg(data, size, policy, nullptr);
}

aclError malloc_for_task_scheduler(void** data, size_t size, aclrtMemMallocPolicy policy) {
  return aclrtMallocForTaskScheduler(data, size, policy, nullptr);
}

// Which allocation pads: some add 32 bytes besides rounding up to 32, but not on giant pages.
struct PaddedCall {
  const char* name;
  Allocate call;
  bool adds_32;
};

constexpr PaddedCall kCalls[] = {
    {"aclrtMalloc", aclrtMalloc, true},
    {"aclrtMallocCached", aclrtMallocCached, true},
    {"aclrtMallocAlign32", aclrtMallocAlign32, false},
    {"aclrtMallocWithCfg", malloc_with_cfg, false},
    {"aclrtMallocForTaskScheduler", malloc_for_task_scheduler, false},
};

// Either no range at all, or that of some other allocation.
void expect_outside(void* byte, const void* start) {
  void* found = host_sentinel();
  (void)aclrtMemGetAddressRange(byte, &found, nullptr);
  (void)recent_error();
  EXPECT_NE(found, start);
}

void expect_range_of_new_block(const PaddedCall& allocate, size_t size, aclrtMemMallocPolicy policy,
                               size_t padded) {
  SCOPED_TRACE(testing::Message() << allocate.name << "(" << size << ", " << policy << ")");
  void* start = nullptr;
  ASSERT_SUCCESS(allocate.call(&start, size, policy));
  for (const size_t offset : {size_t{0}, size / 2, size - 1, padded - 1}) {
    expect_address_range(at(start, offset), start, padded);
  }
  expect_outside(at(start, padded), start);
  EXPECT_SUCCESS(aclrtFree(start));
  expect_no_address_range(start);
  expect_no_address_range(at(start, size - 1));
}

void expect_ranges(bool product_adds_32) {
  for (const PaddedCall& allocate : kCalls) {
    const size_t spare = product_adds_32 && allocate.adds_32 ? 32 : 0;
    for (const size_t size :
         {size_t{1}, size_t{32}, size_t{33}, size_t{100}, kPage - 32, kPage, kMiB + 1, kGranule}) {
      for (const aclrtMemMallocPolicy policy :
           {ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY}) {
        expect_range_of_new_block(allocate, size, policy, align_up(size, 32) + spare);
      }
    }
  }
}

TEST_F(RangeOfAllocation, RANGE_04_RANGE_10_AnyByteLeadsToStartAndPaddedSize) {
  expect_ranges(true);
}

TEST_F(RangeOfAllocation, RANGE_10_GiantPagesArePaddedTo32Only) {
  for (const PaddedCall& allocate : kCalls) {
    for (const size_t size : {size_t{1}, kGiB - 1, kGiB, kGiB + 33}) {
      expect_range_of_new_block(allocate, size, ACL_MEM_MALLOC_HUGE1G_ONLY, align_up(size, 32));
    }
  }
}

class RangeOfAllocationOnProduct : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Products, RangeOfAllocationOnProduct,
                         testing::Values("a3", "inf", "trn", "200i", "200i-rc"), host_product_name);

TEST_P(RangeOfAllocationOnProduct, RANGE_04_RANGE_10_AnyByteLeadsToStartAndPaddedSize) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const DeviceSession session;
  expect_ranges(true);
}

TEST(RangeOfAllocationOn950, RANGE_10_The950PadsTo32Only) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "950"});
  const DeviceSession session;
  expect_ranges(false);
}

TEST_F(RangeOfAllocation, RANGE_04_NeighboursAreDifferentBlocks) {
  const MallocedMemory first(100);
  const MallocedMemory second(kPage);
  const MallocedMemory third(3 * kMiB);
  for (const MallocedMemory* block : {&first, &second, &third}) {
    expect_address_range(block->at(block->size() - 1), block->data(),
                         align_up(block->size(), 32) + 32);
  }
}

TEST_F(RangeOfAllocation, RANGE_05_AnyByteOfAHostBlockLeadsToStartAndRequestedSize) {
  HostConfiguration module = {host_attribute(ACL_RT_MEM_ATTR_MODULE_ID, 2)};
  HostConfiguration one_address = {host_attribute(ACL_RT_MEM_ATTR_VA_FLAG, 1)};
  for (const size_t size : {size_t{1}, size_t{33}, kPage - 1, kPage, kMiB + 1, 3 * kMiB}) {
    SCOPED_TRACE(size);
    const HostBlock blocks[] = {HostBlock(size), HostBlock(allocate_host_with(size, nullptr), size),
                                HostBlock(allocate_host_with(size, module.get()), size),
                                HostBlock(allocate_host_with(size, one_address.get()), size)};
    for (const HostBlock& block : blocks) {
      for (const size_t offset : {size_t{0}, size / 2, size - 1}) {
        expect_address_range(block.at(offset), block.data(), size);
      }
      expect_outside(block.at(size), block.data());
    }
  }
}

TEST_F(RangeOfAllocation, RANGE_05_FreedHostBlockHasNoRange) {
  for (const size_t size : {size_t{100}, kPage, 3 * kMiB}) {
    SCOPED_TRACE(size);
    const HostBlock neighbour(size);
    HostBlock block(size);
    void* const start = block.give_up();
    EXPECT_SUCCESS(aclrtFreeHost(start));
    expect_no_address_range(start);
    expect_no_address_range(at(start, size - 1));
    expect_address_range(neighbour.data(), neighbour.data(), size);
  }
}

TEST_F(RangeOfAllocation, RANGE_05_RegistrationDoesNotChangeTheRange) {
  const HostBlock block(kGranule);
  void* device_address = nullptr;
  ASSERT_SUCCESS(aclrtHostRegister(block.data(), kPage, ACL_HOST_REGISTER_MAPPED, &device_address));
  expect_address_range(block.at(1), block.data(), kGranule);
  EXPECT_SUCCESS(aclrtHostUnregister(block.data()));
  expect_address_range(block.at(1), block.data(), kGranule);
}

TEST_F(RangeOfAllocation, RANGE_04_RANGE_05_NoContextIsNeeded) {
  const MallocedMemory device_memory(kPage);
  const HostBlock host_block(kPage);
  on_bare_thread([&] {
    expect_address_range(device_memory.at(5), device_memory.data(), kPage + 32);
    expect_address_range(host_block.at(5), host_block.data(), kPage);
  });
}

}  // namespace
}  // namespace understudy_test
