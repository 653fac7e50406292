// SPDX-License-Identifier: Apache-2.0
//
// Questions about a device: figures, features, status, load, unique id, numbering, links.
// Covers: DEV-24, DEV-25, DEV-26, DEV-27, DEV-28, DEV-29, DEV-30, DEV-31, DEV-32, DEV-33, DEV-34,
// DEV-38, DEV-39, DEV-40, DEV-41, DEV-42.
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "rules/product_objects.h"
#include "rules/runtime_support.h"

namespace understudy_test::runtime {
namespace {

class DeviceInformation : public NoDeviceTest {};

int64_t device_figure(aclrtDevAttr attribute, uint32_t device = 0) {
  int64_t value = -1;
  EXPECT_SUCCESS(aclrtGetDeviceInfo(device, attribute, &value));
  return value;
}

TEST_F(DeviceInformation, DEV_24_FiguresAreThoseOfTheProduct) {
  EXPECT_EQ(device_figure(ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE), static_cast<int64_t>(64 * kGiB));
  EXPECT_EQ(device_figure(ACL_DEV_ATTR_NPU_ARCH), 2201);
  EXPECT_EQ(device_figure(ACL_DEV_ATTR_IS_VIRTUAL), 0);
  for (aclrtDevAttr attribute :
       {ACL_DEV_ATTR_AICPU_CORE_NUM, ACL_DEV_ATTR_AICORE_CORE_NUM, ACL_DEV_ATTR_CUBE_CORE_NUM,
        ACL_DEV_ATTR_VECTOR_CORE_NUM, ACL_DEV_ATTR_L2_CACHE_SIZE}) {
    SCOPED_TRACE(attribute);
    EXPECT_GT(device_figure(attribute), 0);
  }
  for (aclrtDevAttr attribute :
       {ACL_DEV_ATTR_SMP_ID, ACL_DEV_ATTR_PHY_CHIP_ID, ACL_DEV_ATTR_SUPER_POD_DEVICE_ID}) {
    SCOPED_TRACE(attribute);
    int64_t value = -1;
    EXPECT_SUCCESS(aclrtGetDeviceInfo(0, attribute, &value));
  }
}

TEST_F(DeviceInformation, DEV_24_NoNumberOfTheListIsUnknown) {
  std::vector<int64_t> attributes = {1, 101, 102, 301, 302, 501, 601};
  for (int64_t attribute = 201; attribute <= 212; ++attribute) attributes.push_back(attribute);
  for (int64_t attribute = 401; attribute <= 409; ++attribute) attributes.push_back(attribute);
  for (int64_t attribute : attributes) {
    SCOPED_TRACE(attribute);
    constexpr int64_t kUnwritten = -0x5EA7ED;
    int64_t value = kUnwritten;
    const aclError code = aclrtGetDeviceInfo(0, enum_value<aclrtDevAttr>(attribute), &value);
    // A product may lack what a number asks for.
    EXPECT_TRUE(code == ACL_SUCCESS || code == ACL_ERROR_RT_FEATURE_NOT_SUPPORT) << code;
    EXPECT_EQ(value != kUnwritten, code == ACL_SUCCESS);
  }
}

TEST_F(DeviceInformation, DEV_24_BadArgumentsAreRefused) {
  int64_t value = 77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDeviceInfo(0, ACL_DEV_ATTR_L2_CACHE_SIZE, nullptr));
  for (uint32_t device : {device_count(), 0xFFFFFFFFu}) {
    SCOPED_TRACE(device);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtGetDeviceInfo(device, ACL_DEV_ATTR_L2_CACHE_SIZE, &value));
  }
  for (int64_t attribute :
       {-1, 0, 2, 100, 103, 200, 213, 300, 303, 400, 410, 500, 502, 600, 602, 0x7FFFFFFF}) {
    SCOPED_TRACE(attribute);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtGetDeviceInfo(0, enum_value<aclrtDevAttr>(attribute), &value));
  }
  EXPECT_EQ(value, 77);
}

