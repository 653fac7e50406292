// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemSetAccess and aclrtMemGetAccess: what a grant lets others do.
// Covers: ACCESS-07, ACCESS-10, ACCESS-11, ACCESS-12, ACCESS-13, ACCESS-15, ACCESS-17, NOACC-03.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

#include "rules/mapping_objects.h"

namespace understudy_test::mapping {
namespace {

class AccessGrants : public VirtualMemoryTest {};

TEST_F(AccessGrants, ACCESS_10_GrantingTheOwnerChangesNothing) {
  MappedBlock scene;
  mark(scene.start(), kGranule, 1);
  grant(scene.start(), kGranule, device_location(0));
  EXPECT_EQ(access_of(scene.start(), device_location(0)), 3u);
  EXPECT_EQ(access_of(scene.start(), device_location(1)), 0u);
  EXPECT_EQ(access_of(scene.start(), host_location()), 0u);
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 1));
}

TEST_F(AccessGrants, ACCESS_10_TheHostOwnsHostBlocks) {
  for (const aclrtMemLocationType location :
       {ACL_MEM_LOCATION_TYPE_HOST, ACL_MEM_LOCATION_TYPE_HOST_NUMA}) {
    SCOPED_TRACE(location);
    MappedBlock scene(kGranule, host_property(ACL_HBM_MEM_HUGE, location));
    mark(scene.start(), kGranule, 1);
    grant(scene.start(), kGranule, host_location());
    EXPECT_EQ(access_of(scene.start(), host_location()), 3u);
    EXPECT_TRUE(is_marked(scene.start(), kGranule, 1));
    EXPECT_TRUE(cpu_can_write(scene.start()));
  }
}

TEST_F(AccessGrants, ACCESS_11_AnotherDeviceReadsAndWritesAfterAGrant) {
  MappedBlock scene;
  mark(scene.start(), kGranule, 1);
  grant(scene.start(), kGranule, device_location(1));
  EXPECT_EQ(access_of(scene.start(), device_location(1)), 3u);
  {
    DeviceScope other(1);
    EXPECT_TRUE(is_marked(scene.start(), kGranule, 1));
    mark(scene.start(), kGranule, 2);
  }
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 2));
}

TEST(AccessBetweenDevices, ACCESS_11_AnotherDeviceCopiesToAndFromItsOwnMemory) {
  US_FRESH_PROCESS({"UNDERSTUDY_SYNC_D2D", "allow"});
  DeviceScope here(0);
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(1, 0));
  MappedBlock scene;
  grant(scene.start(), kGranule, device_location(1));

  DeviceScope there(1);
  EXPECT_SUCCESS(aclrtDeviceEnablePeerAccess(0, 0));
  MappedBlock own(kGranule, block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 1));
  mark(own.start(), kGranule, 1);
  EXPECT_SUCCESS(
      aclrtMemcpy(scene.start(), kGranule, own.start(), kGranule, ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 1));

  mark(scene.start(), kGranule, 2);
  EXPECT_SUCCESS(
      aclrtMemcpy(own.start(), kGranule, scene.start(), kGranule, ACL_MEMCPY_DEVICE_TO_DEVICE));
  EXPECT_TRUE(is_marked(own.start(), kGranule, 2));
}

TEST_F(AccessGrants, ACCESS_12_TheCpuReadsAndWritesDeviceMemoryAfterAGrant) {
  for (const aclrtMemAttr attribute : {ACL_HBM_MEM_HUGE, ACL_MEM_NORMAL}) {
    SCOPED_TRACE(attribute);
    MappedBlock scene(2 * kGranule, block_property(attribute));
    const std::vector<uint8_t> by_copy = pattern(scene.size(), 1);
    copy_in(scene.start(), by_copy);
    EXPECT_FALSE(cpu_can_read(scene.start()));

    grant(scene.start(), scene.size(), host_location());
    ASSERT_TRUE(cpu_can_write(scene.start()));
    ASSERT_TRUE(cpu_can_write(scene.at(scene.size() - 1)));
    EXPECT_EQ(memcmp(scene.start(), by_copy.data(), by_copy.size()), 0);

    const std::vector<uint8_t> by_cpu = pattern(scene.size(), 2);
    memcpy(scene.start(), by_cpu.data(), by_cpu.size());
    EXPECT_EQ(copy_out(scene.start(), scene.size()), by_cpu);
  }
}

