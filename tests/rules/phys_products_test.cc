// SPDX-License-Identifier: Apache-2.0
//
// aclrtMallocPhysical: what depends on the product and on the switches of the profile.
// Covers: PHYS-15, PHYS-17, PHYS-20, PHYS-21, PHYS-22, PHYS-23, PHYS-24, PHYS-26, PHYS-29, PHYS-32.
#include <array>
#include <ostream>

#include "rules/vmm_objects.h"

namespace understudy_test::vmm {
namespace {

// Which 1 GiB attributes a product has at its devices; none has the P2P one by default.
struct GiantPages {
  const char* product;
  bool generic;
  bool hbm;
};

void PrintTo(const GiantPages& pages, std::ostream* out) { *out << pages.product; }

class MallocPhysicalGiantPages : public testing::TestWithParam<GiantPages> {};

INSTANTIATE_TEST_SUITE_P(
    Products, MallocPhysicalGiantPages,
    testing::Values(GiantPages{"a2", true, true}, GiantPages{"a3", true, true},
                    GiantPages{"950", false, true}, GiantPages{"inf", false, false},
                    GiantPages{"trn", false, false}, GiantPages{"200i", false, false},
                    GiantPages{"200i-rc", false, false}, GiantPages{"ipv350", false, false}),
    [](const auto& item) { return test_name_on(item.param.product); });

void expect_giant_block(bool supported, aclrtMemAttr attribute) {
  if (!supported) {
    expect_block_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kGiantPage, block_property(attribute));
    return;
  }
  const size_t before = free_bytes(ACL_HBM_MEM_HUGE);
  const Block block(kGiantPage, block_property(attribute));
  EXPECT_EQ(free_bytes(ACL_HBM_MEM_HUGE), before - kGiantPage);
}

TEST_P(MallocPhysicalGiantPages, PHYS_22_GenericAttributeOnlyWhereTheProductHasIt) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product});
  const DeviceBinding binding;
  expect_giant_block(GetParam().generic, ACL_MEM_HUGE1G);
}

TEST_P(MallocPhysicalGiantPages, PHYS_23_HbmAttributeOnlyWhereTheProductHasIt) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product});
  const DeviceBinding binding;
  expect_giant_block(GetParam().hbm, ACL_HBM_MEM_HUGE1G);
}

TEST_P(MallocPhysicalGiantPages, PHYS_24_P2pAttributeIsNotSupported) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product});
  const DeviceBinding binding;
  expect_giant_block(false, ACL_MEM_P2P_HUGE1G);
}

TEST(MallocPhysicalHostGiantPages, PHYS_21_HostPagesOf1GibOnlyWhereTheFeatureIsOn) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"}, {"UNDERSTUDY_FEATURES", "+host_p2p_huge1g"});
  const DeviceBinding binding;
  for (const aclrtMemLocationType location : kHostLocations) {
    SCOPED_TRACE(location);
    const aclrtPhysicalMemProp property = block_property(ACL_MEM_P2P_HUGE1G, location);
    for (const aclrtMemAttr other : {ACL_MEM_HUGE1G, ACL_HBM_MEM_HUGE1G}) {
      expect_block_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kGiantPage,
                           block_property(other, location));
    }
    expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, kHugePage, property);
    aclrtPhysicalMemProp asked = property;
    size_t granularity = 0;
    EXPECT_SUCCESS(aclrtMemGetAllocationGranularity(&asked, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM,
                                                    &granularity));
    EXPECT_EQ(granularity, kGiantPage);

    // Without access, so that the host need not find 1 GiB for the test.
    const Block block(kGiantPage, property);
    const Range range(kGiantPage);
    EXPECT_SUCCESS(aclrtMemMapNoAccess(range.start(), kGiantPage, 0, block.handle(), 0));
    aclrtPtrAttributes attributes{};
    EXPECT_SUCCESS(aclrtPointerGetAttributes(range.start(), &attributes));
    EXPECT_EQ(attributes.location.type, location);
    EXPECT_EQ(attributes.pageSize, kGiantPage);
    EXPECT_SUCCESS(aclrtUnmapMem(range.start()));
    aclrtPhysicalMemProp read_back{};
    EXPECT_SUCCESS(aclrtMemGetAllocationPropertiesFromHandle(block.handle(), &read_back));
    EXPECT_EQ(read_back.memAttr, ACL_MEM_P2P_HUGE1G);
    EXPECT_EQ(read_back.location.type, location);
  }
  // The device has the attribute only with a feature of its own (PHYS-24).
  expect_giant_block(false, ACL_MEM_P2P_HUGE1G);
}

// ---- What HOST_NUMA blocks with a P2P attribute can have together on A3 ----

constexpr std::array kPeerAttributes = {ACL_MEM_P2P_NORMAL, ACL_MEM_P2P_HUGE, ACL_DDR_MEM_P2P_HUGE,
                                        ACL_DDR_MEM_P2P_NORMAL};