TEST_F(DeviceInformation, DEV_25_AFeatureIsSupportedOrNot) {
  for (aclrtDevFeatureType feature :
       {ACL_FEATURE_TSCPU_TASK_UPDATE_SUPPORT_AIC_AIV, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV}) {
    SCOPED_TRACE(feature);
    int32_t value = -1;
    EXPECT_SUCCESS(aclrtGetDeviceCapability(0, feature, &value));
    EXPECT_TRUE(value == 0 || value == 1) << value;
  }
}

TEST_F(DeviceInformation, DEV_25_BadArgumentsAreRefused) {
  constexpr aclrtDevFeatureType kFeature = ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV;
  int32_t value = 77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDeviceCapability(0, kFeature, nullptr));
  for (int32_t id : bad_device_ids()) {
    SCOPED_TRACE(id);
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtGetDeviceCapability(id, kFeature, &value));
  }
  EXPECT_EQ(value, 77);
}

TEST_F(DeviceInformation, DEV_26_EveryDeviceIsWell) {
  for (uint32_t id = 0; id < device_count(); ++id) {
    SCOPED_TRACE(id);
    aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
    EXPECT_SUCCESS(aclrtQueryDeviceStatus(static_cast<int32_t>(id), &status));
    EXPECT_EQ(status, ACL_RT_DEVICE_STATUS_NORMAL);
  }
}

TEST_F(DeviceInformation, DEV_26_BadArgumentsAreRefused) {
  aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtQueryDeviceStatus(0, nullptr));
  for (int32_t id : bad_device_ids()) {
    SCOPED_TRACE(id);
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtQueryDeviceStatus(id, &status));
  }
  EXPECT_EQ(status, ACL_RT_DEVICE_STATUS_END);
}

aclrtUtilizationInfo unwritten_load() {
  aclrtUtilizationInfo info;
  memset(&info, 0, sizeof info);
  info.cubeUtilization = info.vectorUtilization = -77;
  info.aicpuUtilization = info.memoryUtilization = -77;
  return info;
}

TEST_F(DeviceInformation, DEV_27_LoadIsAPercentageOrUnknown) {
  aclrtUtilizationInfo info = unwritten_load();
  EXPECT_SUCCESS(aclrtGetDeviceUtilizationRate(0, &info));
  for (int32_t load : {info.cubeUtilization, info.vectorUtilization, info.aicpuUtilization,
                       info.memoryUtilization}) {
    EXPECT_GE(load, -1);
    EXPECT_LE(load, 100);
  }
}

TEST_F(DeviceInformation, DEV_27_BadArgumentsAreRefused) {
  aclrtUtilizationInfo info = unwritten_load();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDeviceUtilizationRate(0, nullptr));
  info.utilizationExtend = &info;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDeviceUtilizationRate(0, &info));
  info.utilizationExtend = nullptr;
  for (int32_t id : bad_device_ids()) {
    SCOPED_TRACE(id);
    EXPECT_NE(aclrtGetDeviceUtilizationRate(id, &info), ACL_SUCCESS);
  }
  EXPECT_EQ(info.cubeUtilization, -77);
  EXPECT_EQ(info.memoryUtilization, -77);
}

TEST_F(DeviceInformation, DEV_28_PrioritiesRunFromSevenToZero) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  int32_t least = -1;
  int32_t greatest = -1;
  EXPECT_SUCCESS(aclrtDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(least, 7);
  EXPECT_EQ(greatest, 0);
}

TEST_F(DeviceInformation, DEV_28_EitherPointerMayBeNull) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  int32_t least = -1;
  int32_t greatest = -1;
  EXPECT_SUCCESS(aclrtDeviceGetStreamPriorityRange(&least, nullptr));
  EXPECT_SUCCESS(aclrtDeviceGetStreamPriorityRange(nullptr, &greatest));
  EXPECT_EQ(least, 7);
  EXPECT_EQ(greatest, 0);
}

std::string unique_id(int32_t device) {
  aclrtUuid uuid;
  memset(&uuid, 0, sizeof uuid);
  EXPECT_SUCCESS(aclrtDeviceGetUuid(device, &uuid));
  return std::string(uuid.bytes, sizeof uuid.bytes);
}