TEST_F(AccessGrants, ACCESS_12_OnlyTheGrantedMappingOpensToTheCpu) {
  BlockRow row({kGranule, kGranule, kGranule});
  grant(row.at(kGranule), kGranule, host_location());
  EXPECT_FALSE(cpu_can_read(row.at(kGranule - 1)));
  EXPECT_TRUE(cpu_can_read(row.at(kGranule)));
  EXPECT_TRUE(cpu_can_read(row.at(2 * kGranule - 1)));
  EXPECT_FALSE(cpu_can_read(row.at(2 * kGranule)));
}

TEST_F(AccessGrants, ACCESS_13_RepeatingAGrantSucceeds) {
  MappedBlock scene;
  mark(scene.start(), kGranule, 1);
  for (const aclrtMemLocation location :
       {device_location(0), device_location(1), host_location()}) {
    SCOPED_TRACE(testing::Message() << "type " << location.type << ", id " << location.id);
    for (int repetition = 0; repetition < 3; ++repetition) {
      grant(scene.start(), kGranule, location);
      EXPECT_EQ(access_of(scene.start(), location), 3u);
    }
  }
  EXPECT_TRUE(cpu_can_read(scene.start()));
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 1));
}

// The bare system calls, because a sanitizer's mmap would choose another address or give up.
bool cpu_can_map(void* start) {
  constexpr size_t kPage = 4096;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  const long page = syscall(SYS_mmap, start, kPage, PROT_NONE, flags, -1, 0);
  if (page == -1) return false;
  syscall(SYS_munmap, page, kPage);
  return address(static_cast<uint64_t>(page)) == start;
}

// A device address beyond the CPU's reach is where a grant to the host fails after its arguments
// were found right (DESIGN section 4).
TEST(AccessApplied, ACCESS_15_EntriesBeforeTheFailingOneStayApplied) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"});
  DeviceScope device;
  void* out_of_reach = address(200 * kTiB);
  if (cpu_can_map(out_of_reach)) GTEST_SKIP() << "the CPU reaches every device address here";
  void* start = nullptr;
  ASSERT_SUCCESS(aclrtReserveMemAddressNoUCMemory(&start, kGiB, 0, out_of_reach, 0));
  Reservation range(start, kGiB);
  Block block;
  Mapping mapping(start, block);
  mark(start, kGranule, 1);

  std::array<aclrtMemAccessDesc, 3> entries = {access_entry(device_location(1)),
                                               access_entry(host_location()),
                                               access_entry(device_location(2))};
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemSetAccess(start, kGranule, entries.data(), entries.size()));
  EXPECT_EQ(access_of(start, device_location(1)), 3u);
  EXPECT_EQ(access_of(start, host_location()), 0u);
  EXPECT_EQ(access_of(start, device_location(2)), 0u);
  EXPECT_TRUE(is_marked(start, kGranule, 1));
}

TEST_F(AccessGrants, ACCESS_17_GetTellsOwnerGrantedAndOthersApart) {
  MappedBlock scene(kGranule, block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 2));
  EXPECT_EQ(access_of(scene.start(), device_location(2)), 3u);
  EXPECT_EQ(access_of(scene.start(), device_location(0)), 0u);
  EXPECT_EQ(access_of(scene.start(), host_location()), 0u);

  std::array<aclrtMemAccessDesc, 2> entries = {access_entry(device_location(0)),
                                               access_entry(host_location())};
  EXPECT_SUCCESS(aclrtMemSetAccess(scene.start(), kGranule, entries.data(), entries.size()));
  EXPECT_EQ(access_of(scene.start(), device_location(2)), 3u);
  EXPECT_EQ(access_of(scene.start(), device_location(0)), 3u);
  EXPECT_EQ(access_of(scene.start(), host_location()), 3u);
  EXPECT_EQ(access_of(scene.start(), device_location(1)), 0u);
}

