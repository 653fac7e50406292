// SPDX-License-Identifier: Apache-2.0
//
// Access between devices: asking whether it is possible, allowing it one way, copying through it.
// Covers: PEER-01, PEER-02, PEER-03, PEER-04, PEER-05, PEER-06, PEER-07.
#include <string>
#include <vector>

#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

class PeerAccess : public NoDeviceTest {
 protected:
  // What is enabled belongs to the device and may outlive its reset: leave nothing behind.
  void TearDown() override {
    for (int32_t device : {0, 1}) {
      EXPECT_SUCCESS(aclrtSetDevice(device));
      (void)aclrtDeviceDisablePeerAccess(1 - device);
    }
    NoDeviceTest::TearDown();
  }
};

int32_t access_status(int32_t device, int32_t peer) {
  int32_t status = -1;
  EXPECT_SUCCESS(aclrtDevicePeerAccessStatus(device, peer, &status));
  return status;
}

TEST_F(PeerAccess, PEER_01_BadArgumentsAreRefused) {
  int32_t possible = 77;
  for (uint32_t id = 0; id < device_count(); ++id) {
    SCOPED_TRACE(id);
    const int32_t device = static_cast<int32_t>(id);
    EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceCanAccessPeer(&possible, device, device));
  }
  EXPECT_EQ(possible, 77);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtDeviceCanAccessPeer(nullptr, 0, 1));
}

TEST_F(PeerAccess, PEER_01_EveryPairIsPossibleOrNot) {
  const int32_t count = static_cast<int32_t>(device_count());
  on_new_thread([count] {
    for (int32_t device = 0; device < count; ++device) {
      for (int32_t peer = 0; peer < count; ++peer) {
        if (device == peer) continue;
        SCOPED_TRACE(std::to_string(device) + " to " + std::to_string(peer));
        int32_t possible = -1;
        EXPECT_SUCCESS(aclrtDeviceCanAccessPeer(&possible, device, peer));
        EXPECT_TRUE(possible == 0 || possible == 1) << possible;
      }
    }
  });
  int32_t possible = -1;
  EXPECT_SUCCESS(aclrtDeviceCanAccessPeer(&possible, 0, 1));
  EXPECT_EQ(possible, 1);
}

TEST_F(PeerAccess, PEER_02_FlagsAreCheckedBeforeAnythingElse) {
  for (uint32_t flags : {1u, 2u, 0xFFFFFFFFu}) {
    SCOPED_TRACE(flags);
    on_new_thread([flags] {
      EXPECT_FAILS(ACL_ERROR_FEATURE_UNSUPPORTED, aclrtDeviceEnablePeerAccess(1, flags));
    });
    ASSERT_SUCCESS(aclrtSetDevice(0));
    EXPECT_FAILS(ACL_ERROR_FEATURE_UNSUPPORTED, aclrtDeviceEnablePeerAccess(1, flags));
    EXPECT_FAILS(ACL_ERROR_FEATURE_UNSUPPORTED, aclrtDeviceEnablePeerAccess(0, flags));
    EXPECT_FAILS(ACL_ERROR_FEATURE_UNSUPPORTED, aclrtDeviceEnablePeerAccess(-1, flags));
  }
  EXPECT_EQ(access_status(0, 1), 0);
}

TEST_F(PeerAccess, PEER_03_AThreadWithoutDeviceIsRefused) {
  on_new_thread([] {
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtDeviceEnablePeerAccess(1, 0));
    EXPECT_FAILS(ACL_ERROR_RT_CONTEXT_NULL, aclrtDeviceDisablePeerAccess(1));
  });
  EXPECT_EQ(access_status(0, 1), 0);
}

TEST_F(PeerAccess, PEER_03_TheOwnDeviceIsRefused) {
  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceEnablePeerAccess(1, 0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceDisablePeerAccess(1));
}

TEST_F(PeerAccess, PEER_04_UnknownPeersAreRefused) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  int32_t possible = 77;
  for (int32_t id : bad_device_ids()) {
    SCOPED_TRACE(id);
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtDeviceEnablePeerAccess(id, 0));
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtDeviceDisablePeerAccess(id));
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtDeviceCanAccessPeer(&possible, 0, id));
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtDeviceCanAccessPeer(&possible, id, 0));
  }
  EXPECT_EQ(possible, 77);
}

TEST_F(PeerAccess, PEER_05_EnableWorksOneWay) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  EXPECT_EQ(access_status(0, 1), 1);
  EXPECT_EQ(access_status(1, 0), 0);
  EXPECT_EQ(access_status(0, 2), 0);
  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(0, 0));
  EXPECT_EQ(access_status(0, 1), 1);
  EXPECT_EQ(access_status(1, 0), 1);
  EXPECT_SUCCESS(aclrtDeviceDisablePeerAccess(0));
  EXPECT_EQ(access_status(0, 1), 1);
  EXPECT_EQ(access_status(1, 0), 0);
}

TEST_F(PeerAccess, PEER_06_EnablingAgainSucceeds) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  EXPECT_EQ(access_status(0, 1), 1);
}

TEST_F(PeerAccess, PEER_07_CopiesBetweenDevicesWorkAfterEnable) {
  US_FRESH_PROCESS({"UNDERSTUDY_SYNC_D2D", "allow"});
  ASSERT_SUCCESS(aclrtSetDevice(1));
  ASSERT_SUCCESS(aclrtDeviceEnablePeerAccess(0, 0));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  ASSERT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  const MappedBlock here = map_new_block(0);
  const MappedBlock there = map_new_block(1);
  const std::vector<uint8_t> bytes = pattern(kBlockSize);
  copy_in(here.address, bytes);
  EXPECT_SUCCESS(aclrtMemcpy(there.address, kBlockSize, here.address, kBlockSize,
                             ACL_MEMCPY_DEVICE_TO_DEVICE));
  ASSERT_SUCCESS(aclrtMemset(here.address, kBlockSize, 0, kBlockSize));
  EXPECT_SUCCESS(aclrtMemcpy(here.address, kBlockSize, there.address, kBlockSize,
                             ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_EQ(copy_out(here.address, kBlockSize), bytes);
  drop(here);
  drop(there);
}

}  // namespace
}  // namespace understudy_test::runtime