TEST_F(DeviceInformation, DEV_29_UniqueIdsDifferBetweenDevicesAndStay) {
  std::set<std::string> ids;
  for (uint32_t device = 0; device < device_count(); ++device) {
    ids.insert(unique_id(static_cast<int32_t>(device)));
  }
  EXPECT_EQ(ids.size(), device_count());

  const std::string before = unique_id(1);
  ASSERT_SUCCESS(aclrtSetDevice(1));
  EXPECT_EQ(unique_id(1), before);
  EXPECT_SUCCESS(aclrtResetDevice(1));
  on_new_thread([&before] { EXPECT_EQ(unique_id(1), before); });
}

TEST_F(DeviceInformation, DEV_29_BadArgumentsAreRefused) {
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceGetUuid(0, nullptr));
  aclrtUuid uuid;
  for (int32_t id : bad_device_ids()) {
    SCOPED_TRACE(id);
    EXPECT_NE(aclrtDeviceGetUuid(id, &uuid), ACL_SUCCESS);
  }
}

struct NumberingFunction {
  const char* name;
  aclError (*call)(const int32_t, int32_t* const);
};
constexpr NumberingFunction kNumberingFunctions[] = {
    {"aclrtGetLogicDevIdByUserDevId", aclrtGetLogicDevIdByUserDevId},
    {"aclrtGetUserDevIdByLogicDevId", aclrtGetUserDevIdByLogicDevId},
    {"aclrtGetLogicDevIdByPhyDevId", aclrtGetLogicDevIdByPhyDevId},
    {"aclrtGetPhyDevIdByLogicDevId", aclrtGetPhyDevIdByLogicDevId},
    {"aclrtGetUserDevIdByPhyDevId", aclrtGetUserDevIdByPhyDevId},
    {"aclrtGetPhyDevIdByUserDevId", aclrtGetPhyDevIdByUserDevId}};

void expect_numbering_fails(const NumberingFunction& function, aclError code, int32_t id,
                            int32_t* output) {
  (void)recent_error();
  EXPECT_TRUE(fails_with(code, function.call(id, output), function.name));
}

TEST_F(DeviceInformation, DEV_30_DEV_31_NumberingIsTheIdentityByDefault) {
  for (const NumberingFunction& function : kNumberingFunctions) {
    SCOPED_TRACE(function.name);
    for (int32_t id = 0; id < static_cast<int32_t>(device_count()); ++id) {
      int32_t other = -1;
      EXPECT_SUCCESS(function.call(id, &other));
      EXPECT_EQ(other, id);
    }
  }
}

TEST_F(DeviceInformation, DEV_30_DEV_31_NullAndUnknownIdsAreRefused) {
  for (const NumberingFunction& function : kNumberingFunctions) {
    SCOPED_TRACE(function.name);
    expect_numbering_fails(function, ACL_ERROR_INVALID_PARAM, 0, nullptr);
    for (int32_t id : bad_device_ids()) {
      SCOPED_TRACE(id);
      int32_t other = 77;
      expect_numbering_fails(function, ACL_ERROR_RT_INVALID_DEVICEID, id, &other);
      EXPECT_EQ(other, 77);
    }
  }
}

int32_t renumbered(aclError (*function)(const int32_t, int32_t* const), int32_t id) {
  int32_t other = -1;
  EXPECT_SUCCESS(function(id, &other));
  return other;
}

TEST(DeviceOfProduct, DEV_30_DEV_31_AVisibleListRenumbersUserIds) {
  US_FRESH_PROCESS({"ASCEND_RT_VISIBLE_DEVICES", "2,5"});
  EXPECT_EQ(renumbered(aclrtGetLogicDevIdByUserDevId, 0), 2);
  EXPECT_EQ(renumbered(aclrtGetLogicDevIdByUserDevId, 1), 5);
  EXPECT_EQ(renumbered(aclrtGetUserDevIdByLogicDevId, 5), 1);
  EXPECT_EQ(renumbered(aclrtGetPhyDevIdByUserDevId, 1), 5);
  EXPECT_EQ(renumbered(aclrtGetUserDevIdByPhyDevId, 2), 0);
  int32_t id = 77;
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtGetLogicDevIdByUserDevId(2, &id));
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtGetUserDevIdByLogicDevId(3, &id));
  EXPECT_EQ(id, 77);
}

