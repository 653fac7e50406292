// SPDX-License-Identifier: Apache-2.0
//
// Setting, resetting and counting devices: which context a thread gets, and what a reset ends.
// Covers: DEV-01, DEV-02, DEV-03, DEV-04, DEV-05, DEV-06, DEV-07, DEV-08, DEV-09, DEV-10, DEV-11,
// DEV-12, DEV-13, DEV-14, DEV-15.
#include <string>
#include <vector>

#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

class DeviceSetReset : public NoDeviceTest {};

void expect_no_context() {
  int32_t device = 77;
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetDevice(&device));
  EXPECT_EQ(device, 77);
}

TEST_F(DeviceSetReset, DEV_01_BadIdIsRefusedAndTheThreadKeepsItsDevice) {
  for (int32_t id : bad_device_ids()) {
    SCOPED_TRACE(id);
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(id));
    expect_no_context();
  }
  ASSERT_SUCCESS(aclrtSetDevice(1));
  const aclrtContext context = current_context();
  for (int32_t id : bad_device_ids()) {
    SCOPED_TRACE(id);
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(id));
    EXPECT_EQ(current_context(), context);
  }
  EXPECT_SUCCESS(aclrtResetDevice(1));
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, aclrtResetDevice(1));
}

TEST_F(DeviceSetReset, DEV_01_EveryIdBelowTheCountIsGood) {
  for (uint32_t id = 0; id < device_count(); ++id) {
    SCOPED_TRACE(id);
    EXPECT_SUCCESS(aclrtSetDevice(static_cast<int32_t>(id)));
    EXPECT_EQ(current_device(), static_cast<int32_t>(id));
  }
}

TEST_F(DeviceSetReset, DEV_02_TheFirstSetMakesTheDefaultContextAndItsStream) {
  EXPECT_FALSE(default_context_exists(0));
  on_new_thread([] {
    expect_no_context();
    ASSERT_SUCCESS(aclrtSetDevice(0));
    EXPECT_EQ(current_device(), 0);
    EXPECT_NE(current_context(), nullptr);
    EXPECT_TRUE(stream_is_usable(default_stream()));
  });
  EXPECT_TRUE(default_context_exists(0));
  EXPECT_FALSE(default_context_exists(1));
}

TEST(DeviceOfProduct, DEV_02_Ipv350HasNoDefaultContext) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "ipv350"});
  ASSERT_SUCCESS(aclrtSetDevice(0));
  aclrtContext context = nullptr;
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtGetCurrentContext(&context));
  aclrtStream stream = nullptr;
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtCtxGetCurrentDefaultStream(&stream));
  context = create_context(0);
  EXPECT_EQ(current_context(), context);
  EXPECT_SUCCESS(aclrtDestroyContext(context));
}

TEST_F(DeviceSetReset, DEV_03_ThreadsOfOneDeviceShareItsDefaultContext) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtContext context = current_context();
  const aclrtStream stream = default_stream();
  on_new_thread([=] {
    ASSERT_SUCCESS(aclrtSetDevice(0));
    EXPECT_EQ(current_context(), context);
    EXPECT_EQ(default_stream(), stream);
    ASSERT_SUCCESS(aclrtSetDevice(1));
    EXPECT_NE(current_context(), context);
    EXPECT_NE(default_stream(), stream);
  });
}

TEST_F(DeviceSetReset, DEV_04_DEV_07_EverySetIsCountedAcrossThreads) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  on_new_thread([] { ASSERT_SUCCESS(aclrtSetDevice(0)); });
  const aclrtContext context = current_context();
  const aclrtStream stream = default_stream();

  on_new_thread([] { EXPECT_SUCCESS(aclrtResetDevice(0)); });
  EXPECT_SUCCESS(aclrtResetDevice(0));
  EXPECT_TRUE(default_context_exists(0));
  EXPECT_EQ(current_context(), context);
  EXPECT_TRUE(stream_is_usable(stream));

  EXPECT_SUCCESS(aclrtResetDevice(0));
  EXPECT_FALSE(default_context_exists(0));
  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_NE(aclrtSetCurrentContext(context), ACL_SUCCESS);
  EXPECT_FALSE(stream_is_usable(stream));
}

TEST_F(DeviceSetReset, DEV_04_AFailedSetIsNotCounted) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtSetDevice(-1));
  EXPECT_SUCCESS(aclrtResetDevice(0));
  EXPECT_FALSE(default_context_exists(0));
}

