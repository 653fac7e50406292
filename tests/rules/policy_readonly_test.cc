// SPDX-License-Identifier: Apache-2.0
//
// Blocks with ACL_MEM_ACCESS_USER_SPACE_READONLY: their pages, and that nothing writes them.
// Covers: POLICY-17, POLICY-24, POLICY-25, POLICY-26, POLICY-27.
#include <cstdint>
#include <vector>

#include "rules/allocation_objects.h"

namespace understudy_test {
namespace {

class PolicyReadonly : public DeviceMallocTest {};
INSTANTIATE_TEST_SUITE_P(, PolicyReadonly, each_device_malloc(), name_of_malloc);

constexpr aclrtMemMallocPolicy kReadonly = ACL_MEM_ACCESS_USER_SPACE_READONLY;
constexpr aclrtMemMallocPolicy kLow = ACL_MEM_TYPE_LOW_BAND_WIDTH;
constexpr aclrtMemMallocPolicy kHigh = ACL_MEM_TYPE_HIGH_BAND_WIDTH;

// Every call that writes is refused at the start, inside and at the end, and all bytes stay.
void expect_only_readable(const DeviceBlock& block) {
  const std::vector<uint8_t> bytes = copy_out(block.data(), block.size());
  const DeviceBlock writable(block.size());
  const MemoryFigures before = memory_figures();
  const std::vector<uint8_t> source = pattern(block.size(), 77);
  copy_in(writable.data(), source);

  EXPECT_FAILS(ACL_ERROR_RT_NO_PERMISSION, aclrtMemcpy(block.data(), block.size(), source.data(),
                                                       source.size(), ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_FAILS(ACL_ERROR_RT_NO_PERMISSION, aclrtMemcpy(block.data(), block.size(), source.data(),
                                                       source.size(), ACL_MEMCPY_DEFAULT));
  EXPECT_FAILS(ACL_ERROR_RT_NO_PERMISSION,
               aclrtMemcpy(block.data(), block.size(), writable.data(), writable.size(),
                           ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_FAILS(ACL_ERROR_RT_NO_PERMISSION,
               aclrtMemset(block.data(), block.size(), 0x5a, block.size()));
  for (const size_t offset : {size_t{0}, block.size() / 2, block.size() - 1}) {
    SCOPED_TRACE(offset);
    EXPECT_FAILS(ACL_ERROR_RT_NO_PERMISSION, aclrtMemset(block.at(offset), 1, 0x5a, 1));
    EXPECT_FAILS(ACL_ERROR_RT_NO_PERMISSION,
                 aclrtMemcpy(block.at(offset), 1, source.data(), 1, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  EXPECT_TRUE(copy_out(block.data(), block.size()) == bytes) << "a refused write left bytes";

  EXPECT_SUCCESS(aclrtMemcpy(writable.data(), writable.size(), block.data(), block.size(),
                             ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_TRUE(copy_out(writable.data(), writable.size()) == bytes);
  EXPECT_EQ(memory_figures(), before);
}

TEST_P(PolicyReadonly, POLICY_24_AloneItTakesThePagesOfHugeFirst) {
  for (const size_t size : {size_t{1}, size_t{4096}, kMiB - 64, kMiB + 1, 2 * kMiB, 5 * kMiB}) {
    EXPECT_EQ(outcome_of(GetParam(), size, kReadonly),
              outcome_of(GetParam(), size, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  EXPECT_EQ(outcome_of(GetParam(), 1000, kReadonly), on_normal_pages(4096));
  EXPECT_EQ(outcome_of(GetParam(), kMiB + 1, kReadonly), on_huge_pages(2 * kMiB));
}

TEST_P(PolicyReadonly, POLICY_24_POLICY_26_AloneItCanOnlyBeRead) {
  for (const size_t size : {size_t{1}, size_t{5000}, kMiB + 1}) {
    SCOPED_TRACE(size);
    expect_only_readable(DeviceBlock(size, kReadonly, GetParam()));
  }
}

TEST_P(PolicyReadonly, POLICY_25_WithABasePolicyItTakesThePagesOfThatPolicy) {
  for (const aclrtMemMallocPolicy base : kBasePolicies) {
    if (!knows_policy(GetParam(), base)) continue;
    for (const size_t size : {size_t{1}, kMiB + 1, 2 * kMiB}) {
      const AllocationOutcome expected = outcome_of(GetParam(), size, base);
      EXPECT_EQ(outcome_of(GetParam(), size, joined({base, kReadonly})), expected);
      EXPECT_EQ(outcome_of(GetParam(), size, joined({base, kReadonly, kLow})), expected);
      EXPECT_EQ(outcome_of(GetParam(), size, joined({base, kReadonly, kHigh})), expected);
      EXPECT_EQ(outcome_of(GetParam(), size, joined({base, kReadonly, kLow, kHigh})), expected);
    }
  }
  EXPECT_EQ(outcome_of(GetParam(), 1, joined({ACL_MEM_MALLOC_HUGE_ONLY, kReadonly, kHigh})),
            on_huge_pages(2 * kMiB));
}

TEST_P(PolicyReadonly, POLICY_25_POLICY_26_WithABasePolicyItCanOnlyBeRead) {
  for (const aclrtMemMallocPolicy base : kBasePolicies) {
    if (!knows_policy(GetParam(), base)) continue;
    for (const aclrtMemMallocPolicy value :
         {joined({base, kReadonly}), joined({base, kReadonly, kLow}),
          joined({base, kReadonly, kHigh})}) {
      SCOPED_TRACE(static_cast<int64_t>(value));
      expect_only_readable(DeviceBlock(5000, value, GetParam()));
    }
  }
}

TEST_P(PolicyReadonly, POLICY_26_NeighboursStayWritable) {
  const DeviceBlock before(1000, ACL_MEM_MALLOC_HUGE_FIRST, GetParam());
  const DeviceBlock readonly(1000, kReadonly, GetParam());
  const DeviceBlock after(1000, ACL_MEM_MALLOC_HUGE_FIRST, GetParam());
  for (const DeviceBlock* const neighbour : {&before, &after}) {
    copy_in(neighbour->data(), pattern(1000, 4));
    EXPECT_EQ(copy_out(neighbour->data(), 1000), pattern(1000, 4));
  }
  expect_only_readable(readonly);
}

// A copy that starts in a writable block does not reach into a read-only one.
TEST_P(PolicyReadonly, POLICY_26_CopyThatLeavesItsBlockWritesNoReadonlyByte) {
  const DeviceBlock readonly(5000, kReadonly, GetParam());
  const DeviceBlock writable(5000, ACL_MEM_MALLOC_HUGE_FIRST, GetParam());
  const std::vector<uint8_t> bytes = copy_out(readonly.data(), 5000);
  const std::vector<uint8_t> source = pattern(4 * kMiB, 5);
  EXPECT_NE(aclrtMemcpy(writable.data(), source.size(), source.data(), source.size(),
                        ACL_MEMCPY_HOST_TO_DEVICE),
            ACL_SUCCESS);
  EXPECT_EQ(copy_out(readonly.data(), 5000), bytes);
}

TEST_P(PolicyReadonly, POLICY_26_CpuCannotReachItByDefault) {
  const DeviceBlock block(5000, kReadonly, GetParam());
  EXPECT_FALSE(cpu_can_read(block.data()));
  EXPECT_FALSE(cpu_can_write(block.data()));
}

TEST_P(PolicyReadonly, POLICY_26_CpuMayReadButNotStoreWhereHostAccessIsAllowed) {
  US_FRESH_PROCESS({"UNDERSTUDY_HOST_ACCESS", "allow"});
  for (const size_t size : {size_t{5000}, 3 * kMiB}) {
    SCOPED_TRACE(size);
    const DeviceBlock readonly(size, kReadonly, GetParam());
    const DeviceBlock ordinary(size, ACL_MEM_MALLOC_HUGE_FIRST, GetParam());
    EXPECT_TRUE(cpu_can_write(ordinary.data()));
    for (const size_t offset : {size_t{0}, size / 2, size - 1}) {
      EXPECT_TRUE(cpu_can_read(readonly.at(offset))) << offset;
      EXPECT_FALSE(cpu_can_write(readonly.at(offset))) << offset;
    }
    expect_only_readable(readonly);
  }
}

TEST_P(PolicyReadonly, POLICY_27_ItIsFreedLikeAnyOther) {
  const MemoryFigures before = memory_figures();
  for (const auto& free_call : {aclrtFree, aclrtFreeWithDevSync}) {
    for (const size_t size : {size_t{5000}, 3 * kMiB}) {
      DeviceBlock block(size, kReadonly, GetParam());
      void* const data = block.release();
      EXPECT_SUCCESS(free_call(data));
      expect_no_known_memory(data);
      EXPECT_EQ(memory_figures(), before);
    }
  }
}

// Pages and addresses of a freed block lose the protection.
TEST_P(PolicyReadonly, POLICY_27_WhatComesAfterItIsWritable) {
  for (const size_t size : {size_t{5000}, 3 * kMiB}) {
    for (int round = 0; round < 4; ++round) {
      DeviceBlock(size, kReadonly, GetParam()).free();
      const DeviceBlock next(size, ACL_MEM_MALLOC_HUGE_FIRST, GetParam());
      copy_in(next.data(), pattern(size, 6));
      EXPECT_TRUE(copy_out(next.data(), size) == pattern(size, 6));
    }
  }
}

// products.md does not state it for IPV350.
std::vector<AllocationProduct> products_with_readonly_blocks() {
  std::vector<AllocationProduct> products;
  for (const AllocationProduct& product : kAllocationProducts) {
    if (product.whole_chapter) products.push_back(product);
  }
  return products;
}

class ReadonlyOnProduct : public testing::TestWithParam<AllocationProduct> {};
INSTANTIATE_TEST_SUITE_P(, ReadonlyOnProduct, testing::ValuesIn(products_with_readonly_blocks()),
                         name_of_allocation_product);

TEST_P(ReadonlyOnProduct, POLICY_24_POLICY_25_POLICY_26_POLICY_27_EveryProductKeepsItReadonly) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const MemoryFigures before = memory_figures();
  for (const DeviceMalloc& function : kDeviceMallocs) {
    for (const aclrtMemMallocPolicy policy :
         {kReadonly, joined({ACL_MEM_MALLOC_NORMAL_ONLY, kReadonly, kLow})}) {
      SCOPED_TRACE(function.name);
      EXPECT_EQ(outcome_of(function, 5000, policy), on_normal_pages(8192));
      expect_only_readable(DeviceBlock(5000, policy, function));
    }
  }
  EXPECT_EQ(memory_figures(), before);
}

// Host and device memory are one there, and still this part of it is protected.
TEST(ReadonlyOn200iRc, POLICY_26_CpuMayReadButNotStore) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "200i-rc"}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const DeviceBlock readonly(5000, kReadonly);
  const DeviceBlock ordinary(5000);
  EXPECT_TRUE(cpu_can_read(readonly.data()));
  EXPECT_FALSE(cpu_can_write(readonly.data()));
  EXPECT_TRUE(cpu_can_read(ordinary.data()));
  EXPECT_TRUE(cpu_can_write(ordinary.data()));
}

TEST(ReadonlyWithoutGiantPages, POLICY_17_POLICY_25_TheBasePolicyDecidesWhatIsSupported) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "inf"}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  for (const aclrtMemMallocPolicy base :
       {ACL_MEM_MALLOC_HUGE1G_ONLY, ACL_MEM_MALLOC_HUGE1G_ONLY_P2P}) {
    for (const DeviceMalloc& function : {kMalloc, kMallocAlign32, kMallocWithCfg}) {
      EXPECT_EQ(outcome_of(function, 64, joined({base, kReadonly})),
                refused_with(ACL_ERROR_RT_FEATURE_NOT_SUPPORT));
      EXPECT_EQ(outcome_of(function, 64, joined({base, kReadonly, kHigh})),
                refused_with(ACL_ERROR_RT_FEATURE_NOT_SUPPORT));
    }
  }
}

}  // namespace
}  // namespace understudy_test
