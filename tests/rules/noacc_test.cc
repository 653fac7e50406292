// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemMapNoAccess: closed until granted. What it shares with aclrtMapMem (NOACC-01) is tested
// in map_arguments_test.cc and map_placement_test.cc.
// Covers: NOACC-02, NOACC-03, NOACC-04, NOACC-05.
#include <cstring>
#include <vector>

#include "rules/mapping_objects.h"

namespace understudy_test::mapping {
namespace {

class MapNoAccess : public VirtualMemoryTest {};

MappedBlock closed_block(const aclrtPhysicalMemProp& property = block_property()) {
  return MappedBlock(kGranule, property, aclrtMemMapNoAccess);
}

TEST_F(MapNoAccess, NOACC_02_EveryCopyAndMemsetIsRefused) {
  MappedBlock closed = closed_block();
  MappedBlock open;
  Reservation elsewhere(kGranule);
  Mapping window(elsewhere.start(), closed.block);
  mark(window.start(), kGranule, 1);
  mark(open.start(), kGranule, 2);

  std::vector<uint8_t> host = pattern(kKiB, 9);
  for (const aclrtMemcpyKind kind :
       {ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST, ACL_MEMCPY_DEFAULT}) {
    SCOPED_TRACE(kind);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemcpy(closed.start(), kKiB, host.data(), kKiB, kind));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemcpy(host.data(), kKiB, closed.start(), kKiB, kind));
  }
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(closed.start(), kKiB, open.start(), kKiB, ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemcpy(open.start(), kKiB, closed.start(), kKiB, ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(closed.start(), kKiB, 0, kKiB));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(closed.at(kGranule - 1), 1, 0, 1));

  EXPECT_EQ(host, pattern(kKiB, 9));
  EXPECT_TRUE(is_marked(window.start(), kGranule, 1));
  EXPECT_TRUE(is_marked(open.start(), kGranule, 2));
}

TEST_F(MapNoAccess, NOACC_02_ACopyThatRunsIntoTheRangeMovesNothing) {
  Reservation range(2 * kGranule);
  Block first;
  Block second;
  Mapping open(range.start(), first);
  Mapping closed(range.at(kGranule), second, aclrtMemMapNoAccess);
  mark(open.start(), kGranule, 1);

  void* across = range.at(kGranule - kKiB);
  std::vector<uint8_t> host = pattern(2 * kKiB, 9);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpy(across, host.size(), host.data(),
                                                       host.size(), ACL_MEMCPY_HOST_TO_DEVICE));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemcpy(host.data(), host.size(), across,
                                                       host.size(), ACL_MEMCPY_DEVICE_TO_HOST));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(across, host.size(), 0, host.size()));
  EXPECT_EQ(host, pattern(2 * kKiB, 9));
  EXPECT_TRUE(is_marked(open.start(), kGranule, 1));
}

TEST_F(MapNoAccess, NOACC_02_NobodyHasAccess) {
  MappedBlock closed = closed_block();
  EXPECT_EQ(access_of(closed.start(), device_location(0)), 0u);
  EXPECT_EQ(access_of(closed.start(), device_location(1)), 0u);
  EXPECT_EQ(access_of(closed.start(), host_location()), 0u);
}

TEST_F(MapNoAccess, NOACC_02_HostBlocksAreClosedToTheCpu) {
  for (const aclrtMemLocationType location :
       {ACL_MEM_LOCATION_TYPE_HOST, ACL_MEM_LOCATION_TYPE_HOST_NUMA}) {
    SCOPED_TRACE(location);
    MappedBlock closed = closed_block(host_property(ACL_HBM_MEM_HUGE, location));
    EXPECT_EQ(access_of(closed.start(), host_location()), 0u);
    EXPECT_FALSE(cpu_can_read(closed.start()));
    EXPECT_FALSE(cpu_can_write(closed.at(kGranule - 1)));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(closed.start(), kKiB, 0, kKiB));
  }
}

