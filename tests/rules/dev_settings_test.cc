// SPDX-License-Identifier: Apache-2.0
//
// What can be set on a device: state callbacks, the overflow mode, limits of compute resources.
// Covers: DEV-35, DEV-36, DEV-37, DEV-43.
#include <utility>
#include <vector>

#include "rules/product_objects.h"
#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

class DeviceSettings : public NoDeviceTest {};

using Notices = std::vector<std::pair<uint32_t, aclrtDeviceState>>;

// Callbacks may use the library: none is called while it holds a lock of its own.
void note_state(uint32_t device, aclrtDeviceState state, void* args) {
  EXPECT_EQ(device_count(), 8u);
  static_cast<Notices*>(args)->emplace_back(device, state);
}

Notices notices_of_set_and_reset(uint32_t device) {
  return {{device, ACL_RT_DEVICE_STATE_SET_PRE},
          {device, ACL_RT_DEVICE_STATE_SET_POST},
          {device, ACL_RT_DEVICE_STATE_RESET_PRE},
          {device, ACL_RT_DEVICE_STATE_RESET_POST}};
}

void set_and_reset(int32_t device) {
  EXPECT_SUCCESS(aclrtSetDevice(device));
  EXPECT_SUCCESS(aclrtResetDevice(device));
}

TEST_F(DeviceSettings, DEV_35_ANullNameIsRefused) {
  Notices notices;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtRegDeviceStateCallback(nullptr, note_state, &notices));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtRegDeviceStateCallback(nullptr, nullptr, nullptr));
  set_and_reset(0);
  EXPECT_TRUE(notices.empty());
}

TEST_F(DeviceSettings, DEV_35_TheCallbackRunsAroundSetAndReset_C3) {
  Notices notices;
  ASSERT_SUCCESS(aclrtRegDeviceStateCallback("DEV_35_around", note_state, &notices));
  set_and_reset(2);
  EXPECT_EQ(notices, notices_of_set_and_reset(2));
  EXPECT_SUCCESS(aclrtRegDeviceStateCallback("DEV_35_around", nullptr, nullptr));
}

TEST_F(DeviceSettings, DEV_35_EveryNameHasItsCallback) {
  Notices first;
  Notices second;
  ASSERT_SUCCESS(aclrtRegDeviceStateCallback("DEV_35_first", note_state, &first));
  ASSERT_SUCCESS(aclrtRegDeviceStateCallback("DEV_35_second", note_state, &second));
  set_and_reset(0);
  EXPECT_EQ(first, notices_of_set_and_reset(0));
  EXPECT_EQ(second, notices_of_set_and_reset(0));
  EXPECT_SUCCESS(aclrtRegDeviceStateCallback("DEV_35_first", nullptr, nullptr));
  EXPECT_SUCCESS(aclrtRegDeviceStateCallback("DEV_35_second", nullptr, nullptr));
}

TEST_F(DeviceSettings, DEV_35_ANameHasOneCallbackOnly) {
  Notices first;
  Notices second;
  ASSERT_SUCCESS(aclrtRegDeviceStateCallback("DEV_35_unique", note_state, &first));
  // Whether the second registration replaces or is refused is not said.
  (void)aclrtRegDeviceStateCallback("DEV_35_unique", note_state, &second);
  set_and_reset(0);
  EXPECT_EQ(first.size() + second.size(), notices_of_set_and_reset(0).size());
  EXPECT_TRUE(first.empty() || second.empty());
  EXPECT_SUCCESS(aclrtRegDeviceStateCallback("DEV_35_unique", nullptr, nullptr));
}

TEST_F(DeviceSettings, DEV_35_ANullCallbackUnregisters) {
  Notices notices;
  ASSERT_SUCCESS(aclrtRegDeviceStateCallback("DEV_35_gone", note_state, &notices));
  EXPECT_SUCCESS(aclrtRegDeviceStateCallback("DEV_35_gone", nullptr, nullptr));
  set_and_reset(0);
  EXPECT_TRUE(notices.empty());
  ASSERT_SUCCESS(aclrtRegDeviceStateCallback("DEV_35_gone", note_state, &notices));
  set_and_reset(0);
  EXPECT_EQ(notices, notices_of_set_and_reset(0));
  EXPECT_SUCCESS(aclrtRegDeviceStateCallback("DEV_35_gone", nullptr, nullptr));
}

