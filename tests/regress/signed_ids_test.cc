// SPDX-License-Identifier: Apache-2.0
//
// A fault once found in the texts of errors: an id of -1 was printed as 4294967295.
#include <string>

#include "support/rule_test.h"

namespace understudy_test {
namespace {

using SignedIds = DeviceTest;

// The text of the last failure names -1.
void expect_signed(aclError code) {
  EXPECT_NE(code, ACL_SUCCESS);
  const std::string text = recent_error();
  EXPECT_NE(text.find("-1"), std::string::npos) << text;
  EXPECT_EQ(text.find("4294967295"), std::string::npos) << text;
}

TEST_F(SignedIds, LocationsOfBlocks) {
  constexpr auto kNobody = static_cast<uint32_t>(-1);
  for (const aclrtMemLocationType type : {ACL_MEM_LOCATION_TYPE_DEVICE, ACL_MEM_LOCATION_TYPE_HOST,
                                          ACL_MEM_LOCATION_TYPE_HOST_NUMA}) {
    SCOPED_TRACE(type);
    const aclrtPhysicalMemProp property = block_property(ACL_MEM_HUGE, type, kNobody);
    aclrtDrvMemHandle handle = nullptr;
    expect_signed(aclrtMallocPhysical(&handle, 2 * kMiB, &property, 0));
  }
}

TEST_F(SignedIds, LocationsOfGrants) {
  const aclrtDrvMemHandle block = create_block(2 * kMiB);
  void* const start = reserve(2 * kMiB);
  ASSERT_SUCCESS(aclrtMapMem(start, 2 * kMiB, 0, block, 0));
  for (const aclrtMemLocationType type :
       {ACL_MEM_LOCATION_TYPE_DEVICE, ACL_MEM_LOCATION_TYPE_HOST}) {
    SCOPED_TRACE(type);
    aclrtMemAccessDesc grant = {};
    grant.flags = ACL_RT_MEM_ACCESS_FLAGS_READWRITE;
    grant.location = {static_cast<uint32_t>(-1), type};
    expect_signed(aclrtMemSetAccess(start, 2 * kMiB, &grant, 1));
  }
  EXPECT_SUCCESS(aclrtUnmapMem(start));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(start));
  EXPECT_SUCCESS(aclrtFreePhysical(block));
}

TEST_F(SignedIds, Devices) {
  expect_signed(aclrtSetDevice(-1));
  int64_t value = 0;
  expect_signed(
      aclrtGetDeviceInfo(static_cast<uint32_t>(-1), ACL_DEV_ATTR_AICORE_CORE_NUM, &value));
}

TEST_F(SignedIds, Options) {
  int64_t value = 0;
  expect_signed(aclrtGetSysParamOpt(enum_value<aclSysParamOpt>(-1), &value));
}

}  // namespace
}  // namespace understudy_test