TEST_F(DeviceSetReset, DEV_05_AnotherDeviceLeavesTheFirstOneValid) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtContext context = current_context();
  const aclrtStream stream = default_stream();
  const MappedBlock block = map_new_block(0);
  copy_in(block.address, pattern(4 * kKiB));

  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_EQ(current_device(), 1);
  EXPECT_TRUE(default_context_exists(0));

  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(current_context(), context);
  EXPECT_EQ(default_stream(), stream);
  EXPECT_EQ(copy_out(block.address, 4 * kKiB), pattern(4 * kKiB));
  drop(block);
}

TEST_F(DeviceSetReset, DEV_06_BadIdsCannotBeReset) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  for (int32_t id : bad_device_ids()) {
    SCOPED_TRACE(id);
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtResetDevice(id));
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtResetDeviceForce(id));
  }
  EXPECT_EQ(current_device(), 0);
}

TEST_F(DeviceSetReset, DEV_08_ADeviceThatIsNotSetCannotBeReset) {
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, aclrtResetDevice(3));
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, aclrtResetDeviceForce(3));
  ASSERT_SUCCESS(aclrtSetDevice(3));
  EXPECT_SUCCESS(aclrtResetDevice(3));
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, aclrtResetDevice(3));
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, aclrtResetDeviceForce(3));
}

TEST_F(DeviceSetReset, DEV_08_CountsAreKeptPerDevice) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, aclrtResetDevice(1));
  EXPECT_EQ(current_device(), 0);
  EXPECT_TRUE(default_context_exists(0));
}

TEST_F(DeviceSetReset, DEV_09_ForceReleasesWhateverTheCount) {
  for (int i = 0; i < 3; ++i) ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
  EXPECT_FALSE(default_context_exists(0));
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, aclrtResetDevice(0));
  EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, aclrtResetDeviceForce(0));

  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(current_device(), 0);
  EXPECT_SUCCESS(aclrtResetDevice(0)) << "the count did not start again";
  EXPECT_FALSE(default_context_exists(0));
}

TEST_F(DeviceSetReset, DEV_10_AfterTheReleaseTheThreadHasNoContext) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclrtResetDevice(0));
  expect_no_context();
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
  expect_no_context();
}

TEST_F(DeviceSetReset, DEV_10_TheReleaseIsSeenByOtherThreads) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  on_new_thread([] { EXPECT_SUCCESS(aclrtResetDeviceForce(0)); });
  expect_no_context();
  on_new_thread([] { ASSERT_SUCCESS(aclrtSetDevice(0)); });
  expect_no_context();
}

TEST_F(DeviceSetReset, DEV_10_ResettingAnotherDeviceLeavesTheThreadItsContext) {
  ASSERT_SUCCESS(aclrtSetDevice(1));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclrtResetDevice(1));
  EXPECT_EQ(current_device(), 0);
}

TEST_F(DeviceSetReset, DEV_11_VirtualMemorySurvivesAFullReset) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const MappedBlock block = map_new_block();
  copy_in(block.address, pattern(4 * kKiB));
  const size_t free_with_block = free_bytes();
  EXPECT_SUCCESS(aclrtResetDevice(0));

  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(free_bytes(), free_with_block);
  EXPECT_EQ(copy_out(block.address, 4 * kKiB), pattern(4 * kKiB));
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));

  drop(block);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(free_bytes(), free_with_block + block.size);
}

TEST_F(DeviceSetReset, DEV_12_ExplicitContextsOfAResetDeviceAreStale) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtContext context = create_context(0);
  const aclrtStream stream = default_stream();
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));

  expect_no_context();
  EXPECT_NE(aclrtSetCurrentContext(context), ACL_SUCCESS);
  EXPECT_NE(aclrtDestroyContext(context), ACL_SUCCESS);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_NE(current_context(), context);
  EXPECT_FALSE(stream_is_usable(stream));
  EXPECT_NE(aclrtSetCurrentContext(context), ACL_SUCCESS);
}

TEST_F(DeviceSetReset, DEV_13_NullIsRefused) {
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDevice(nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDeviceCount(nullptr));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDevice(nullptr));
}

TEST_F(DeviceSetReset, DEV_14_TheDeviceIsThatOfTheCurrentContext) {
  on_new_thread([] { expect_no_context(); });
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const aclrtContext context = create_context(2);
  EXPECT_EQ(current_device(), 2);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(current_device(), 0);
  EXPECT_SUCCESS(aclrtSetCurrentContext(context));
  EXPECT_EQ(current_device(), 2);
  EXPECT_SUCCESS(aclrtDestroyContext(context));
}

TEST_F(DeviceSetReset, DEV_15_CountingDevicesNeedsAndMakesNoContext) {
  on_new_thread([] {
    EXPECT_EQ(device_count(), 8u);
    expect_no_context();
  });
}

}  // namespace
}  // namespace understudy_test::runtime
