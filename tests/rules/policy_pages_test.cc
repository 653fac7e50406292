// SPDX-License-Identifier: Apache-2.0
//
// The base policies: which pages they take, what they do when pages run short, and which of them a
// product knows.
// Covers: POLICY-01, POLICY-02, POLICY-03, POLICY-04, POLICY-05, POLICY-06, POLICY-07, POLICY-08,
// POLICY-09, POLICY-10, POLICY-11, POLICY-12, POLICY-13, POLICY-14, POLICY-15, POLICY-16,
// POLICY-17, POLICY-29.
#include <string>
#include <vector>

#include "rules/allocation_objects.h"

namespace understudy_test {
namespace {

class PolicyPages : public DeviceMallocTest {};
INSTANTIATE_TEST_SUITE_P(, PolicyPages, each_device_malloc(), name_of_malloc);

// For tests that exhaust a pool; 7 GiB of huge pages and 1 GiB of normal ones.
#define US_SMALL_DEVICE() \
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "8G"}, {"UNDERSTUDY_NORMAL_MEMORY", "1G"})

AllocationOutcome normal_for(const DeviceMalloc& function, size_t size) {
  return on_normal_pages(rounded_up(padded_size(function, size), kNormalPage));
}
AllocationOutcome huge_for(const DeviceMalloc& function, size_t size) {
  return on_huge_pages(rounded_up(padded_size(function, size), kHugePage));
}

constexpr size_t kOneNinthTenths = 2040109466;  // 1.9 GiB

TEST_P(PolicyPages, POLICY_01_HugeFirstKeepsSmallBlocksOnNormalPages) {
  for (const size_t size : {size_t{1}, size_t{4096}, 100 * kKiB, kMiB - 64}) {
    EXPECT_EQ(outcome_of(GetParam(), size, ACL_MEM_MALLOC_HUGE_FIRST),
              normal_for(GetParam(), size));
  }
}

TEST_P(PolicyPages, POLICY_02_HugeFirstPutsLargeBlocksOnHugePages) {
  for (const size_t size : {kMiB + 1, 2 * kMiB - 64, 2 * kMiB, 2 * kMiB + 1, kOneNinthTenths}) {
    EXPECT_EQ(outcome_of(GetParam(), size, ACL_MEM_MALLOC_HUGE_FIRST), huge_for(GetParam(), size));
  }
}

TEST_P(PolicyPages, POLICY_03_HugeFirstFallsBackToNormalPages) {
  US_SMALL_DEVICE();
  const PagesLeft left(ACL_HBM_MEM_HUGE, kHugePage);
  EXPECT_EQ(outcome_of(GetParam(), kMiB + 1, ACL_MEM_MALLOC_HUGE_FIRST),
            huge_for(GetParam(), kMiB + 1));
  EXPECT_EQ(outcome_of(GetParam(), 2 * kMiB + 1, ACL_MEM_MALLOC_HUGE_FIRST),
            normal_for(GetParam(), 2 * kMiB + 1));
  const PagesLeft none(ACL_HBM_MEM_HUGE, 0);
  for (const size_t size : {kMiB + 1, 2 * kMiB, 900 * kMiB}) {
    EXPECT_EQ(outcome_of(GetParam(), size, ACL_MEM_MALLOC_HUGE_FIRST),
              normal_for(GetParam(), size));
  }
}

TEST_P(PolicyPages, POLICY_03_BlockOnNormalPagesWorksLikeAnyOther) {
  US_SMALL_DEVICE();
  const PagesLeft none(ACL_HBM_MEM_HUGE, 0);
  const DeviceBlock block(3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST, GetParam());
  copy_in(block.data(), pattern(block.size(), 3));
  EXPECT_TRUE(copy_out(block.data(), block.size()) == pattern(block.size(), 3));
}

