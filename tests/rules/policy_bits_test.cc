// SPDX-License-Identifier: Apache-2.0
//
// The bandwidth bits, alone and with a base policy, and values that are no policy at all.
// Covers: POLICY-18, POLICY-19, POLICY-20, POLICY-21, POLICY-22, POLICY-23, POLICY-28.
#include <cstdint>
#include <vector>

#include "rules/allocation_objects.h"

namespace understudy_test {
namespace {

class PolicyBits : public DeviceMallocTest {};
INSTANTIATE_TEST_SUITE_P(, PolicyBits, each_device_malloc(), name_of_malloc);

constexpr aclrtMemMallocPolicy kLow = ACL_MEM_TYPE_LOW_BAND_WIDTH;
constexpr aclrtMemMallocPolicy kHigh = ACL_MEM_TYPE_HIGH_BAND_WIDTH;
constexpr aclrtMemMallocPolicy kPlainPolicies[] = {
    ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY};
constexpr size_t kSizes[] = {1, 4096, kMiB - 64, kMiB + 1, 2 * kMiB - 64, 2 * kMiB, 2 * kMiB + 1};

// For every size the two values do the same.
void expect_same_pages(const DeviceMalloc& function, aclrtMemMallocPolicy value,
                       aclrtMemMallocPolicy base) {
  for (const size_t size : kSizes) {
    const AllocationOutcome expected = outcome_of(function, size, base);
    EXPECT_EQ(outcome_of(function, size, value), expected)
        << function.name << " of " << size << " bytes, policy " << static_cast<int64_t>(value)
        << " against " << static_cast<int64_t>(base);
  }
}

TEST_P(PolicyBits, POLICY_18_BandwidthBitAloneIsHugeFirst) {
  for (const aclrtMemMallocPolicy bit : {kLow, kHigh}) {
    SCOPED_TRACE(bit);
    expect_same_pages(GetParam(), bit, ACL_MEM_MALLOC_HUGE_FIRST);
    EXPECT_EQ(outcome_of(GetParam(), 1000, bit), on_normal_pages(4096));
    EXPECT_EQ(outcome_of(GetParam(), kMiB + 1, bit), on_huge_pages(2 * kMiB));
  }
}

TEST_P(PolicyBits, POLICY_18_BandwidthBitAloneFallsBackLikeHugeFirst) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "1G"}, {"UNDERSTUDY_NORMAL_MEMORY", "64M"});
  const PagesLeft none(ACL_HBM_MEM_HUGE, 0);
  for (const aclrtMemMallocPolicy bit : {kLow, kHigh}) {
    expect_same_pages(GetParam(), bit, ACL_MEM_MALLOC_HUGE_FIRST);
    EXPECT_EQ(outcome_of(GetParam(), 3 * kMiB, bit).page_size, kNormalPage);
    EXPECT_EQ(outcome_of(GetParam(), 65 * kMiB, bit), out_of_memory());
  }
}

TEST_P(PolicyBits, POLICY_20_POLICY_21_BandwidthBitKeepsThePageRuleInEveryFunction) {
  for (const aclrtMemMallocPolicy base : kPlainPolicies) {
    for (const aclrtMemMallocPolicy bit : {kLow, kHigh}) {
      expect_same_pages(GetParam(), joined({base, bit}), base);
    }
  }
  // Not through the default policy of some builds, which would put these elsewhere.
  EXPECT_EQ(outcome_of(GetParam(), 1, joined({ACL_MEM_MALLOC_HUGE_ONLY, kHigh})),
            on_huge_pages(2 * kMiB));
  EXPECT_EQ(outcome_of(GetParam(), 3 * kMiB, joined({ACL_MEM_MALLOC_NORMAL_ONLY, kLow})).page_size,
            kNormalPage);
}

TEST_P(PolicyBits, POLICY_20_POLICY_21_ShortPagesAreAnsweredByThePageRule) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "1G"}, {"UNDERSTUDY_NORMAL_MEMORY", "64M"});
  const PagesLeft none(ACL_HBM_MEM_HUGE, 0);
  for (const aclrtMemMallocPolicy bit : {kLow, kHigh}) {
    EXPECT_EQ(outcome_of(GetParam(), 1, joined({ACL_MEM_MALLOC_HUGE_ONLY, bit})), out_of_memory());
    EXPECT_EQ(outcome_of(GetParam(), 65 * kMiB, joined({ACL_MEM_MALLOC_NORMAL_ONLY, bit})),
              out_of_memory());
    for (const aclrtMemMallocPolicy base : kPlainPolicies) {
      expect_same_pages(GetParam(), joined({base, bit}), base);
    }
  }
}