TEST_F(AccessGrants, ACCESS_17_HostIsTheOwnerOfHostAndNumaBlocks) {
  for (const aclrtMemLocationType location :
       {ACL_MEM_LOCATION_TYPE_HOST, ACL_MEM_LOCATION_TYPE_HOST_NUMA}) {
    SCOPED_TRACE(location);
    MappedBlock scene(kGranule, host_property(ACL_HBM_MEM_HUGE, location));
    EXPECT_EQ(access_of(scene.start(), host_location()), 3u);
    EXPECT_EQ(access_of(scene.start(), device_location(0)), 0u);
  }
}

TEST_F(AccessGrants, ACCESS_17_AGrantBelongsToOneMappingOfTheBlock) {
  MappedBlock scene;
  Reservation elsewhere(kGranule);
  Mapping alias(elsewhere.start(), scene.block);
  grant(scene.start(), kGranule, device_location(1));
  EXPECT_EQ(access_of(scene.start(), device_location(1)), 3u);
  EXPECT_EQ(access_of(alias.start(), device_location(1)), 0u);
}

TEST_F(AccessGrants, ACCESS_17_TheLocationIsOnlyRead) {
  MappedBlock scene;
  aclrtMemLocation location = device_location(0);
  uint64_t flag = 0;
  EXPECT_SUCCESS(aclrtMemGetAccess(scene.start(), &location, &flag));
  EXPECT_EQ(location.id, 0u);
  EXPECT_EQ(location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
}

// Only under ASCEND_RT_VISIBLE_DEVICES do the numbers differ: here user 0 is logic 2, user 1
// logic 5.
TEST(AccessByLogicId, ACCESS_07_ACCESS_11_ACCESS_17_LocationsAreLogicIds_C19) {
  US_FRESH_PROCESS({"ASCEND_RT_VISIBLE_DEVICES", "2,5"});
  const DeviceScope device;
  int32_t own = -1;
  int32_t other = -1;
  ASSERT_SUCCESS(aclrtGetLogicDevIdByUserDevId(0, &own));
  ASSERT_SUCCESS(aclrtGetLogicDevIdByUserDevId(1, &other));
  ASSERT_EQ(own, 2);
  ASSERT_EQ(other, 5);
  const aclrtMemLocation owner = device_location(2);
  const aclrtMemLocation peer = device_location(5);

  MappedBlock scene;  // on user device 0
  EXPECT_EQ(access_of(scene.start(), owner), 3u);
  EXPECT_EQ(access_of(scene.start(), peer), 0u);
  grant(scene.start(), kGranule, peer);
  EXPECT_EQ(access_of(scene.start(), peer), 3u);

  // User ids, a device that this process does not see, and one that does not exist.
  for (const uint32_t id : {0u, 1u, 3u, 8u, ~0u}) {
    SCOPED_TRACE(id);
    aclrtMemAccessDesc entry = access_entry(device_location(id));
    aclrtMemLocation location = device_location(id);
    uint64_t flag = 77;
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemSetAccess(scene.start(), kGranule, &entry, 1));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemGetAccess(scene.start(), &location, &flag));
    EXPECT_EQ(flag, 77u);
  }
  // Two names of one device are still two of the same location.
  std::array<aclrtMemAccessDesc, 2> twice = {access_entry(peer), access_entry(peer)};
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemSetAccess(scene.start(), kGranule, twice.data(), twice.size()));
  // prop.location.id stays a user id.
  aclrtPhysicalMemProp property{};
  EXPECT_SUCCESS(aclrtMemGetAllocationPropertiesFromHandle(scene.block.handle(), &property));
  EXPECT_EQ(property.location.id, 0u);
}

TEST(AccessByLogicId, NOACC_03_AnOwnerIsNamedByItsLogicId_C19) {
  US_FRESH_PROCESS({"ASCEND_RT_VISIBLE_DEVICES", "3"});
  const DeviceScope device;
  MappedBlock scene(kGranule, block_property(), aclrtMemMapNoAccess);
  EXPECT_EQ(access_of(scene.start(), device_location(3)), 0u);
  grant(scene.start(), kGranule, device_location(3));
  EXPECT_EQ(access_of(scene.start(), device_location(3)), 3u);
  mark(scene.start(), kGranule, 19);
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 19));
}

}  // namespace
}  // namespace understudy_test::mapping