TEST_P(PolicyPages, POLICY_04_HugeFirstFailsWhenBothKindsAreShort) {
  US_SMALL_DEVICE();
  const PagesLeft huge_left(ACL_HBM_MEM_HUGE, kHugePage);
  const PagesLeft normal_left(ACL_HBM_MEM_NORMAL, 2 * kMiB);
  // Four MiB are free, but no block mixes pages.
  EXPECT_EQ(outcome_of(GetParam(), 3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST), out_of_memory());
  EXPECT_EQ(outcome_of(GetParam(), 2 * kMiB + 1, ACL_MEM_MALLOC_HUGE_FIRST), out_of_memory());
  EXPECT_EQ(outcome_of(GetParam(), kMiB + 1, ACL_MEM_MALLOC_HUGE_FIRST),
            huge_for(GetParam(), kMiB + 1));
}

TEST_P(PolicyPages, POLICY_05_ThePassedSizeDecidesNotThePaddedOne) {
  for (const size_t size : {kMiB - 64, kMiB - 32, kMiB - 1, kMiB}) {
    EXPECT_EQ(outcome_of(GetParam(), size, ACL_MEM_MALLOC_HUGE_FIRST),
              normal_for(GetParam(), size));
  }
  EXPECT_EQ(outcome_of(GetParam(), kMiB + 1, ACL_MEM_MALLOC_HUGE_FIRST),
            huge_for(GetParam(), kMiB + 1));
}

TEST_P(PolicyPages, POLICY_06_HugeOnlyPutsEverySizeOnHugePages) {
  for (const size_t size : {size_t{1}, size_t{4096}, kMiB, 2 * kMiB - 64, 2 * kMiB, 5 * kMiB}) {
    EXPECT_EQ(outcome_of(GetParam(), size, ACL_MEM_MALLOC_HUGE_ONLY), huge_for(GetParam(), size));
  }
  EXPECT_EQ(outcome_of(GetParam(), 1, ACL_MEM_MALLOC_HUGE_ONLY), on_huge_pages(2 * kMiB));
}

TEST_P(PolicyPages, POLICY_07_HugeOnlyDoesNotFallBack) {
  US_SMALL_DEVICE();
  const PagesLeft none(ACL_HBM_MEM_HUGE, 0);
  ASSERT_EQ(free_bytes(ACL_HBM_MEM_NORMAL), kGiB);
  for (const size_t size : {size_t{1}, kMiB, 3 * kMiB}) {
    EXPECT_EQ(outcome_of(GetParam(), size, ACL_MEM_MALLOC_HUGE_ONLY), out_of_memory());
  }
}

TEST_P(PolicyPages, POLICY_08_NormalOnlyPutsEverySizeOnNormalPages) {
  for (const size_t size : {size_t{1}, size_t{4096}, kMiB + 1, 2 * kMiB, kOneNinthTenths}) {
    EXPECT_EQ(outcome_of(GetParam(), size, ACL_MEM_MALLOC_NORMAL_ONLY),
              normal_for(GetParam(), size));
  }
}

TEST_P(PolicyPages, POLICY_09_NormalOnlyDoesNotFallBack) {
  US_SMALL_DEVICE();
  EXPECT_EQ(outcome_of(GetParam(), kOneNinthTenths, ACL_MEM_MALLOC_NORMAL_ONLY), out_of_memory());
  const PagesLeft left(ACL_HBM_MEM_NORMAL, kNormalPage);
  EXPECT_EQ(outcome_of(GetParam(), 4097, ACL_MEM_MALLOC_NORMAL_ONLY), out_of_memory());
  EXPECT_EQ(outcome_of(GetParam(), 4000, ACL_MEM_MALLOC_NORMAL_ONLY), on_normal_pages(4096));
  const PagesLeft none(ACL_HBM_MEM_NORMAL, 0);
  EXPECT_EQ(outcome_of(GetParam(), 1, ACL_MEM_MALLOC_NORMAL_ONLY), out_of_memory());
}

// The functions that know the policies for copies between devices.
class PeerPolicyPages : public PolicyPages {};
INSTANTIATE_TEST_SUITE_P(, PeerPolicyPages,
                         testing::Values(kMalloc, kMallocAlign32, kMallocWithCfg,
                                         kMallocForTaskScheduler),
                         name_of_malloc);