TEST(MallocPhysicalHostPeerMemory, PHYS_29_TheServerLimitsPeerBlocksOnNumaNodes) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"}, {"UNDERSTUDY_HOST_P2P_MEMORY", "8M"});
  const DeviceBinding binding;
  const auto peer = [](aclrtMemAttr attribute) {
    return block_property(attribute, ACL_MEM_LOCATION_TYPE_HOST_NUMA, 0);
  };
  for (const aclrtMemAttr attribute : kPeerAttributes) {
    SCOPED_TRACE(attribute);
    expect_block_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, 10 * kMiB, peer(attribute));
    const Block first(6 * kMiB, peer(attribute));
    expect_block_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, 4 * kMiB, peer(ACL_MEM_P2P_HUGE));
    const Block second(2 * kMiB, peer(attribute));  // a smaller request still succeeds
    expect_block_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, 2 * kMiB, peer(ACL_MEM_P2P_NORMAL));
    // Other memory of the host and of devices is not meant.
    const Block plain(10 * kMiB, block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST_NUMA, 0));
    const Block on_host(10 * kMiB, block_property(attribute, ACL_MEM_LOCATION_TYPE_HOST, 0));
    const Block on_device(10 * kMiB, block_property(ACL_MEM_P2P_HUGE));
  }
  // Freed, unmapped or shared and freed: all of it comes back.
  {
    const MappedBlock mapped(8 * kMiB, peer(ACL_MEM_P2P_HUGE));
    uint64_t token = 0;
    EXPECT_SUCCESS(aclrtMemExportToShareableHandle(mapped.block.handle(), ACL_MEM_HANDLE_TYPE_NONE,
                                                   0, &token));
  }
  const Block again(8 * kMiB, peer(ACL_MEM_P2P_HUGE));
  aclrtDrvMemHandle handle = nullptr;
  const aclrtPhysicalMemProp one_more = peer(ACL_MEM_P2P_HUGE);
  EXPECT_EQ(aclrtMallocPhysical(&handle, 2 * kMiB, &one_more, 0), ACL_ERROR_RT_MEMORY_ALLOCATION);
  EXPECT_NE(recent_error().find("host_p2p_memory"), std::string::npos);
}

TEST(MallocPhysicalHostPeerMemory, PHYS_20_OtherProductsAndNoLimitHaveAllThatTheHostHas) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"}, {"UNDERSTUDY_HOST_P2P_MEMORY", "8M"});
  const DeviceBinding binding;
  const Block block(16 * kMiB,
                    block_property(ACL_MEM_P2P_HUGE, ACL_MEM_LOCATION_TYPE_HOST_NUMA, 0));
}

TEST(MallocPhysicalInterconnectForm, PHYS_24_P2pAttributeGivesGiantPages) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"}, {"UNDERSTUDY_FEATURES", "+p2p_huge1g"});
  const DeviceBinding binding;
  expect_giant_block(true, ACL_MEM_P2P_HUGE1G);
}

class MallocPhysicalWithoutHbm : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Products, MallocPhysicalWithoutHbm, testing::Values("inf", "200i"),
                         [](const auto& item) { return test_name_on(item.param); });

TEST_P(MallocPhysicalWithoutHbm, PHYS_26_HbmAndGenericAttributesAreServedFromDdr) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const DeviceBinding binding;
  for (const aclrtMemAttr attribute : kDeviceAttributes) {
    SCOPED_TRACE(attribute);
    const size_t before = free_bytes(ACL_DDR_MEM);
    const MappedBlock mapped(kHugePage, block_property(attribute));
    EXPECT_EQ(free_bytes(ACL_DDR_MEM), before - kHugePage);
    expect_usable(mapped.start());
  }
}

TEST_P(MallocPhysicalWithoutHbm, PHYS_26_FailuresHaveTheSameCodes) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam()});
  const DeviceBinding binding;
  for (const aclrtMemAttr attribute : kDeviceAttributes) {
    SCOPED_TRACE(attribute);
    expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, kHugePage + 1, block_property(attribute));
    expect_block_refused(ACL_ERROR_RT_MEMORY_ALLOCATION, size_t{1} << 60,
                         block_property(attribute));
  }
  for (const aclrtMemAttr attribute : kDdrLeafAttributes) {
    SCOPED_TRACE(attribute);
    expect_block_refused(ACL_ERROR_INVALID_PARAM, kHugePage, block_property(attribute));
  }
}

// The product lacks 1 GiB pages, yet the inner layer's own checks come before that.
TEST(MallocPhysicalOrder, PHYS_15_ReserveFieldIsCheckedBeforeTheProductsPages) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "inf"});
  const DeviceBinding binding;
  aclrtPhysicalMemProp property = block_property(ACL_MEM_HUGE1G);
  property.reserve = 1;
  expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, kGiantPage, property);
}

