// SPDX-License-Identifier: Apache-2.0
//
// What the five device malloc functions refuse, and that a refusal leaves everything as it was.
// Covers: MALLOC-01, MALLOC-02, MALLOC-03, MALLOC-04, MALLOC-06.
#include <cstdint>

#include "rules/allocation_objects.h"

namespace understudy_test {
namespace {

class MallocArguments : public DeviceMallocTest {};
INSTANTIATE_TEST_SUITE_P(, MallocArguments, each_device_malloc(), name_of_malloc);

TEST_P(MallocArguments, MALLOC_01_NullOutputIsRefused) {
  const Bystander bystander;
  for (const size_t size : {size_t{0}, size_t{64}, kMiB, size_t{SIZE_MAX}}) {
    SCOPED_TRACE(size);
    (void)recent_error();
    EXPECT_TRUE(fails_with(ACL_ERROR_INVALID_PARAM,
                           GetParam().call(nullptr, size, ACL_MEM_MALLOC_HUGE_FIRST),
                           GetParam().name));
  }
  bystander.expect_unchanged();
}

TEST_P(MallocArguments, MALLOC_02_SizeZeroIsRefused) {
  const Bystander bystander;
  for (const aclrtMemMallocPolicy policy : kBasePolicies) {
    expect_malloc_refused(ACL_ERROR_INVALID_PARAM, GetParam(), 0, policy);
  }
  expect_malloc_refused(ACL_ERROR_INVALID_PARAM, GetParam(), 0,
                        enum_value<aclrtMemMallocPolicy>(99));
  bystander.expect_unchanged();
}

TEST_P(MallocArguments, MALLOC_03_SizeWhoseRoundingOverflowsIsRefused) {
  const Bystander bystander;
  for (const size_t distance : {size_t{0}, size_t{1}, size_t{15}, size_t{30}}) {
    for (const aclrtMemMallocPolicy policy : kBasePolicies) {
      expect_malloc_refused(ACL_ERROR_INVALID_PARAM, GetParam(), SIZE_MAX - distance, policy);
    }
  }
  bystander.expect_unchanged();
}

// Far too much is a lack of memory as long as the padded size can be written down, even where
// rounding it up to pages cannot.
TEST_P(MallocArguments, MALLOC_03_MALLOC_06_OtherAbsurdSizesAreALackOfMemory) {
  const Bystander bystander;
  for (const size_t size : {SIZE_MAX - 63, SIZE_MAX - kMiB, SIZE_MAX / 2, kTiB, size_t{1} << 63}) {
    for (const aclrtMemMallocPolicy policy :
         {ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY,
          ACL_MEM_MALLOC_HUGE1G_ONLY}) {
      expect_malloc_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, GetParam(), size, policy);
    }
  }
  bystander.expect_unchanged();
}

TEST_P(MallocArguments, MALLOC_04_ThreadWithoutContextIsRefused) {
  const Bystander bystander;
  on_bare_thread([] {
    for (const size_t size : {size_t{1}, 4 * kMiB}) {
      void* data = untouched_address();
      (void)recent_error();
      EXPECT_TRUE(fails_with(ACL_ERROR_RT_CONTEXT_NULL,
                             GetParam().call(&data, size, ACL_MEM_MALLOC_HUGE_FIRST),
                             GetParam().name));
      EXPECT_EQ(data, untouched_address());
    }
  });
  bystander.expect_unchanged();
}

TEST_P(MallocArguments, MALLOC_06_MoreThanThePolicysPagesIsRefused) {
  const Bystander bystander;
  const size_t huge = free_bytes(ACL_HBM_MEM_HUGE);
  const size_t normal = free_bytes(ACL_HBM_MEM_NORMAL);
  const size_t giant = free_bytes(ACL_HBM_MEM_HUGE1G);
  constexpr aclError kShort = ACL_ERROR_RT_MEMORY_ALLOCATION;
  expect_malloc_refused(kShort, GetParam(), huge + 1, ACL_MEM_MALLOC_HUGE_ONLY);
  expect_malloc_refused(kShort, GetParam(), normal + 1, ACL_MEM_MALLOC_NORMAL_ONLY);
  expect_malloc_refused(kShort, GetParam(), giant + 1, ACL_MEM_MALLOC_HUGE1G_ONLY);
  // A block does not mix pages: both pools together are enough, neither alone is.
  expect_malloc_refused(kShort, GetParam(), huge + 1, ACL_MEM_MALLOC_HUGE_FIRST);
  bystander.expect_unchanged();
}

TEST_P(MallocArguments, MALLOC_06_WhatIsLeftCanStillBeHad) {
  US_FRESH_PROCESS({"UNDERSTUDY_MEMORY", "1G"}, {"UNDERSTUDY_NORMAL_MEMORY", "64M"});
  const PagesLeft left(ACL_HBM_MEM_HUGE, 3 * kHugePage);
  expect_malloc_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, GetParam(), 3 * kHugePage + 1,
                        ACL_MEM_MALLOC_HUGE_ONLY);
  // 32 bytes below the border, so that the padded size fits with and without spare bytes.
  const DeviceBlock rest(3 * kHugePage - 32, ACL_MEM_MALLOC_HUGE_ONLY, GetParam());
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), 0u);
  expect_malloc_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, GetParam(), 1, ACL_MEM_MALLOC_HUGE_ONLY);
  copy_in(rest.at(3 * kHugePage - 64), pattern(32));
  EXPECT_EQ(copy_out(rest.at(3 * kHugePage - 64), 32), pattern(32));
}

// What IPV350 lacks is said after the outer checks and before all others.
TEST(MallocArgumentsOfIpv350, MALLOC_01_MALLOC_02_OnlyTwoFunctionsAreThere) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "ipv350"}, {"UNDERSTUDY_MEMORY", "8G"});
  const ContextSession session;
  for (const DeviceMalloc& function : kDeviceMallocs) {
    expect_malloc_refused(ACL_ERROR_INVALID_PARAM, function, 0);
    EXPECT_EQ(function.call(nullptr, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
  }
  for (const DeviceMalloc& function : {kMallocCached, kMallocWithCfg, kMallocForTaskScheduler}) {
    expect_malloc_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, function, 64);
    expect_malloc_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, function, 64 * kGiB);
  }
}

TEST(MallocArgumentsOfIpv350, MALLOC_04_SettingTheDeviceGivesNoContext) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "ipv350"}, {"UNDERSTUDY_MEMORY", "8G"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  void* data = untouched_address();
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtMalloc(&data, 64, ACL_MEM_MALLOC_HUGE_FIRST));
  EXPECT_EQ(data, untouched_address());
}

}  // namespace
}  // namespace understudy_test