TEST_P(PeerPolicyPages, POLICY_10_HugeFirstP2pTakesHugePagesOrFallsBack) {
  US_SMALL_DEVICE();
  constexpr aclrtMemMallocPolicy kPolicy = ACL_MEM_MALLOC_HUGE_FIRST_P2P;
  for (const size_t size : {kMiB + 1, 2 * kMiB, 2 * kMiB + 1, kOneNinthTenths}) {
    EXPECT_EQ(outcome_of(GetParam(), size, kPolicy), huge_for(GetParam(), size));
  }
  const PagesLeft none(ACL_HBM_MEM_HUGE, 0);
  EXPECT_EQ(outcome_of(GetParam(), 3 * kMiB, kPolicy), normal_for(GetParam(), 3 * kMiB));
  EXPECT_EQ(outcome_of(GetParam(), kOneNinthTenths, kPolicy), out_of_memory());
}

// The page kind of a small block is left open while both kinds are there.
TEST_P(PeerPolicyPages, POLICY_11_SmallHugeFirstP2pBlockTakesWhicheverPagesAreLeft) {
  US_SMALL_DEVICE();
  constexpr aclrtMemMallocPolicy kPolicy = ACL_MEM_MALLOC_HUGE_FIRST_P2P;
  constexpr size_t kSize = kMiB - 64;
  const AllocationOutcome either = outcome_of(GetParam(), kSize, kPolicy);
  EXPECT_TRUE(either == huge_for(GetParam(), kSize) || either == normal_for(GetParam(), kSize))
      << either;
  {
    const PagesLeft no_huge(ACL_HBM_MEM_HUGE, 0);
    EXPECT_EQ(outcome_of(GetParam(), kSize, kPolicy), normal_for(GetParam(), kSize));
  }
  const PagesLeft no_normal(ACL_HBM_MEM_NORMAL, 0);
  EXPECT_EQ(outcome_of(GetParam(), kSize, kPolicy), huge_for(GetParam(), kSize));
}

TEST_P(PeerPolicyPages, POLICY_12_HugeOnlyP2pTakesHugePagesOnly) {
  US_SMALL_DEVICE();
  constexpr aclrtMemMallocPolicy kPolicy = ACL_MEM_MALLOC_HUGE_ONLY_P2P;
  for (const size_t size : {size_t{1}, kMiB, 2 * kMiB, kOneNinthTenths}) {
    EXPECT_EQ(outcome_of(GetParam(), size, kPolicy), huge_for(GetParam(), size));
  }
  const PagesLeft none(ACL_HBM_MEM_HUGE, 0);
  EXPECT_EQ(outcome_of(GetParam(), 1, kPolicy), out_of_memory());
}

TEST_P(PeerPolicyPages, POLICY_13_NormalOnlyP2pTakesNormalPagesOnly) {
  US_SMALL_DEVICE();
  constexpr aclrtMemMallocPolicy kPolicy = ACL_MEM_MALLOC_NORMAL_ONLY_P2P;
  for (const size_t size : {size_t{1}, kMiB + 1, 2 * kMiB, 900 * kMiB}) {
    EXPECT_EQ(outcome_of(GetParam(), size, kPolicy), normal_for(GetParam(), size));
  }
  EXPECT_EQ(outcome_of(GetParam(), kOneNinthTenths, kPolicy), out_of_memory());
}

TEST_P(PolicyPages, POLICY_14_Huge1gOnlyRoundsUpToGiantPages) {
  constexpr aclrtMemMallocPolicy kPolicy = ACL_MEM_MALLOC_HUGE1G_ONLY;
  EXPECT_EQ(outcome_of(GetParam(), 1, kPolicy), on_giant_pages(kGiB));
  EXPECT_EQ(outcome_of(GetParam(), kGiB, kPolicy), on_giant_pages(kGiB));
  EXPECT_EQ(outcome_of(GetParam(), kGiB + 1, kPolicy), on_giant_pages(2 * kGiB));
  EXPECT_EQ(outcome_of(GetParam(), kOneNinthTenths, kPolicy), on_giant_pages(2 * kGiB));
}

