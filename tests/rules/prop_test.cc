// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemGetAllocationPropertiesFromHandle: what a block says about itself.
// Covers: PROP-01, PROP-02, PROP-03, PROP-04, PROP-05, PROP-06.
#include <cstring>
#include <initializer_list>
#include <vector>

#include "rules/mapping_objects.h"

namespace understudy_test::mapping {
namespace {

class Properties : public VirtualMemoryTest {};

// No valid value in any field, so that an untouched one shows.
aclrtPhysicalMemProp filler() {
  aclrtPhysicalMemProp property;
  memset(&property, 0xAB, sizeof property);
  return property;
}

bool is_filler(const aclrtPhysicalMemProp& property) {
  const aclrtPhysicalMemProp untouched = filler();
  return memcmp(&property, &untouched, sizeof property) == 0;
}

aclrtPhysicalMemProp properties_of(aclrtDrvMemHandle handle) {
  aclrtPhysicalMemProp property = filler();
  EXPECT_SUCCESS(aclrtMemGetAllocationPropertiesFromHandle(handle, &property));
  return property;
}

void expect_unknown(aclrtDrvMemHandle handle) {
  aclrtPhysicalMemProp property = filler();
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemGetAllocationPropertiesFromHandle(handle, &property));
  EXPECT_TRUE(is_filler(property));
}

struct ReadBack {
  aclrtMemAttr requested;
  aclrtMemAttr read;
};

void expect_read_back(std::initializer_list<ReadBack> table, aclrtMemLocationType location,
                      size_t size = kGranule) {
  for (const ReadBack& row : table) {
    SCOPED_TRACE(testing::Message() << "attribute " << row.requested << " at " << location);
    Block block(size, block_property(row.requested, location));
    EXPECT_EQ(properties_of(block.handle()).memAttr, row.read);
  }
}

constexpr std::initializer_list<ReadBack> kDeviceWithHbm = {
    {ACL_MEM_NORMAL, ACL_HBM_MEM_NORMAL},     {ACL_MEM_HUGE, ACL_HBM_MEM_HUGE},
    {ACL_MEM_P2P_NORMAL, ACL_MEM_P2P_NORMAL}, {ACL_MEM_P2P_HUGE, ACL_MEM_P2P_HUGE},
    {ACL_HBM_MEM_NORMAL, ACL_HBM_MEM_NORMAL}, {ACL_HBM_MEM_HUGE, ACL_HBM_MEM_HUGE},
};
constexpr std::initializer_list<ReadBack> kDeviceWithDdr = {
    {ACL_MEM_NORMAL, ACL_MEM_NORMAL},         {ACL_MEM_HUGE, ACL_MEM_HUGE},
    {ACL_MEM_P2P_NORMAL, ACL_MEM_P2P_NORMAL}, {ACL_MEM_P2P_HUGE, ACL_MEM_P2P_HUGE},
    {ACL_HBM_MEM_NORMAL, ACL_MEM_NORMAL},     {ACL_HBM_MEM_HUGE, ACL_MEM_HUGE},
};
constexpr std::initializer_list<ReadBack> kHost = {
    {ACL_MEM_NORMAL, ACL_MEM_NORMAL},
    {ACL_MEM_HUGE, ACL_MEM_HUGE},
    {ACL_MEM_P2P_NORMAL, ACL_DDR_MEM_P2P_NORMAL},
    {ACL_MEM_P2P_HUGE, ACL_MEM_P2P_HUGE},
    {ACL_HBM_MEM_NORMAL, ACL_HBM_MEM_NORMAL},
    {ACL_HBM_MEM_HUGE, ACL_HBM_MEM_HUGE},
    {ACL_DDR_MEM_NORMAL, ACL_MEM_NORMAL},
    {ACL_DDR_MEM_HUGE, ACL_MEM_HUGE},
    {ACL_DDR_MEM_P2P_NORMAL, ACL_DDR_MEM_P2P_NORMAL},
    {ACL_DDR_MEM_P2P_HUGE, ACL_MEM_P2P_HUGE},
};

TEST_F(Properties, PROP_01_NullPointersAreRefused) {
  Block block;
  aclrtPhysicalMemProp property = filler();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemGetAllocationPropertiesFromHandle(nullptr, &property));
  EXPECT_TRUE(is_filler(property));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemGetAllocationPropertiesFromHandle(block.handle(), nullptr));
}

TEST_F(Properties, PROP_02_EveryFieldIsSet) {
  const aclrtMemLocation node{.id = 0, .type = ACL_MEM_LOCATION_TYPE_HOST_NUMA};
  for (const aclrtMemLocation location :
       {device_location(0), device_location(5), host_location(), node}) {
    SCOPED_TRACE(testing::Message() << "type " << location.type << ", id " << location.id);
    Block block(kGranule, block_property(ACL_HBM_MEM_HUGE, location.type, location.id));
    const aclrtPhysicalMemProp property = properties_of(block.handle());
    EXPECT_EQ(property.handleType, ACL_MEM_HANDLE_TYPE_NONE);
    EXPECT_EQ(property.allocationType, ACL_MEM_ALLOCATION_TYPE_PINNED);
    EXPECT_EQ(property.memAttr, ACL_HBM_MEM_HUGE);
    EXPECT_EQ(property.location.type, location.type);
    EXPECT_EQ(property.location.id, location.id);
    EXPECT_EQ(property.reserve, 0u);
  }
}

