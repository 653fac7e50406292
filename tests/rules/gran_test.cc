// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemGetAllocationGranularity: the unit of block sizes for an attribute at a location.
// Covers: GRAN-01, GRAN-02, GRAN-03, GRAN-04, GRAN-05, GRAN-06, GRAN-07, GRAN-08, GRAN-09, GRAN-10,
// GRAN-11, GRAN-12, GRAN-13.
#include <sys/mman.h>

#include <new>
#include <ostream>

#include "rules/vmm_objects.h"

namespace understudy_test::vmm {
namespace {

using AllocationGranularity = DeviceTest;

constexpr std::array kOptions = {ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM,
                                 ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED};

void expect_granularity(size_t expected, aclrtPhysicalMemProp property) {
  for (const aclrtMemGranularityOptions option : kOptions) {
    SCOPED_TRACE(testing::Message() << "option " << option);
    size_t granularity = kUntouchedSize;
    EXPECT_SUCCESS(aclrtMemGetAllocationGranularity(&property, option, &granularity));
    EXPECT_EQ(granularity, expected);
  }
}

void expect_granularity_refused(
    aclError code, aclrtPhysicalMemProp property,
    aclrtMemGranularityOptions option = ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM) {
  const FiguresStay watch;
  const aclrtPhysicalMemProp before = property;
  size_t granularity = kUntouchedSize;
  EXPECT_FAILS(code, aclrtMemGetAllocationGranularity(&property, option, &granularity));
  EXPECT_EQ(granularity, kUntouchedSize);
  EXPECT_TRUE(same_property(property, before));
}

TEST_F(AllocationGranularity, GRAN_01_NullPointersAreRefused) {
  aclrtPhysicalMemProp property = block_property();
  size_t granularity = kUntouchedSize;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM,
               aclrtMemGetAllocationGranularity(nullptr, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM,
                                                &granularity));
  EXPECT_EQ(granularity, kUntouchedSize);
  EXPECT_FAILS(
      ACL_ERROR_INVALID_PARAM,
      aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, nullptr));
}

TEST_F(AllocationGranularity, GRAN_02_DdrLeafAttributesAreRefusedAtADevice) {
  for (const aclrtMemAttr attribute : kDdrLeafAttributes) {
    SCOPED_TRACE(attribute);
    expect_granularity_refused(ACL_ERROR_INVALID_PARAM, block_property(attribute));
  }
}

TEST_F(AllocationGranularity, GRAN_03_ForeignAttributesAreRefusedAtEveryLocation) {
  for (const aclrtMemLocationType location : kBlockLocations) {
    for (const aclrtMemAttr attribute : kForeignAttributes) {
      SCOPED_TRACE(testing::Message() << "location " << location << ", attribute " << attribute);
      expect_granularity_refused(ACL_ERROR_INVALID_PARAM, block_property(attribute, location));
    }
  }
}

TEST_F(AllocationGranularity, GRAN_03_AttributeIsCheckedBeforeTheInnerLayersArguments) {
  aclrtPhysicalMemProp property =
      block_property(ACL_HBM_MEM, ACL_MEM_LOCATION_TYPE_DEVICE, device_count());
  property.reserve = 1;
  expect_granularity_refused(ACL_ERROR_INVALID_PARAM, property, ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF);
}

TEST(AllocationGranularityLegacy, GRAN_03_OnlyTwoAttributesExist_C21) {
  US_FRESH_PROCESS({"UNDERSTUDY_ATTR_SET", "legacy"});
  const DeviceBinding binding;
  for (int number = -1; number <= 18; ++number) {
    SCOPED_TRACE(number);
    const auto attribute = enum_value<aclrtMemAttr>(number);
    if (attribute == ACL_HBM_MEM_HUGE || attribute == ACL_HBM_MEM_NORMAL) {
      expect_granularity(kHugePage, block_property(attribute));
    } else {
      expect_granularity_refused(ACL_ERROR_INVALID_PARAM, block_property(attribute));
    }
  }
}

TEST(AllocationGranularityLegacy, GRAN_03_OnlyDevicesHoldBlocks_C21) {
  US_FRESH_PROCESS({"UNDERSTUDY_ATTR_SET", "legacy"});
  const DeviceBinding binding;
  for (const aclrtMemLocationType location :
       {ACL_MEM_LOCATION_TYPE_HOST, ACL_MEM_LOCATION_TYPE_UNREGISTERED,
        ACL_MEM_LOCATION_TYPE_MANAGED, ACL_MEM_LOCATION_TYPE_HOST_NUMA}) {
    SCOPED_TRACE(location);
    expect_granularity_refused(ACL_ERROR_INVALID_PARAM, block_property(ACL_HBM_MEM_HUGE, location));
  }
}