TEST_P(PolicyBits, POLICY_22_BothBitsAndBitsWithOtherPoliciesKeepThePageRule) {
  expect_same_pages(GetParam(), joined({kLow, kHigh}), ACL_MEM_MALLOC_HUGE_FIRST);
  for (const aclrtMemMallocPolicy base : kBasePolicies) {
    if (!knows_policy(GetParam(), base)) continue;
    expect_same_pages(GetParam(), joined({base, kLow}), base);
    expect_same_pages(GetParam(), joined({base, kHigh}), base);
    expect_same_pages(GetParam(), joined({base, kLow, kHigh}), base);
  }
}

TEST_P(PolicyBits, POLICY_28_OtherValuesDecideByTheSizeAlone) {
  for (const int64_t value :
       {8, 9, 15, 16, 99, 0x80, 0x200, 8 | 0x100, 9 | 0x1000, 0x108 | 0x1000}) {
    SCOPED_TRACE(value);
    const auto policy = enum_value<aclrtMemMallocPolicy>(value);
    for (const size_t size : {size_t{1}, kMiB - 64, kMiB + 1, 2 * kMiB - 64, 2 * kMiB - 1}) {
      EXPECT_EQ(outcome_of(GetParam(), size, policy),
                on_normal_pages(rounded_up(padded_size(GetParam(), size), kNormalPage)));
    }
    for (const size_t size : {2 * kMiB, 2 * kMiB + 1, 5 * kMiB}) {
      EXPECT_EQ(outcome_of(GetParam(), size, policy),
                on_huge_pages(rounded_up(padded_size(GetParam(), size), kHugePage)));
    }
  }
}

// ---- Where the memory comes from ----

class PolicyBitsOfProduct : public testing::TestWithParam<AllocationProduct> {};
INSTANTIATE_TEST_SUITE_P(, PolicyBitsOfProduct, each_allocation_product(),
                         name_of_allocation_product);

struct KindFigures {
  size_t hbm;
  size_t ddr;
  friend bool operator==(const KindFigures&, const KindFigures&) = default;
};
KindFigures kind_figures() { return {free_bytes(ACL_HBM_MEM), free_bytes(ACL_DDR_MEM)}; }

// HBM queries are answered from DDR on a device without HBM, so both figures fall there.
TEST_P(PolicyBitsOfProduct, POLICY_19_POLICY_23_TheHardwareDecidesTheMemoryKind) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  const KindFigures before = kind_figures();
  // products.md does not state the kind of IPV350.
  if (GetParam().whole_chapter) {
    EXPECT_EQ(before.ddr, GetParam().ddr ? before.hbm : 0);
  }
  for (const DeviceMalloc& function : mallocs_of(GetParam())) {
    for (const aclrtMemMallocPolicy policy :
         {ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, kLow, kHigh, joined({kLow, kHigh}),
          joined({ACL_MEM_MALLOC_HUGE_ONLY, kLow}), joined({ACL_MEM_MALLOC_HUGE_ONLY, kHigh}),
          enum_value<aclrtMemMallocPolicy>(99)}) {
      SCOPED_TRACE(testing::Message()
                   << function.name << ", policy " << static_cast<int64_t>(policy));
      const DeviceBlock block(3 * kMiB, policy, function);
      const KindFigures after = kind_figures();
      EXPECT_EQ(after.hbm, before.hbm - 4 * kMiB);
      EXPECT_EQ(after.ddr, before.ddr == 0 ? 0 : before.ddr - 4 * kMiB);
    }
  }
  EXPECT_EQ(kind_figures(), before);
}

TEST_P(PolicyBitsOfProduct, POLICY_18_POLICY_20_POLICY_22_PageRuleIsTheSameOnEveryProduct) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  for (const DeviceMalloc& function : mallocs_of(GetParam())) {
    for (const aclrtMemMallocPolicy bits : {kLow, kHigh, joined({kLow, kHigh})}) {
      expect_same_pages(function, bits, ACL_MEM_MALLOC_HUGE_FIRST);
      for (const aclrtMemMallocPolicy base : kPlainPolicies) {
        expect_same_pages(function, joined({base, bits}), base);
      }
    }
  }
}

}  // namespace
}  // namespace understudy_test