TEST(DeviceOfProduct, DEV_31_DEV_40_TwoFunctionsSayLogicAndMeanUser_C9) {
  US_FRESH_PROCESS({"ASCEND_RT_VISIBLE_DEVICES", "1,2"});
  EXPECT_EQ(renumbered(aclrtGetLogicDevIdByUserDevId, 0), 1);
  EXPECT_EQ(renumbered(aclrtGetPhyDevIdByUserDevId, 0), 1);
  EXPECT_EQ(renumbered(aclrtGetUserDevIdByLogicDevId, 1), 0);
  EXPECT_EQ(renumbered(aclrtGetUserDevIdByPhyDevId, 2), 1);
  EXPECT_EQ(renumbered(aclrtGetLogicDevIdByPhyDevId, 1), 0);
  EXPECT_EQ(renumbered(aclrtGetLogicDevIdByPhyDevId, 2), 1);
  EXPECT_EQ(renumbered(aclrtGetPhyDevIdByLogicDevId, 0), 1);
  EXPECT_EQ(renumbered(aclrtGetPhyDevIdByLogicDevId, 1), 2);
  int32_t id = 77;
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtGetLogicDevIdByPhyDevId(0, &id));
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtGetPhyDevIdByLogicDevId(2, &id));
  EXPECT_EQ(id, 77);
}

class DeviceInformationOn : public ProductTest {};
INSTANTIATE_TEST_SUITE_P(Products, DeviceInformationOn, every_product(), product_name);

TEST_P(DeviceInformationOn, DEV_38_FiguresOfThreadGroupsAreZeroButOnOneProduct_C11) {
  US_ON_PRODUCT();
  for (int64_t number = ACL_DEV_ATTR_WARP_SIZE; number <= ACL_DEV_ATTR_MAX_BLOCK_DIM_Z; ++number) {
    SCOPED_TRACE(number);
    const int64_t value = device_figure(enum_value<aclrtDevAttr>(number));
    EXPECT_EQ(value != 0, GetParam() == "950") << value;
  }
}

TEST_P(DeviceInformationOn, DEV_39_SomeFiguresAreThereOnOneProductOrOnTheOthers_C11) {
  US_ON_PRODUCT();
  const bool is_950 = GetParam() == "950";
  int64_t value = 77;
  EXPECT_SUPPORTED(!is_950, aclrtGetDeviceInfo(0, ACL_DEV_ATTR_CUST_OP_PRIVILEGE, &value));
  EXPECT_EQ(value == 77, is_950);
  value = 77;
  EXPECT_SUPPORTED(is_950, aclrtGetDeviceInfo(0, ACL_DEV_ATTR_HD_CONNECT_TYPE, &value));
  EXPECT_EQ(value, is_950 ? ACL_HOST_DEVICE_CONNECT_TYPE_PCIE : 77);
  value = 77;
  EXPECT_SUPPORTED(is_950, aclrtGetDeviceInfo(0, ACL_DEV_ATTR_DEVICE_FORM_FACTOR, &value));
  EXPECT_EQ(value == 77, !is_950);
}

TEST_P(DeviceInformationOn, DEV_41_OlderProductsHaveNoUniqueIds) {
  US_ON_PRODUCT();
  aclrtUuid uuid;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDeviceGetUuid(0, nullptr));
  EXPECT_SUPPORTED(!is_older(), aclrtDeviceGetUuid(0, &uuid));
}

TEST_P(DeviceInformationOn, DEV_42_TheLoadOfMemoryIsUnknown) {
  US_ON_PRODUCT();
  aclrtUtilizationInfo info = unwritten_load();
  EXPECT_SUCCESS(aclrtGetDeviceUtilizationRate(0, &info));
  EXPECT_EQ(info.memoryUtilization, -1);
}