TEST_F(Properties, PROP_02_MappingChangesNoProperty) {
  MappedBlock scene(kGranule, block_property(ACL_MEM_HUGE));
  const aclrtPhysicalMemProp mapped = properties_of(scene.block.handle());
  scene.mapping.unmap();
  const aclrtPhysicalMemProp unmapped = properties_of(scene.block.handle());
  EXPECT_EQ(mapped.memAttr, unmapped.memAttr);
  EXPECT_EQ(mapped.location.type, unmapped.location.type);
  EXPECT_EQ(mapped.location.id, unmapped.location.id);
}

TEST_F(Properties, PROP_03_AttributesOfADeviceWithHbm) {
  expect_read_back(kDeviceWithHbm, ACL_MEM_LOCATION_TYPE_DEVICE);
  expect_read_back({{ACL_MEM_HUGE1G, ACL_HBM_MEM_HUGE1G}, {ACL_HBM_MEM_HUGE1G, ACL_HBM_MEM_HUGE1G}},
                   ACL_MEM_LOCATION_TYPE_DEVICE, kGiB);
}

TEST_F(Properties, PROP_03_AttributesOfHostBlocks) {
  expect_read_back(kHost, ACL_MEM_LOCATION_TYPE_HOST);
  expect_read_back(kHost, ACL_MEM_LOCATION_TYPE_HOST_NUMA);
}

TEST(PropertiesA3, PROP_03_GiantPeerPagesReadBackAsThemselves) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"}, {"UNDERSTUDY_FEATURES", "+p2p_huge1g"});
  DeviceScope device;
  expect_read_back(kDeviceWithHbm, ACL_MEM_LOCATION_TYPE_DEVICE);
  expect_read_back({{ACL_MEM_HUGE1G, ACL_HBM_MEM_HUGE1G},
                    {ACL_HBM_MEM_HUGE1G, ACL_HBM_MEM_HUGE1G},
                    {ACL_MEM_P2P_HUGE1G, ACL_MEM_P2P_HUGE1G}},
                   ACL_MEM_LOCATION_TYPE_DEVICE, kGiB);
}

TEST(Properties950, PROP_03_AttributesOfADeviceWithHbm) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "950"});
  DeviceScope device;
  expect_read_back(kDeviceWithHbm, ACL_MEM_LOCATION_TYPE_DEVICE);
  expect_read_back({{ACL_HBM_MEM_HUGE1G, ACL_HBM_MEM_HUGE1G}}, ACL_MEM_LOCATION_TYPE_DEVICE, kGiB);
}

TEST(PropertiesTrn, PROP_03_AttributesOfADeviceWithHbm) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "trn"});
  DeviceScope device;
  expect_read_back(kDeviceWithHbm, ACL_MEM_LOCATION_TYPE_DEVICE);
}

TEST(PropertiesInf, PROP_03_PROP_04_AttributesOfADeviceWithDdr) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "inf"});
  DeviceScope device;
  expect_read_back(kDeviceWithDdr, ACL_MEM_LOCATION_TYPE_DEVICE);
  expect_read_back(kHost, ACL_MEM_LOCATION_TYPE_HOST);
}

TEST(Properties200I, PROP_03_PROP_04_AttributesOfADeviceWithDdr) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "200i"});
  DeviceScope device;
  expect_read_back(kDeviceWithDdr, ACL_MEM_LOCATION_TYPE_DEVICE);
  expect_read_back(kHost, ACL_MEM_LOCATION_TYPE_HOST);
}

TEST_F(Properties, PROP_04_NormalHbmKeepsItsNameOnHugePages) {
  MappedBlock scene(kGranule, block_property(ACL_HBM_MEM_NORMAL));
  EXPECT_EQ(properties_of(scene.block.handle()).memAttr, ACL_HBM_MEM_NORMAL);
  aclrtPtrAttributes attributes{};
  EXPECT_SUCCESS(aclrtPointerGetAttributes(scene.start(), &attributes));
  EXPECT_EQ(attributes.pageSize, 2097152u);
}

TEST_F(Properties, PROP_05_WhatIsNoHandleIsRefused) {
  MappedBlock scene;
  int on_the_stack = 0;
  const std::vector<aclrtDrvMemHandle> unknown = {
      address(1), &on_the_stack, scene.start(), at(scene.block.handle(), 1), address(~uint64_t{0})};
  for (const aclrtDrvMemHandle handle : unknown) {
    SCOPED_TRACE(handle);
    expect_unknown(handle);
  }
}

TEST_F(Properties, PROP_05_ADestroyedHandleIsRefused) {
  Block block;
  block.free();
  expect_unknown(block.handle());
}

TEST_F(Properties, PROP_06_AMappingKeepsTheFreedHandleReadable) {
  MappedBlock scene(kGranule, block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 3));
  scene.block.free();
  const aclrtPhysicalMemProp property = properties_of(scene.block.handle());
  EXPECT_EQ(property.memAttr, ACL_HBM_MEM_HUGE);
  EXPECT_EQ(property.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(property.location.id, 3u);

  scene.mapping.unmap();
  expect_unknown(scene.block.handle());
}

TEST_F(Properties, PROP_06_ARetainedReferenceKeepsTheHandleReadable) {
  MappedBlock scene(kGranule, host_property(ACL_DDR_MEM_NORMAL));
  aclrtDrvMemHandle retained = nullptr;
  ASSERT_SUCCESS(aclrtMemRetainAllocationHandle(scene.start(), &retained));
  scene.mapping.unmap();
  scene.block.free();
  const aclrtPhysicalMemProp property = properties_of(retained);
  EXPECT_EQ(property.memAttr, ACL_MEM_NORMAL);
  EXPECT_EQ(property.location.type, ACL_MEM_LOCATION_TYPE_HOST);

  EXPECT_SUCCESS(aclrtFreePhysical(retained));
  expect_unknown(retained);
}

}  // namespace
}  // namespace understudy_test::mapping
