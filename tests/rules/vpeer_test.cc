// SPDX-License-Identifier: Apache-2.0
//
// The calls that memory sharing leans on: device count, process id, peer access by product.
// Covers: VPEER-01, VPEER-02, VPEER-03, VPEER-04, VPEER-05, VPEER-06, VPEER-07, VPEER-08, VPEER-09,
// VPEER-10.
#include <utility>

#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

class SharingSupport : public NoDeviceTest {};

int32_t access_status(int32_t device, int32_t peer) {
  int32_t status = -1;
  EXPECT_SUCCESS(aclrtDevicePeerAccessStatus(device, peer, &status));
  return status;
}

TEST_F(SharingSupport, VPEER_01_NullIsRefused) {
  on_new_thread([] {
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDeviceCount(nullptr));
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceGetBareTgid(nullptr));
  });
}

TEST_F(SharingSupport, VPEER_02_TheIdIsTheOutermostOneVisible) {
  int32_t id = -1;
  EXPECT_SUCCESS(aclrtDeviceGetBareTgid(&id));
  EXPECT_EQ(id, outermost_visible_id());
  EXPECT_GT(id, 0);
}

TEST_F(SharingSupport, VPEER_03_EqualDevicesAreRefused) {
  ASSERT_SUCCESS(aclrtSetDevice(2));
  int32_t possible = 77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceCanAccessPeer(&possible, 2, 2));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceEnablePeerAccess(2, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceDisablePeerAccess(2));
  EXPECT_EQ(possible, 77);
}

TEST_F(SharingSupport, VPEER_04_PossibleOrNotAndNullIsAnInnerError) {
  int32_t possible = -1;
  EXPECT_SUCCESS(aclrtDeviceCanAccessPeer(&possible, 0, 1));
  EXPECT_TRUE(possible == 0 || possible == 1) << possible;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtDeviceCanAccessPeer(nullptr, 0, 1));
}

TEST_F(SharingSupport, VPEER_05_FlagsAreAnUnsupportedFeature) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_FAILS(ACL_ERROR_FEATURE_UNSUPPORTED, aclrtDeviceEnablePeerAccess(1, 1));
  EXPECT_EQ(access_status(0, 1), 0);
}

TEST_F(SharingSupport, VPEER_06_AccessBelongsToTheDeviceNotToTheContext) {
  const aclrtContext first = create_context(0);
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  EXPECT_EQ(access_status(0, 1), 1);
  EXPECT_EQ(access_status(1, 0), 0);
  EXPECT_SUCCESS(aclrtDestroyContext(first));
  EXPECT_EQ(access_status(0, 1), 1);

  const aclrtContext second = create_context(0);
  EXPECT_SUCCESS(aclrtDeviceDisablePeerAccess(1));
  EXPECT_EQ(access_status(0, 1), 0);
  EXPECT_SUCCESS(aclrtDestroyContext(second));
}

TEST_F(SharingSupport, VPEER_07_EnableAndDisableNeedAContext) {
  on_new_thread([] {
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtDeviceEnablePeerAccess(1, 0));
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtDeviceDisablePeerAccess(1));
  });
}

TEST_F(SharingSupport, VPEER_08_StatusFollowsEnableAndDisable) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(access_status(0, 1), 0);
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  EXPECT_EQ(access_status(0, 1), 1);
  on_new_thread([] { EXPECT_EQ(access_status(0, 1), 1); });
  EXPECT_SUCCESS(aclrtDeviceDisablePeerAccess(1));
  EXPECT_EQ(access_status(0, 1), 0);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDevicePeerAccessStatus(0, 1, nullptr));
}

TEST_F(SharingSupport, VPEER_09_UnknownDevicesHaveNoAccess) {
  for (int32_t id : bad_device_ids()) {
    SCOPED_TRACE(id);
    for (const auto& [device, peer] : {std::pair{0, id}, std::pair{id, 0}}) {
      int32_t status = 77;
      const aclError code = aclrtDevicePeerAccessStatus(device, peer, &status);
      EXPECT_TRUE((code == ACL_SUCCESS && status == 0) ||
                  (code == ACL_ERROR_RT_PARAM_INVALID && status == 77))
          << code << ", status " << status;
    }
  }
}

// A missing function says so before it looks for a context, and after the outer checks.
void expect_no_peer_access() {
  int32_t possible = 77;
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtDeviceCanAccessPeer(&possible, 0, 1));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtDeviceEnablePeerAccess(1, 0));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtDeviceDisablePeerAccess(1));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceCanAccessPeer(&possible, 0, 0));
  EXPECT_FAILS(ACL_ERROR_FEATURE_UNSUPPORTED, aclrtDeviceEnablePeerAccess(1, 1));
  EXPECT_EQ(possible, 77);
}

TEST(SharingSupportOfProduct, VPEER_10_Atlas200iHasNoPeerAccess) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "200i"});
  expect_no_peer_access();
}

TEST(SharingSupportOfProduct, VPEER_10_Atlas200iInTheRcFormHasNoPeerAccess) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "200i-rc"});
  expect_no_peer_access();
}

TEST(SharingSupportOfProduct, VPEER_10_Ipv350HasNoPeerAccess) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "ipv350"});
  expect_no_peer_access();
  // products.md, section 2: it lacks these as well.
  int32_t value = 77;
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtDevicePeerAccessStatus(0, 1, &value));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtDeviceGetBareTgid(&value));
  EXPECT_EQ(value, 77);
}

}  // namespace
}  // namespace understudy_test::runtime