TEST_F(DeviceSettings, DEV_36_TheOverflowModeIsRemembered) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const MemoryFigures before = memory_figures();
  for (aclrtFloatOverflowMode mode : {ACL_RT_OVERFLOW_MODE_SATURATION, ACL_RT_OVERFLOW_MODE_INFNAN,
                                      ACL_RT_OVERFLOW_MODE_SATURATION}) {
    SCOPED_TRACE(mode);
    EXPECT_SUCCESS(aclrtSetDeviceSatMode(mode));
    aclrtFloatOverflowMode seen = ACL_RT_OVERFLOW_MODE_UNDEF;
    EXPECT_SUCCESS(aclrtGetDeviceSatMode(&seen));
    EXPECT_EQ(seen, mode);
  }
  EXPECT_NE(aclrtGetDeviceSatMode(nullptr), ACL_SUCCESS);
  EXPECT_EQ(memory_figures(), before);
}

aclrtFloatOverflowMode overflow_mode() {
  auto mode = ACL_RT_OVERFLOW_MODE_UNDEF;
  EXPECT_SUCCESS(aclrtGetDeviceSatMode(&mode));
  return mode;
}

class OverflowModeOn : public ProductTest {};
INSTANTIATE_TEST_SUITE_P(Products, OverflowModeOn, every_product(), product_name);

TEST_P(OverflowModeOn, DEV_43_EachProductHasItsModeAndTwoHaveBoth) {
  US_ON_PRODUCT();
  const ContextSession session;
  const auto own = is_modern() ? ACL_RT_OVERFLOW_MODE_INFNAN : ACL_RT_OVERFLOW_MODE_SATURATION;
  const auto other = is_modern() ? ACL_RT_OVERFLOW_MODE_SATURATION : ACL_RT_OVERFLOW_MODE_INFNAN;
  const bool has_both = is_one_of({"a2", "a3"});
  EXPECT_EQ(overflow_mode(), own);
  EXPECT_SUPPORTED(has_both, aclrtSetDeviceSatMode(other));
  EXPECT_EQ(overflow_mode(), has_both ? other : own) << "the last one that was set";
  EXPECT_SUCCESS(aclrtSetDeviceSatMode(own));
  EXPECT_EQ(overflow_mode(), own);
}

TEST_F(DeviceSettings, DEV_43_AResetDeviceHasItsModeAgain) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_SUCCESS(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION));
  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_EQ(overflow_mode(), ACL_RT_OVERFLOW_MODE_INFNAN) << "another device";
  EXPECT_SUCCESS(aclrtResetDevice(0));
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(overflow_mode(), ACL_RT_OVERFLOW_MODE_INFNAN);
}

constexpr aclrtDevResLimitType kCube = ACL_RT_DEV_RES_CUBE_CORE;
constexpr aclrtDevResLimitType kVector = ACL_RT_DEV_RES_VECTOR_CORE;

uint32_t device_limit(int32_t device, aclrtDevResLimitType type) {
  uint32_t value = 0;
  EXPECT_SUCCESS(aclrtGetDeviceResLimit(device, type, &value));
  return value;
}
uint32_t stream_limit(aclrtStream stream, aclrtDevResLimitType type) {
  uint32_t value = 0;
  EXPECT_SUCCESS(aclrtGetStreamResLimit(stream, type, &value));
  return value;
}
uint32_t thread_limit(aclrtDevResLimitType type) {
  uint32_t value = 0;
  EXPECT_SUCCESS(aclrtGetResInCurrentThread(type, &value));
  return value;
}

class ResourceLimit : public NoDeviceTest {
 protected:
  void SetUp() override {
    NoDeviceTest::SetUp();
    ASSERT_SUCCESS(aclrtSetDevice(0));
    hardware_cube_ = device_limit(0, kCube);
    hardware_vector_ = device_limit(0, kVector);
    ASSERT_GT(hardware_cube_, 4u);
    ASSERT_GT(hardware_vector_, 4u);
  }
  void TearDown() override {
    EXPECT_SUCCESS(aclrtResetDeviceResLimit(0));
    NoDeviceTest::TearDown();
  }

  uint32_t hardware_cube_ = 0;
  uint32_t hardware_vector_ = 0;
};

TEST_F(ResourceLimit, DEV_37_TheDeviceRemembersTheLastValuePerType) {
  EXPECT_SUCCESS(aclrtSetDeviceResLimit(0, kCube, 2));
  EXPECT_SUCCESS(aclrtSetDeviceResLimit(0, kCube, 3));
  EXPECT_EQ(device_limit(0, kCube), 3u);
  EXPECT_EQ(device_limit(0, kVector), hardware_vector_);
  EXPECT_SUCCESS(aclrtResetDeviceResLimit(0));
  EXPECT_EQ(device_limit(0, kCube), hardware_cube_);
}

TEST_F(ResourceLimit, DEV_37_EachDeviceHasItsOwnLimits) {
  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_SUCCESS(aclrtSetDeviceResLimit(0, kCube, 2));
  EXPECT_EQ(device_limit(1, kCube), hardware_cube_);
}