TEST_F(DeviceInformation, DEV_32_PeerAccessStatusFollowsTheSwitch) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtDevicePeerAccessStatus(0, 1, nullptr));
  int32_t status = -1;
  EXPECT_SUCCESS(aclrtDevicePeerAccessStatus(0, 1, &status));
  EXPECT_EQ(status, 0);
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  EXPECT_SUCCESS(aclrtDevicePeerAccessStatus(0, 1, &status));
  EXPECT_EQ(status, 1);
  EXPECT_SUCCESS(aclrtDeviceDisablePeerAccess(1));
}

TEST_F(DeviceInformation, DEV_33_TheDefaultContextIsActiveWhileItExists) {
  int32_t active = -1;
  EXPECT_SUCCESS(aclrtGetPrimaryCtxState(2, nullptr, &active));
  EXPECT_EQ(active, 0);
  ASSERT_SUCCESS(aclrtSetDevice(2));
  EXPECT_SUCCESS(aclrtGetPrimaryCtxState(2, nullptr, &active));
  EXPECT_EQ(active, 1);
  EXPECT_SUCCESS(aclrtResetDevice(2));
  EXPECT_SUCCESS(aclrtGetPrimaryCtxState(2, nullptr, &active));
  EXPECT_EQ(active, 0);
}

TEST_F(DeviceInformation, DEV_33_BadArgumentsAreRefused) {
  uint32_t flags = 77;
  int32_t active = 77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetPrimaryCtxState(0, nullptr, nullptr));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetPrimaryCtxState(0, &flags, &active));
  for (int32_t id : bad_device_ids()) {
    SCOPED_TRACE(id);
    EXPECT_FAILS(ACL_ERROR_RT_INVALID_DEVICEID, aclrtGetPrimaryCtxState(id, nullptr, &active));
  }
  EXPECT_EQ(flags, 77u);
  EXPECT_EQ(active, 77);
}

TEST_F(DeviceInformation, DEV_34_TwoDevicesAreLinkedBothWaysAlike) {
  constexpr uint64_t kEveryLink = ACL_RT_DEVS_TOPOLOGY_HCCS | ACL_RT_DEVS_TOPOLOGY_PIX |
                                  ACL_RT_DEVS_TOPOLOGY_PIB | ACL_RT_DEVS_TOPOLOGY_PHB |
                                  ACL_RT_DEVS_TOPOLOGY_SYS | ACL_RT_DEVS_TOPOLOGY_SIO |
                                  ACL_RT_DEVS_TOPOLOGY_HCCS_SW;
  for (uint32_t other = 1; other < device_count(); ++other) {
    SCOPED_TRACE(other);
    uint64_t there = 0;
    uint64_t back = 0;
    EXPECT_SUCCESS(aclrtGetDevicesTopo(0, other, &there));
    EXPECT_SUCCESS(aclrtGetDevicesTopo(other, 0, &back));
    EXPECT_NE(there, 0u);
    EXPECT_EQ(there & ~kEveryLink, 0u);
    EXPECT_EQ(there, back);
  }
}

TEST_F(DeviceInformation, DEV_34_BadArgumentsAreRefused) {
  uint64_t links = 77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDevicesTopo(0, 1, nullptr));
  EXPECT_NE(aclrtGetDevicesTopo(0, device_count(), &links), ACL_SUCCESS);
  EXPECT_NE(aclrtGetDevicesTopo(0xFFFFFFFFu, 0, &links), ACL_SUCCESS);
  EXPECT_EQ(links, 77u);
}

TEST(DeviceOfProduct, DEV_34_TheRcFormHasNoTopology) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "200i-rc"});
  uint64_t links = 77;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtGetDevicesTopo(0, 1, nullptr));
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, aclrtGetDevicesTopo(0, 1, &links));
  EXPECT_EQ(links, 77u);
}

}  // namespace
}  // namespace understudy_test::runtime
