// SPDX-License-Identifier: Apache-2.0
//
// Products without virtual memory management: what its calls answer there.
// Covers: VGEN-03, VGEN-04.
#include "rules/vmm_objects.h"

namespace understudy_test::vmm {
namespace {

// Arguments as a caller on any other product could pass them.
struct PlausibleArguments {
  void* const range = address(kWindowStart + 3 * kGiB);
  const aclrtDrvMemHandle handle = address(0x1001);
  aclrtPhysicalMemProp property = block_property();
  aclrtMemLocation location = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  aclrtMemAccessDesc grant = {};

  PlausibleArguments() {
    grant.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
    grant.location = location;
  }
};

void expect_objects_unsupported() {
  const PlausibleArguments with;
  expect_block_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kHugePage, with.property);
  expect_block_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kHugePage,
                       block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST));
  expect_reserve_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kHugePage, 0, nullptr, 0);
  expect_reserve_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kGiB, 0, with.range, 1);
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtFreePhysical(with.handle));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtReleaseMemAddress(with.range));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMapMem(with.range, kHugePage, 0, with.handle, 0));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemMapNoAccess(with.range, kHugePage, 0, with.handle, 0));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtUnmapMem(with.range));
}

void expect_queries_unsupported() {
  PlausibleArguments with;
  size_t granularity = kUntouchedSize;
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemGetAllocationGranularity(
                   &with.property, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity));
  EXPECT_EQ(granularity, kUntouchedSize);

  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemSetAccess(with.range, kHugePage, &with.grant, 1));
  uint64_t flag = kUntouchedSize;
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemGetAccess(with.range, &with.location, &flag));
  EXPECT_EQ(flag, kUntouchedSize);

  aclrtDrvMemHandle handle = untouched();
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemRetainAllocationHandle(with.range, &handle));
  EXPECT_EQ(handle, untouched());

  const aclrtPhysicalMemProp before = with.property;
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemGetAllocationPropertiesFromHandle(with.handle, &with.property));
  EXPECT_TRUE(same_property(with.property, before));
}

// The product is asked before the inner layer looks at its arguments.
void expect_product_checked_before_inner_arguments() {
  PlausibleArguments with;
  with.property.reserve = 1;
  with.property.location.id = 1000;
  size_t granularity = kUntouchedSize;
  expect_block_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kHugePage + 1, with.property);
  expect_reserve_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kHugePage, 1, address(1), 0);
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMapMem(address(1), kHugePage + 1, 1, with.handle, 0));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemGetAllocationGranularity(
                   &with.property, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtMemSetAccess(nullptr, 0, nullptr, 0));
}

void expect_outer_checks_first() {
  PlausibleArguments with;
  size_t granularity = 0;
  uint64_t flag = 0;
  aclrtDrvMemHandle handle = nullptr;
  void* range = nullptr;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocPhysical(nullptr, kHugePage, &with.property, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocPhysical(&handle, 0, &with.property, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtFreePhysical(nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtReserveMemAddress(&range, kHugePage, 0, nullptr, 2));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtReleaseMemAddress(nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMapMem(nullptr, kHugePage, 0, with.handle, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemMapNoAccess(with.range, 0, 0, with.handle, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtUnmapMem(nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemGetAllocationGranularity(nullptr, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM,
                                                &granularity));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemGetAccess(nullptr, &with.location, &flag));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemRetainAllocationHandle(nullptr, &handle));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemGetAllocationPropertiesFromHandle(nullptr, &with.property));
}

class WithoutVirtualMemory : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Products, WithoutVirtualMemory, testing::Values("ipv350", "200i-rc"),
                         [](const auto& item) { return test_name_on(item.param); });

TEST_P(WithoutVirtualMemory, VGEN_03_VGEN_04_CallsAreNotSupported) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  expect_objects_unsupported();
  expect_queries_unsupported();
}

TEST_P(WithoutVirtualMemory, VGEN_03_VGEN_04_CallsAreNotSupportedOnASetDeviceEither) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const DeviceBinding binding;
  const FiguresStay watch;
  expect_objects_unsupported();
  expect_queries_unsupported();
}

TEST_P(WithoutVirtualMemory, VGEN_03_VGEN_04_OuterChecksComeFirstAndInnerOnesAfter) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  expect_outer_checks_first();
  expect_product_checked_before_inner_arguments();
}

// Calls that VGEN-04 does not name but that IPV350 lacks as well.
TEST(WithoutVirtualMemoryAtAll, VGEN_03_TheRemainingCallsAreNotSupportedOnIpv350) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "ipv350"});
  const PlausibleArguments with;
  void* base = untouched();
  size_t size = kUntouchedSize;
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtMemGetAddressRange(with.range, &base, &size));
  EXPECT_EQ(size, kUntouchedSize);
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtReserveMemAddressNoUCMemory(&base, kGiB, 0, address(kNoUcWindowStart), 0));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemMapSelectedLink(with.range, kHugePage, at(with.range, kGiB), 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemGetAddressRange(nullptr, &base, &size));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemMapSelectedLink(nullptr, kHugePage, with.range, 0));
}

}  // namespace
}  // namespace understudy_test::vmm
