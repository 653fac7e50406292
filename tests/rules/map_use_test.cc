// SPDX-License-Identifier: Apache-2.0
//
// aclrtMapMem: what the owner and the CPU can do with a mapping, and what it says about itself.
// Covers: MAP-13, MAP-14, MAP-23, MAP-24.
#include <cstring>
#include <vector>

#include "rules/mapping_objects.h"

namespace understudy_test::mapping {
namespace {

class MapUse : public VirtualMemoryTest {};

TEST_F(MapUse, MAP_13_OneCopySpansBlocksThatLieBackToBack) {
  BlockRow row({kGranule, 2 * kGranule, kGranule});
  const std::vector<uint8_t> bytes = pattern(row.size());
  copy_in(row.start(), bytes);
  EXPECT_EQ(copy_out(row.start(), row.size()), bytes);

  Reservation elsewhere(2 * kGranule);
  Mapping middle(elsewhere.start(), row.block(1));
  const auto expected = bytes.begin() + static_cast<ptrdiff_t>(kGranule);
  EXPECT_EQ(copy_out(middle.start(), kKiB),
            std::vector<uint8_t>(expected, expected + static_cast<ptrdiff_t>(kKiB)));
}

TEST_F(MapUse, MAP_13_SmallCopyAndMemsetCrossTheSeam) {
  BlockRow row({kGranule, kGranule});
  void* before_the_seam = row.at(kGranule - 101);
  copy_in(before_the_seam, pattern(203, 5));
  EXPECT_EQ(copy_out(before_the_seam, 203), pattern(203, 5));

  EXPECT_SUCCESS(aclrtMemset(before_the_seam, 203, 0x5A, 203));
  EXPECT_EQ(copy_out(before_the_seam, 203), std::vector<uint8_t>(203, 0x5A));
}

TEST_F(MapUse, MAP_13_OrderOfMappingDoesNotMatter) {
  Reservation range(2 * kGranule);
  Block left;
  Block right;
  Mapping right_mapping(range.at(kGranule), right);
  Mapping left_mapping(range.start(), left);
  const std::vector<uint8_t> bytes = pattern(2 * kGranule, 3);
  copy_in(range.start(), bytes);
  EXPECT_EQ(copy_out(range.start(), bytes.size()), bytes);
}

TEST_F(MapUse, MAP_14_OwnerReadsAndWritesAtOnce) {
  for (const aclrtMemAttr attribute : {ACL_HBM_MEM_HUGE, ACL_HBM_MEM_NORMAL, ACL_MEM_NORMAL,
                                       ACL_MEM_HUGE, ACL_MEM_P2P_NORMAL, ACL_MEM_P2P_HUGE}) {
    SCOPED_TRACE(attribute);
    MappedBlock scene(kGranule, block_property(attribute));
    copy_in(scene.start(), pattern(kGranule, 2));
    EXPECT_EQ(copy_out(scene.start(), kGranule), pattern(kGranule, 2));
  }
}

TEST_F(MapUse, MAP_14_GiantPagesAreUsableFromEndToEnd) {
  MappedBlock scene(2 * kGiB, block_property(ACL_HBM_MEM_HUGE1G));
  mark(scene.start(), scene.size(), 1);
  EXPECT_TRUE(is_marked(scene.start(), scene.size(), 1));
}

TEST_F(MapUse, MAP_14_EveryDeviceOwnsItsBlocks) {
  DeviceScope other(7);
  MappedBlock scene(kGranule, block_property(ACL_HBM_MEM_HUGE, ACL_MEM_LOCATION_TYPE_DEVICE, 7));
  mark(scene.start(), scene.size(), 1);
  EXPECT_TRUE(is_marked(scene.start(), scene.size(), 1));
}

struct PageSize {
  aclrtMemAttr attribute;
  aclrtMemLocation location;
  size_t size;
  uint32_t page;
};

void expect_attributes(const PageSize& expected) {
  SCOPED_TRACE(testing::Message() << "attribute " << expected.attribute << ", location type "
                                  << expected.location.type);
  MappedBlock scene(expected.size, block_property(expected.attribute, expected.location.type,
                                                  expected.location.id));
  for (const size_t offset : {size_t{0}, size_t{1}, expected.size / 2, expected.size - 1}) {
    SCOPED_TRACE(offset);
    aclrtPtrAttributes attributes;
    memset(&attributes, 0xEE, sizeof attributes);
    EXPECT_SUCCESS(aclrtPointerGetAttributes(scene.at(offset), &attributes));
    EXPECT_EQ(attributes.location.type, expected.location.type);
    EXPECT_EQ(attributes.location.id, expected.location.id);
    EXPECT_EQ(attributes.pageSize, expected.page);
  }
}

constexpr uint32_t kNormalPage = 4096;
constexpr uint32_t kHugePage = 2097152;
constexpr uint32_t kGiantPage = 1073741824;

TEST_F(MapUse, MAP_23_EveryByteOfADeviceBlockTellsDeviceAndPageSize) {
  for (const PageSize& expected : {
           PageSize{ACL_HBM_MEM_HUGE, device_location(0), 2 * kGranule, kHugePage},
           PageSize{ACL_HBM_MEM_HUGE, device_location(3), kGranule, kHugePage},
           PageSize{ACL_HBM_MEM_NORMAL, device_location(0), kGranule, kHugePage},
           PageSize{ACL_MEM_HUGE, device_location(0), kGranule, kHugePage},
           PageSize{ACL_MEM_P2P_HUGE, device_location(7), kGranule, kHugePage},
           PageSize{ACL_MEM_NORMAL, device_location(0), 2 * kGranule, kNormalPage},
           PageSize{ACL_MEM_P2P_NORMAL, device_location(1), kGranule, kNormalPage},
           PageSize{ACL_MEM_HUGE1G, device_location(0), kGiB, kGiantPage},
           PageSize{ACL_HBM_MEM_HUGE1G, device_location(2), 2 * kGiB, kGiantPage},
       }) {
    expect_attributes(expected);
  }
}

TEST_F(MapUse, MAP_23_EveryByteOfAHostBlockTellsLocationAndPageSize) {
  for (const aclrtMemLocationType type :
       {ACL_MEM_LOCATION_TYPE_HOST, ACL_MEM_LOCATION_TYPE_HOST_NUMA}) {
    const aclrtMemLocation location{.id = 0, .type = type};
    for (const PageSize& expected : {
             PageSize{ACL_HBM_MEM_HUGE, location, 2 * kGranule, kHugePage},
             PageSize{ACL_HBM_MEM_NORMAL, location, kGranule, kHugePage},
             PageSize{ACL_MEM_HUGE, location, kGranule, kHugePage},
             PageSize{ACL_MEM_P2P_HUGE, location, kGranule, kHugePage},
             PageSize{ACL_DDR_MEM_HUGE, location, kGranule, kHugePage},
             PageSize{ACL_DDR_MEM_P2P_HUGE, location, kGranule, kHugePage},
             PageSize{ACL_MEM_NORMAL, location, kGranule, kNormalPage},
             PageSize{ACL_MEM_P2P_NORMAL, location, kGranule, kNormalPage},
             PageSize{ACL_DDR_MEM_NORMAL, location, kGranule, kNormalPage},
             PageSize{ACL_DDR_MEM_P2P_NORMAL, location, kGranule, kNormalPage},
         }) {
      expect_attributes(expected);
    }
  }
}

TEST_F(MapUse, MAP_24_CpuReadsAndWritesMappedHostBlocks) {
  for (const aclrtMemLocationType location :
       {ACL_MEM_LOCATION_TYPE_HOST, ACL_MEM_LOCATION_TYPE_HOST_NUMA}) {
    for (const aclrtMemAttr attribute : {ACL_HBM_MEM_HUGE, ACL_DDR_MEM_NORMAL}) {
      SCOPED_TRACE(testing::Message() << "location " << location << ", attribute " << attribute);
      MappedBlock scene(2 * kGranule, host_property(attribute, location));
      ASSERT_TRUE(cpu_can_write(scene.start()));
      ASSERT_TRUE(cpu_can_write(scene.at(scene.size() - 1)));

      const std::vector<uint8_t> by_cpu = pattern(scene.size(), 4);
      memcpy(scene.start(), by_cpu.data(), by_cpu.size());
      EXPECT_EQ(copy_out(scene.start(), scene.size()), by_cpu);

      const std::vector<uint8_t> by_copy = pattern(scene.size(), 5);
      copy_in(scene.start(), by_copy);
      EXPECT_EQ(memcmp(scene.start(), by_copy.data(), by_copy.size()), 0);
    }
  }
}

TEST_F(MapUse, MAP_24_CpuSeesOneHostBlockAtTwoPlaces) {
  MappedBlock scene(kGranule, host_property());
  Reservation elsewhere(kGranule);
  Mapping alias(elsewhere.start(), scene.block);
  ASSERT_TRUE(cpu_can_write(scene.start()));
  ASSERT_TRUE(cpu_can_read(alias.start()));
  *static_cast<volatile char*>(scene.start()) = 'a';
  EXPECT_EQ(*static_cast<volatile char*>(alias.start()), 'a');
}

}  // namespace
}  // namespace understudy_test::mapping