TEST_F(AllocationGranularity, GRAN_04_HandleAndAllocationTypeAreNotExamined) {
  for (const int type : {static_cast<int>(ACL_MEM_HANDLE_TYPE_POSIX), 1, 99, -1}) {
    SCOPED_TRACE(type);
    aclrtPhysicalMemProp property = block_property();
    property.handleType = enum_value<aclrtMemHandleType>(type);
    property.allocationType = enum_value<aclrtMemAllocationType>(type);
    expect_granularity(kHugePage, property);
  }
}

TEST_F(AllocationGranularity, GRAN_05_UnknownOptionIsNotSupported) {
  for (const int option : {static_cast<int>(ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF), 2, 99, -1}) {
    SCOPED_TRACE(option);
    expect_granularity_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, block_property(),
                               enum_value<aclrtMemGranularityOptions>(option));
  }
}

TEST_F(AllocationGranularity, GRAN_06_DeviceBeyondTheCountIsRefused) {
  const uint32_t count = device_count();
  ASSERT_GT(count, 0u);
  for (const uint32_t id : {count, count + 1, UINT32_MAX}) {
    SCOPED_TRACE(id);
    expect_granularity_refused(ACL_ERROR_RT_INVALID_DEVICEID,
                               block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, id));
  }
  expect_granularity(kHugePage,
                     block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, count - 1));
}

TEST_F(AllocationGranularity, GRAN_07_AttributesWithoutGiantPagesHave2MiB) {
  for (const aclrtMemAttr attribute : kDeviceAttributes) {
    SCOPED_TRACE(attribute);
    expect_granularity(kHugePage, block_property(attribute));
  }
  for (const aclrtMemLocationType location : kHostLocations) {
    for (const aclrtMemAttr attribute : kHostAttributes) {
      SCOPED_TRACE(testing::Message() << "location " << location << ", attribute " << attribute);
      expect_granularity(kHugePage, block_property(attribute, location));
    }
  }
}

TEST_F(AllocationGranularity, GRAN_08_GiantPagesHave1GiB) {
  for (const aclrtMemAttr attribute : {ACL_MEM_HUGE1G, ACL_HBM_MEM_HUGE1G}) {
    SCOPED_TRACE(attribute);
    expect_granularity(kGiantPage, block_property(attribute));
  }
}

TEST_F(AllocationGranularity, GRAN_09_GiantPagesAreNotSupportedAtTheHost) {
  for (const aclrtMemLocationType location : kHostLocations) {
    for (const aclrtMemAttr attribute : kGiantAttributes) {
      SCOPED_TRACE(testing::Message() << "location " << location << ", attribute " << attribute);
      expect_granularity_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                                 block_property(attribute, location));
    }
  }
}

void expect_multiple_fits(size_t size, const aclrtPhysicalMemProp& property) {
  SCOPED_TRACE(testing::Message() << "size " << size << ", attribute " << property.memAttr
                                  << ", location " << property.location.type);
  const MappedBlock mapped(size, property);
  expect_usable(at(mapped.start(), size - 4 * kKiB));
}

TEST_F(AllocationGranularity, GRAN_10_EveryMultipleOfTheMinimumMakesABlockAndMaps) {
  std::vector<aclrtPhysicalMemProp> properties;
  for (const aclrtMemAttr attribute : kDeviceAttributes) {
    properties.push_back(block_property(attribute));
  }
  for (const aclrtMemAttr attribute : kHostAttributes) {
    properties.push_back(block_property(attribute, ACL_MEM_LOCATION_TYPE_HOST));
  }
  properties.push_back(block_property(ACL_MEM_HUGE1G));
  properties.push_back(block_property(ACL_HBM_MEM_HUGE1G));

  for (aclrtPhysicalMemProp& property : properties) {
    size_t minimum = 0;
    ASSERT_SUCCESS(aclrtMemGetAllocationGranularity(&property, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM,
                                                    &minimum));
    for (const size_t factor : {size_t{1}, size_t{2}, size_t{3}, size_t{7}}) {
      expect_multiple_fits(factor * minimum, property);
    }
  }
}

TEST_F(AllocationGranularity, GRAN_11_ReserveFieldIsRefused) {
  for (const uint64_t reserve_field : {uint64_t{1}, UINT64_MAX}) {
    SCOPED_TRACE(reserve_field);
    aclrtPhysicalMemProp property = block_property();
    property.reserve = reserve_field;
    expect_granularity_refused(ACL_ERROR_RT_PARAM_INVALID, property);
  }
}

