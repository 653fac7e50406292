// SPDX-License-Identifier: Apache-2.0
//
// aclrtMallocPhysical: which arguments it refuses, with which code, and in which order it checks.
// Covers: PHYS-01, PHYS-02, PHYS-03, PHYS-04, PHYS-05, PHYS-06, PHYS-07, PHYS-08, PHYS-09, PHYS-10,
// PHYS-11, PHYS-12, PHYS-13, PHYS-14, PHYS-15, PHYS-16, PHYS-21.
#include <limits>

#include "rules/vmm_objects.h"

namespace understudy_test::vmm {
namespace {

using MallocPhysicalArguments = DeviceTest;

constexpr uint32_t kNoSuchNode = 1u << 20;

TEST_F(MallocPhysicalArguments, PHYS_01_NullHandleIsRefused) {
  const FiguresStay watch;
  const aclrtPhysicalMemProp property = block_property();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocPhysical(nullptr, kHugePage, &property, 0));
}

TEST_F(MallocPhysicalArguments, PHYS_02_NullPropertyIsRefused) {
  const FiguresStay watch;
  aclrtDrvMemHandle handle = untouched();
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMallocPhysical(&handle, kHugePage, nullptr, 0));
  EXPECT_EQ(handle, untouched());
}

TEST_F(MallocPhysicalArguments, PHYS_03_SizeZeroIsRefused) {
  expect_block_refused(ACL_ERROR_INVALID_PARAM, 0, block_property());
}

TEST_F(MallocPhysicalArguments, PHYS_04_FlagsAreRefused) {
  for (const uint64_t flags : {uint64_t{1}, uint64_t{2}, uint64_t{1} << 32, UINT64_MAX}) {
    SCOPED_TRACE(flags);
    expect_block_refused(ACL_ERROR_INVALID_PARAM, kHugePage, block_property(), flags);
  }
}

TEST_F(MallocPhysicalArguments, PHYS_05_EveryHandleTypeButNoneIsRefused) {
  for (const int type : {static_cast<int>(ACL_MEM_HANDLE_TYPE_POSIX), 1, 3, -1}) {
    SCOPED_TRACE(type);
    aclrtPhysicalMemProp property = block_property();
    property.handleType = enum_value<aclrtMemHandleType>(type);
    expect_block_refused(ACL_ERROR_INVALID_PARAM, kHugePage, property);
  }
}

TEST_F(MallocPhysicalArguments, PHYS_06_EveryAllocationTypeButPinnedIsRefused) {
  for (const int type : {1, 2, 99, -1}) {
    SCOPED_TRACE(type);
    aclrtPhysicalMemProp property = block_property();
    property.allocationType = enum_value<aclrtMemAllocationType>(type);
    expect_block_refused(ACL_ERROR_INVALID_PARAM, kHugePage, property);
  }
}

TEST_F(MallocPhysicalArguments, PHYS_07_LocationsThatHoldNoBlocksAreRefused) {
  for (const aclrtMemLocationType location :
       {ACL_MEM_LOCATION_TYPE_UNREGISTERED, ACL_MEM_LOCATION_TYPE_MANAGED}) {
    SCOPED_TRACE(location);
    expect_block_refused(ACL_ERROR_INVALID_PARAM, kHugePage,
                         block_property(ACL_HBM_MEM_HUGE, location));
  }
}

TEST_F(MallocPhysicalArguments, PHYS_08_UnknownLocationTypeIsRefusedByTheInnerLayer) {
  for (const int location : {5, 99, -1}) {
    SCOPED_TRACE(location);
    expect_block_refused(
        ACL_ERROR_RT_PARAM_INVALID, kHugePage,
        block_property(ACL_HBM_MEM_HUGE, enum_value<aclrtMemLocationType>(location)));
  }
}

TEST_F(MallocPhysicalArguments, PHYS_09_DdrLeafAttributesAreRefusedAtADevice) {
  for (const aclrtMemAttr attribute : kDdrLeafAttributes) {
    SCOPED_TRACE(attribute);
    expect_block_refused(ACL_ERROR_INVALID_PARAM, kHugePage, block_property(attribute));
  }
}

TEST_F(MallocPhysicalArguments, PHYS_10_ForeignAttributesAreRefusedAtEveryLocation) {
  for (const aclrtMemLocationType location : kBlockLocations) {
    for (const aclrtMemAttr attribute : kForeignAttributes) {
      SCOPED_TRACE(testing::Message() << "location " << location << ", attribute " << attribute);
      expect_block_refused(ACL_ERROR_INVALID_PARAM, kHugePage, block_property(attribute, location));
    }
  }
}

TEST_F(MallocPhysicalArguments, PHYS_11_DeviceBeyondTheCountIsRefused) {
  const uint32_t count = device_count();
  ASSERT_GT(count, 0u);
  for (const uint32_t id : {count, count + 1, uint32_t{1} << 31, UINT32_MAX}) {
    SCOPED_TRACE(id);
    expect_block_refused(ACL_ERROR_RT_INVALID_DEVICEID, kHugePage,
                         block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, id));
  }
  const Block last(kHugePage,
                   block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, count - 1));
}