TEST_F(MapNoAccess, NOACC_03_GrantingTheOwnerMakesItAPlainMapping) {
  MappedBlock closed = closed_block();
  grant(closed.start(), kGranule, device_location(0));
  EXPECT_EQ(access_of(closed.start(), device_location(0)), 3u);

  const std::vector<uint8_t> bytes = pattern(kGranule, 4);
  copy_in(closed.start(), bytes);
  EXPECT_EQ(copy_out(closed.start(), kGranule), bytes);
  EXPECT_SUCCESS(aclrtMemset(closed.start(), kGranule, 0x11, kKiB));
  EXPECT_EQ(copy_out(closed.start(), kKiB), std::vector<uint8_t>(kKiB, 0x11));
}

TEST_F(MapNoAccess, NOACC_03_OnlyTheGrantedMappingOpens) {
  Block block;
  Reservation range(2 * kGranule);
  Mapping granted(range.start(), block, aclrtMemMapNoAccess);
  Mapping closed(range.at(kGranule), block, aclrtMemMapNoAccess);
  grant(granted.start(), kGranule, device_location(0));
  mark(granted.start(), kGranule, 1);
  EXPECT_EQ(access_of(closed.start(), device_location(0)), 0u);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(closed.start(), kKiB, 0, kKiB));
  EXPECT_TRUE(is_marked(granted.start(), kGranule, 1));
}

TEST_F(MapNoAccess, NOACC_03_GrantingTheHostOpensAHostBlock) {
  for (const aclrtMemLocationType location :
       {ACL_MEM_LOCATION_TYPE_HOST, ACL_MEM_LOCATION_TYPE_HOST_NUMA}) {
    SCOPED_TRACE(location);
    MappedBlock closed = closed_block(host_property(ACL_HBM_MEM_HUGE, location));
    grant(closed.start(), kGranule, host_location());
    EXPECT_EQ(access_of(closed.start(), host_location()), 3u);
    ASSERT_TRUE(cpu_can_write(closed.start()));
    *static_cast<volatile uint8_t*>(closed.start()) = 0x77;
    EXPECT_EQ(copy_out(closed.start(), 1), std::vector<uint8_t>{0x77});
  }
}

TEST_F(MapNoAccess, NOACC_04_UnmapWorksWithAndWithoutAGrant) {
  for (const bool granted : {false, true}) {
    SCOPED_TRACE(granted);
    MappedBlock closed = closed_block();
    if (granted) grant(closed.start(), kGranule, device_location(0));
    EXPECT_SUCCESS(aclrtUnmapMem(closed.start()));
    EXPECT_FALSE(is_mapped(closed.start()));
    // The place is free again, and the scene's own unmap below finds this mapping.
    EXPECT_SUCCESS(aclrtMapMem(closed.start(), kGranule, 0, closed.block.handle(), 0));
  }
}

TEST(MapNoAccessAbsent, NOACC_05_ProfileWithoutItSaysNotSupported) {
  US_FRESH_PROCESS({"UNDERSTUDY_FEATURES", "-map_no_access"});
  DeviceScope device;
  Reservation range(kGranule);
  Block block;
  const MapCall call{"aclrtMemMapNoAccess", aclrtMemMapNoAccess, false};
  EXPECT_TRUE(map_is_refused(call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, range.start(), kGranule,
                             block.handle()));
  EXPECT_FALSE(is_mapped(range.start()));

  EXPECT_TRUE(map_is_refused(call, ACL_ERROR_INVALID_PARAM, nullptr, kGranule, block.handle()));
  EXPECT_TRUE(map_is_refused(call, ACL_ERROR_INVALID_PARAM, range.start(), 0, block.handle()));
  EXPECT_TRUE(map_is_refused(call, ACL_ERROR_INVALID_PARAM, range.start(), kGranule, nullptr));

  Mapping plain(range.start(), block);
  mark(plain.start(), kGranule, 1);
  EXPECT_TRUE(is_marked(plain.start(), kGranule, 1));
}

}  // namespace
}  // namespace understudy_test::mapping