TEST_F(AllocationGranularity, GRAN_11_ReserveFieldIsCheckedBeforeFeatures) {
  aclrtPhysicalMemProp property = block_property(ACL_MEM_HUGE1G, ACL_MEM_LOCATION_TYPE_HOST);
  property.reserve = 1;
  expect_granularity_refused(ACL_ERROR_RT_PARAM_INVALID, property);
}

// Success and failure alike; even a store of the same bytes would fault here.
TEST_F(AllocationGranularity, GRAN_12_PropertyIsNotModified) {
  void* page = mmap(nullptr, 4 * kKiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* good = new (page) aclrtPhysicalMemProp(block_property(ACL_HBM_MEM_NORMAL));
  auto* bad = new (at(page, kKiB))
      aclrtPhysicalMemProp(block_property(ACL_MEM_HUGE1G, ACL_MEM_LOCATION_TYPE_HOST));
  ASSERT_EQ(mprotect(page, 4 * kKiB, PROT_READ), 0);

  size_t granularity = kUntouchedSize;
  EXPECT_SUCCESS(
      aclrtMemGetAllocationGranularity(good, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity));
  EXPECT_EQ(granularity, kHugePage);
  EXPECT_TRUE(same_property(*good, block_property(ACL_HBM_MEM_NORMAL)));
  EXPECT_FAILS(
      ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
      aclrtMemGetAllocationGranularity(bad, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granularity));
  ASSERT_EQ(munmap(page, 4 * kKiB), 0);
}

TEST_F(AllocationGranularity, GRAN_13_LocationsThatHoldNoBlocksAreRefusedByTheInnerLayer) {
  for (const int location : {static_cast<int>(ACL_MEM_LOCATION_TYPE_UNREGISTERED),
                             static_cast<int>(ACL_MEM_LOCATION_TYPE_MANAGED), 5, 99, -1}) {
    SCOPED_TRACE(location);
    expect_granularity_refused(
        ACL_ERROR_RT_PARAM_INVALID,
        block_property(ACL_HBM_MEM_HUGE, enum_value<aclrtMemLocationType>(location)));
  }
}

TEST_F(AllocationGranularity, GRAN_13_IdOfAHostLocationIsNotExamined) {
  for (const aclrtMemLocationType location : kHostLocations) {
    for (const uint32_t id : {1u, 1u << 20, UINT32_MAX}) {
      SCOPED_TRACE(testing::Message() << "location " << location << ", id " << id);
      expect_granularity(kHugePage, block_property(ACL_MEM_HUGE, location, id));
    }
  }
}

struct GiantPages {
  const char* product;
  bool generic;
  bool hbm;
};

void PrintTo(const GiantPages& pages, std::ostream* out) { *out << pages.product; }

class AllocationGranularityProducts : public testing::TestWithParam<GiantPages> {};

INSTANTIATE_TEST_SUITE_P(Products, AllocationGranularityProducts,
                         testing::Values(GiantPages{"a2", true, true}, GiantPages{"a3", true, true},
                                         GiantPages{"950", false, true},
                                         GiantPages{"inf", false, false},
                                         GiantPages{"trn", false, false},
                                         GiantPages{"200i", false, false}),
                         [](const auto& item) { return test_name_on(item.param.product); });

void expect_giant_granularity(bool supported, aclrtMemAttr attribute) {
  SCOPED_TRACE(attribute);
  if (supported) {
    expect_granularity(kGiantPage, block_property(attribute));
  } else {
    expect_granularity_refused(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, block_property(attribute));
  }
}

TEST_P(AllocationGranularityProducts, GRAN_08_GRAN_09_GiantPagesOnlyWhereTheProductHasThem) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product});
  const DeviceBinding binding;
  expect_giant_granularity(GetParam().generic, ACL_MEM_HUGE1G);
  expect_giant_granularity(GetParam().hbm, ACL_HBM_MEM_HUGE1G);
  expect_giant_granularity(false, ACL_MEM_P2P_HUGE1G);
}

TEST_P(AllocationGranularityProducts, GRAN_07_OtherAttributesHave2MiBOnEveryProduct) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", GetParam().product});
  const DeviceBinding binding;
  for (const aclrtMemAttr attribute : kDeviceAttributes) {
    SCOPED_TRACE(attribute);
    expect_granularity(kHugePage, block_property(attribute));
  }
}

TEST(AllocationGranularityInterconnectForm, GRAN_08_P2pGiantPagesHave1GiB) {
  US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a3"}, {"UNDERSTUDY_FEATURES", "+p2p_huge1g"});
  const DeviceBinding binding;
  for (const aclrtMemAttr attribute : kGiantAttributes) {
    SCOPED_TRACE(attribute);
    expect_granularity(kGiantPage, block_property(attribute));
  }
}

}  // namespace
}  // namespace understudy_test::vmm