TEST_F(ResourceLimit, DEV_37_AStreamRemembersTheLastValuePerType) {
  const aclrtStream stream = default_stream();
  EXPECT_SUCCESS(aclrtSetStreamResLimit(stream, kVector, 2));
  EXPECT_SUCCESS(aclrtSetStreamResLimit(stream, kVector, 3));
  EXPECT_EQ(stream_limit(stream, kVector), 3u);
  EXPECT_EQ(stream_limit(stream, kCube), hardware_cube_);
  EXPECT_EQ(device_limit(0, kVector), hardware_vector_);
  EXPECT_SUCCESS(aclrtResetStreamResLimit(stream));
  EXPECT_EQ(stream_limit(stream, kVector), hardware_vector_);
}

TEST_F(ResourceLimit, DEV_37_StreamComesBeforeProcessBeforeHardware) {
  const aclrtStream stream = default_stream();
  EXPECT_EQ(stream_limit(stream, kCube), hardware_cube_);
  EXPECT_EQ(thread_limit(kCube), hardware_cube_);

  EXPECT_SUCCESS(aclrtSetDeviceResLimit(0, kCube, 3));
  EXPECT_EQ(stream_limit(stream, kCube), 3u);
  EXPECT_EQ(thread_limit(kCube), 3u);

  EXPECT_SUCCESS(aclrtSetStreamResLimit(stream, kCube, 2));
  EXPECT_EQ(stream_limit(stream, kCube), 2u);
  EXPECT_EQ(device_limit(0, kCube), 3u);
  EXPECT_SUCCESS(aclrtUseStreamResInCurrentThread(stream));
  EXPECT_EQ(thread_limit(kCube), 2u);
  EXPECT_SUCCESS(aclrtUnuseStreamResInCurrentThread(stream));
  EXPECT_EQ(thread_limit(kCube), 3u);

  EXPECT_SUCCESS(aclrtResetStreamResLimit(stream));
  EXPECT_EQ(stream_limit(stream, kCube), 3u);
  EXPECT_SUCCESS(aclrtResetDeviceResLimit(0));
  EXPECT_EQ(stream_limit(stream, kCube), hardware_cube_);
}

TEST_F(ResourceLimit, DEV_37_UsingAStreamsLimitsConcernsOneThread) {
  const aclrtStream stream = default_stream();
  const uint32_t hardware_cube = hardware_cube_;
  EXPECT_SUCCESS(aclrtSetStreamResLimit(stream, kCube, 2));
  EXPECT_SUCCESS(aclrtUseStreamResInCurrentThread(stream));
  on_new_thread([hardware_cube] {
    ASSERT_SUCCESS(aclrtSetDevice(0));
    EXPECT_EQ(thread_limit(kCube), hardware_cube);
  });
  EXPECT_SUCCESS(aclrtUnuseStreamResInCurrentThread(stream));
  EXPECT_SUCCESS(aclrtResetStreamResLimit(stream));
}

TEST_F(ResourceLimit, DEV_37_BadArgumentsAreRefusedAndMemoryIsUntouched) {
  const aclrtStream stream = default_stream();
  const MemoryFigures before = memory_figures();
  uint32_t value = 77;
  EXPECT_NE(aclrtGetDeviceResLimit(0, kCube, nullptr), ACL_SUCCESS);
  EXPECT_NE(aclrtGetStreamResLimit(stream, kCube, nullptr), ACL_SUCCESS);
  EXPECT_NE(aclrtGetResInCurrentThread(kCube, nullptr), ACL_SUCCESS);
  EXPECT_NE(aclrtGetDeviceResLimit(0, enum_value<aclrtDevResLimitType>(99), &value), ACL_SUCCESS);
  for (int32_t id : bad_device_ids()) {
    SCOPED_TRACE(id);
    EXPECT_NE(aclrtGetDeviceResLimit(id, kCube, &value), ACL_SUCCESS);
    EXPECT_NE(aclrtSetDeviceResLimit(id, kCube, 2), ACL_SUCCESS);
    EXPECT_NE(aclrtResetDeviceResLimit(id), ACL_SUCCESS);
  }
  int not_a_stream = 0;
  EXPECT_NE(aclrtGetStreamResLimit(&not_a_stream, kCube, &value), ACL_SUCCESS);
  EXPECT_NE(aclrtSetStreamResLimit(&not_a_stream, kCube, 2), ACL_SUCCESS);
  EXPECT_NE(aclrtUseStreamResInCurrentThread(&not_a_stream), ACL_SUCCESS);
  EXPECT_EQ(value, 77u);
  EXPECT_EQ(device_limit(0, kCube), hardware_cube_);
  EXPECT_EQ(memory_figures(), before);
}

}  // namespace
}  // namespace understudy_test::runtime