// A requested size, what it becomes with size_alignment=round_up, and where.
struct Rounding {
  size_t requested;
  size_t rounded;
  aclrtPhysicalMemProp property;
};

std::vector<Rounding> roundings() {
  const aclrtPhysicalMemProp huge = block_property();
  const aclrtPhysicalMemProp giant = block_property(ACL_HBM_MEM_HUGE1G);
  const aclrtPhysicalMemProp host = block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST);
  return {{1, kHugePage, huge},
          {kHugePage, kHugePage, huge},
          {kHugePage + 1, 2 * kHugePage, huge},
          {5 * kMiB, 3 * kHugePage, huge},
          {3 * kMiB, 2 * kHugePage, block_property(ACL_MEM_NORMAL)},
          {1, kGiantPage, giant},
          {kGiantPage + kHugePage, 2 * kGiantPage, giant},
          {kMiB, kHugePage, host}};
}

TEST(MallocPhysicalRoundUp, PHYS_17_SizeIsRoundedUpAndAccountedSo) {
  US_FRESH_PROCESS({"UNDERSTUDY_SIZE_ALIGNMENT", "round_up"});
  const DeviceBinding binding;
  for (const Rounding& item : roundings()) {
    SCOPED_TRACE(testing::Message() << item.requested << " to " << item.rounded);
    const size_t before = free_bytes();
    const Block block(item.requested, item.property);
    const bool on_host = item.property.location.type == ACL_MEM_LOCATION_TYPE_HOST;
    EXPECT_EQ(before - free_bytes(), on_host ? 0 : item.rounded);
  }
}

TEST(MallocPhysicalRoundUp, PHYS_17_MapTakesTheRoundedSizeOnly) {
  US_FRESH_PROCESS({"UNDERSTUDY_SIZE_ALIGNMENT", "round_up"});
  const DeviceBinding binding;
  for (const Rounding& item : roundings()) {
    SCOPED_TRACE(testing::Message() << item.requested << " to " << item.rounded);
    const Block block(item.requested, item.property);
    const Range range(2 * item.rounded);
    if (item.requested != item.rounded) {
      EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                   aclrtMapMem(range.start(), item.requested, 0, block.handle(), 0));
    }
    const Mapping mapping(range.start(), item.rounded, block.handle());
    expect_usable(range.byte(item.rounded - 4 * kKiB));
  }
}

TEST(MallocPhysicalRoundUp, PHYS_17_SizeWhoseRoundingOverflowsIsRefused) {
  US_FRESH_PROCESS({"UNDERSTUDY_SIZE_ALIGNMENT", "round_up"});
  const DeviceBinding binding;
  for (const size_t size : {SIZE_MAX, SIZE_MAX - kHugePage + 2}) {
    SCOPED_TRACE(size);
    expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, size, block_property());
    expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, size,
                         block_property(ACL_MEM_HUGE, ACL_MEM_LOCATION_TYPE_HOST));
  }
  expect_block_refused(ACL_ERROR_RT_PARAM_INVALID, SIZE_MAX - kGiantPage + 2,
                       block_property(ACL_HBM_MEM_HUGE1G));
}

TEST(MallocPhysicalLegacy, PHYS_32_OnlyTwoAttributesExist) {
  US_FRESH_PROCESS({"UNDERSTUDY_ATTR_SET", "legacy"});
  const DeviceBinding binding;
  for (int number = -1; number <= 18; ++number) {
    SCOPED_TRACE(number);
    const auto attribute = enum_value<aclrtMemAttr>(number);
    if (attribute == ACL_HBM_MEM_HUGE || attribute == ACL_HBM_MEM_NORMAL) {
      const MappedBlock mapped(kHugePage, block_property(attribute));
      expect_usable(mapped.start());
    } else {
      expect_block_refused(ACL_ERROR_INVALID_PARAM, kGiantPage, block_property(attribute));
    }
  }
}

TEST(MallocPhysicalLegacy, PHYS_32_OnlyDevicesHoldBlocks) {
  US_FRESH_PROCESS({"UNDERSTUDY_ATTR_SET", "legacy"});
  const DeviceBinding binding;
  for (const aclrtMemLocationType location :
       {ACL_MEM_LOCATION_TYPE_HOST, ACL_MEM_LOCATION_TYPE_UNREGISTERED,
        ACL_MEM_LOCATION_TYPE_MANAGED, ACL_MEM_LOCATION_TYPE_HOST_NUMA}) {
    for (const aclrtMemAttr attribute : {ACL_HBM_MEM_HUGE, ACL_HBM_MEM_NORMAL}) {
      SCOPED_TRACE(testing::Message() << "location " << location << ", attribute " << attribute);
      expect_block_refused(ACL_ERROR_INVALID_PARAM, kHugePage, block_property(attribute, location));
    }
  }
}

}  // namespace
}  // namespace understudy_test::vmm