TEST_P(PolicyPages, POLICY_15_Huge1gOnlyDoesNotFallBack) {
  US_SMALL_DEVICE();
  constexpr aclrtMemMallocPolicy kPolicy = ACL_MEM_MALLOC_HUGE1G_ONLY;
  EXPECT_EQ(outcome_of(GetParam(), 7 * kGiB, kPolicy), on_giant_pages(7 * kGiB));
  EXPECT_EQ(outcome_of(GetParam(), 7 * kGiB + 1, kPolicy), out_of_memory());
  const PagesLeft left(ACL_HBM_MEM_HUGE, 2 * kGiB - kHugePage);
  EXPECT_EQ(outcome_of(GetParam(), kOneNinthTenths, kPolicy), out_of_memory());
  EXPECT_EQ(outcome_of(GetParam(), kGiB, kPolicy), on_giant_pages(kGiB));
  const PagesLeft less(ACL_HBM_MEM_HUGE, kGiB - kHugePage);
  EXPECT_EQ(outcome_of(GetParam(), 1, kPolicy), out_of_memory());
}

TEST_P(PeerPolicyPages, POLICY_16_Huge1gOnlyP2pIsLikeHuge1gOnly) {
  US_SMALL_DEVICE();
  constexpr aclrtMemMallocPolicy kPolicy = ACL_MEM_MALLOC_HUGE1G_ONLY_P2P;
  EXPECT_EQ(outcome_of(GetParam(), 1, kPolicy), on_giant_pages(kGiB));
  EXPECT_EQ(outcome_of(GetParam(), kGiB, kPolicy), on_giant_pages(kGiB));
  EXPECT_EQ(outcome_of(GetParam(), kOneNinthTenths, kPolicy), on_giant_pages(2 * kGiB));
  const PagesLeft less(ACL_HBM_MEM_HUGE, kGiB - kHugePage);
  EXPECT_EQ(outcome_of(GetParam(), 1, kPolicy), out_of_memory());
}

class PoliciesOfProduct : public testing::TestWithParam<AllocationProduct> {
 protected:
  // The functions of the product for which these policies have a meaning of their own.
  static std::vector<DeviceMalloc> functions_that_know(aclrtMemMallocPolicy policy) {
    std::vector<DeviceMalloc> known;
    for (const DeviceMalloc& function : mallocs_of(GetParam())) {
      if (knows_policy(function, policy)) known.push_back(function);
    }
    return known;
  }
};
INSTANTIATE_TEST_SUITE_P(, PoliciesOfProduct, each_allocation_product(),
                         name_of_allocation_product);

TEST_P(PoliciesOfProduct, POLICY_17_GiantPoliciesWithoutGiantPagesAreNotSupported) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  for (const aclrtMemMallocPolicy policy :
       {ACL_MEM_MALLOC_HUGE1G_ONLY, ACL_MEM_MALLOC_HUGE1G_ONLY_P2P}) {
    for (const DeviceMalloc& function : functions_that_know(policy)) {
      const AllocationOutcome expected = GetParam().giant_pages
                                             ? on_giant_pages(kGiB)
                                             : refused_with(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
      EXPECT_EQ(outcome_of(function, 3 * kMiB, policy), expected);
      for (const aclrtMemMallocPolicy bit :
           {ACL_MEM_TYPE_LOW_BAND_WIDTH, ACL_MEM_TYPE_HIGH_BAND_WIDTH}) {
        EXPECT_EQ(outcome_of(function, 3 * kMiB, joined({policy, bit})), expected);
      }
    }
  }
}