TEST_F(MallocPhysicalArguments, PHYS_12_HostIdOtherThanZeroIsNotSupported) {
  for (const uint32_t id : {1u, UINT32_MAX}) {
    SCOPED_TRACE(id);
    expect_block_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kHugePage,
                         block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST, id));
  }
}

TEST_F(MallocPhysicalArguments, PHYS_13_HostNumaNeedsAContext) {
  const FiguresStay watch;
  on_bare_thread([] {
    expect_block_refused(ACL_ERROR_RT_CONTEXT_NULL, kHugePage,
                         block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST_NUMA));
  });
}

TEST_F(MallocPhysicalArguments, PHYS_14_NumaNodeThatDoesNotExistIsRefused) {
  for (const uint32_t node : {kNoSuchNode, UINT32_MAX}) {
    SCOPED_TRACE(node);
    expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, kHugePage,
                         block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST_NUMA, node));
  }
}

TEST_F(MallocPhysicalArguments, PHYS_15_ReserveFieldIsRefused) {
  for (const uint64_t reserve_field : {uint64_t{1}, uint64_t{1} << 63, UINT64_MAX}) {
    SCOPED_TRACE(reserve_field);
    aclrtPhysicalMemProp property = block_property();
    property.reserve = reserve_field;
    expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, kHugePage, property);
  }
}

TEST_F(MallocPhysicalArguments, PHYS_15_ReserveFieldIsCheckedBeforeFeatures) {
  aclrtPhysicalMemProp host_id = block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST, 1);
  host_id.reserve = 1;
  expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, kHugePage, host_id);

  aclrtPhysicalMemProp giant_host = block_property(ACL_MEM_HUGE1G, ACL_MEM_LOCATION_TYPE_HOST);
  giant_host.reserve = 1;
  expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, kGiantPage, giant_host);

  aclrtPhysicalMemProp giant_p2p = block_property(ACL_MEM_P2P_HUGE1G);
  giant_p2p.reserve = 1;
  expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, kGiantPage, giant_p2p);
}

TEST_F(MallocPhysicalArguments, PHYS_16_SizeOffTheHugePageIsRefused) {
  for (const size_t size :
       {size_t{1}, 4 * kKiB, kMiB, kHugePage - 1, kHugePage + 1, 3 * kMiB, kGiB + 4 * kKiB}) {
    for (const aclrtMemAttr attribute : kDeviceAttributes) {
      SCOPED_TRACE(testing::Message() << "size " << size << ", attribute " << attribute);
      expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, size, block_property(attribute));
    }
    for (const aclrtMemAttr attribute : kHostAttributes) {
      SCOPED_TRACE(testing::Message() << "size " << size << ", host attribute " << attribute);
      expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, size,
                           block_property(attribute, ACL_MEM_LOCATION_TYPE_HOST));
    }
  }
}

TEST_F(MallocPhysicalArguments, PHYS_16_SizeOffTheGiantPageIsRefused) {
  for (const aclrtMemAttr attribute : {ACL_MEM_HUGE1G, ACL_HBM_MEM_HUGE1G}) {
    for (const size_t size : {kHugePage, 512 * kMiB, kGiB - 1, kGiB + kHugePage}) {
      SCOPED_TRACE(testing::Message() << "size " << size << ", attribute " << attribute);
      expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, size, block_property(attribute));
    }
  }
}

TEST_F(MallocPhysicalArguments, PHYS_16_SizeIsCheckedBeforeFreeMemory) {
  for (const size_t size : {free_bytes() + kHugePage + 1, std::numeric_limits<size_t>::max()}) {
    SCOPED_TRACE(size);
    expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, size, block_property());
  }
}

TEST_F(MallocPhysicalArguments, PHYS_21_GiantPagesAreNotSupportedAtTheHost) {
  for (const aclrtMemLocationType location : kHostLocations) {
    for (const aclrtMemAttr attribute : kGiantAttributes) {
      SCOPED_TRACE(testing::Message() << "location " << location << ", attribute " << attribute);
      expect_block_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kGiantPage,
                           block_property(attribute, location));
    }
  }
}

// The outer layer looks first: its code wins over everything the inner layer would say.
TEST_F(MallocPhysicalArguments, PHYS_04_PHYS_05_PHYS_06_OuterChecksComeBeforeInnerOnes) {
  aclrtPhysicalMemProp property =
      block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, device_count());
  property.reserve = 1;
  expect_block_refused(ACL_ERROR_INVALID_PARAM, kHugePage + 1, property, 1);

  aclrtPhysicalMemProp handle_type = property;
  handle_type.handleType = ACL_MEM_HANDLE_TYPE_POSIX;
  expect_block_refused(ACL_ERROR_INVALID_PARAM, kHugePage + 1, handle_type);

  aclrtPhysicalMemProp allocation_type = property;
  allocation_type.allocationType = enum_value<aclrtMemAllocationType>(1);
  expect_block_refused(ACL_ERROR_INVALID_PARAM, kHugePage + 1, allocation_type);
}

}  // namespace
}  // namespace understudy_test::vmm