// A size that no device has does not turn "not supported" into "out of memory", or clients would
// free and retry for ever.
TEST_P(PoliciesOfProduct, POLICY_17_NotSupportedComesBeforeOutOfMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  for (const DeviceMalloc& function : functions_that_know(ACL_MEM_MALLOC_HUGE1G_ONLY)) {
    EXPECT_EQ(
        outcome_of(function, 64 * kGiB, ACL_MEM_MALLOC_HUGE1G_ONLY),
        GetParam().giant_pages ? out_of_memory() : refused_with(ACL_ERROR_RT_FEATURE_NOT_SUPPORT));
  }
}

TEST_P(PoliciesOfProduct, POLICY_17_RetryWithHugeFirstSucceeds) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  void* data = nullptr;
  aclError code = aclrtMalloc(&data, 3 * kMiB, ACL_MEM_MALLOC_HUGE1G_ONLY);
  EXPECT_EQ(code, GetParam().giant_pages ? ACL_SUCCESS : ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  if (code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT) {
    code = aclrtMalloc(&data, 3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST);
  }
  ASSERT_EQ(code, ACL_SUCCESS);
  copy_in(data, pattern(kNormalPage, 5));
  EXPECT_EQ(copy_out(data, kNormalPage), pattern(kNormalPage, 5));
  EXPECT_SUCCESS(aclrtFree(data));
}

TEST_P(PoliciesOfProduct, POLICY_10_POLICY_12_POLICY_13_PeerPoliciesAreThoseOfTheProduct) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const auto expected = [](AllocationOutcome outcome) {
    return GetParam().p2p_policies ? outcome : refused_with(ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  };
  for (const DeviceMalloc& function : functions_that_know(ACL_MEM_MALLOC_HUGE_FIRST_P2P)) {
    EXPECT_EQ(outcome_of(function, 3 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST_P2P),
              expected(on_huge_pages(4 * kMiB)));
    EXPECT_EQ(outcome_of(function, 3 * kMiB, ACL_MEM_MALLOC_HUGE_ONLY_P2P),
              expected(on_huge_pages(4 * kMiB)));
    EXPECT_EQ(outcome_of(function, 1000, ACL_MEM_MALLOC_NORMAL_ONLY_P2P),
              expected(on_normal_pages(4096)));
  }
}

TEST_P(PeerPolicyPages, POLICY_29_P2pBlocksAreOrdinaryDeviceMemory) {
  const DeviceBlock plain(3 * kMiB);
  for (const aclrtMemMallocPolicy policy :
       {ACL_MEM_MALLOC_HUGE_FIRST_P2P, ACL_MEM_MALLOC_HUGE_ONLY_P2P, ACL_MEM_MALLOC_NORMAL_ONLY_P2P,
        ACL_MEM_MALLOC_HUGE1G_ONLY_P2P}) {
    SCOPED_TRACE(policy);
    const MemoryFigures before = memory_figures();
    DeviceBlock block(3 * kMiB, policy, GetParam());
    expect_device_memory(block.data(), 0);
    expect_device_memory(block.at(block.size() - 1), 0);
    copy_in(block.data(), pattern(block.size(), 2));
    EXPECT_TRUE(copy_out(block.data(), block.size()) == pattern(block.size(), 2));
    EXPECT_SUCCESS(aclrtMemcpy(plain.data(), kNormalPage, block.at(17), kNormalPage,
                               ACL_MEMCPY_DEVICE_TO_DEVICE));
    EXPECT_EQ(copy_out(plain.data(), kNormalPage), copy_out(block.at(17), kNormalPage));
    EXPECT_SUCCESS(aclrtMemset(block.data(), block.size(), 3, block.size()));
    EXPECT_EQ(copy_out(block.at(block.size() - 1), 1), std::vector<uint8_t>{3});
    void* base = nullptr;
    EXPECT_SUCCESS(aclrtMemGetAddressRange(block.at(99), &base, nullptr));
    EXPECT_EQ(base, block.data());
    block.free();
    EXPECT_EQ(memory_figures(), before);
  }
}

#undef US_SMALL_DEVICE

}  // namespace
}  // namespace understudy_test
