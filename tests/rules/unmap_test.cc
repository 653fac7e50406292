// SPDX-License-Identifier: Apache-2.0
//
// aclrtUnmapMem: what ends, what stays, and when memory goes back.
// Covers: UNMAP-01, UNMAP-02, UNMAP-03, UNMAP-04, UNMAP-05, UNMAP-06, UNMAP-07, UNMAP-08.
#include <memory>
#include <vector>

#include "rules/mapping_objects.h"

namespace understudy_test::mapping {
namespace {

class Unmap : public VirtualMemoryTest {};
class UnmapEitherMap : public MapCallTest {};
INSTANTIATE_TEST_SUITE_P(, UnmapEitherMap, both_map_calls(), name_of);

TEST_F(Unmap, UNMAP_01_NullAddressIsRefused) {
  MappedBlock scene;
  mark(scene.start(), kGranule, 1);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtUnmapMem(nullptr));
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 1));
}

TEST_P(UnmapEitherMap, UNMAP_02_TheWholeMappingDisappears) {
  Reservation range(5 * kGranule);
  Block block(3 * kGranule);
  Mapping mapping(range.at(kGranule), block, GetParam().call);
  let_owner_in(mapping.start(), block.size());
  mark(mapping.start(), block.size(), 1);

  mapping.unmap();
  for (size_t offset = 0; offset < range.size(); offset += kMiB) {
    SCOPED_TRACE(offset);
    uint8_t byte = 0xAB;
    EXPECT_FALSE(is_mapped(range.at(offset)));
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
                 aclrtMemcpy(&byte, 1, range.at(offset), 1, ACL_MEMCPY_DEVICE_TO_HOST));
    EXPECT_EQ(byte, 0xAB);
  }
}

TEST_P(UnmapEitherMap, UNMAP_02_TheRangeMayBeMappedAgain) {
  Reservation range(4 * kGranule);
  Block large(4 * kGranule);
  Block small;
  Mapping(range.start(), large, GetParam().call).unmap();
  Mapping(range.at(3 * kGranule), small, GetParam().call).unmap();
  Mapping again(range.start(), large, GetParam().call);
  let_owner_in(again.start(), large.size());
  mark(again.start(), large.size(), 1);
  EXPECT_TRUE(is_marked(again.start(), large.size(), 1));
}

TEST_F(Unmap, UNMAP_02_TheCpuLosesAHostBlock) {
  MappedBlock scene(2 * kGranule, host_property());
  ASSERT_TRUE(cpu_can_read(scene.start()));
  scene.mapping.unmap();
  EXPECT_FALSE(cpu_can_read(scene.start()));
  EXPECT_FALSE(cpu_can_write(scene.at(scene.size() - 1)));
}

TEST_P(UnmapEitherMap, UNMAP_03_AddressInsideAMappingIsRefused) {
  Reservation range(4 * kGranule);
  Block block(2 * kGranule);
  Mapping mapping(range.at(kGranule), block, GetParam().call);
  let_owner_in(mapping.start(), block.size());
  mark(mapping.start(), block.size(), 1);
  for (const size_t offset : {size_t{1}, size_t{4096}, kGranule, 2 * kGranule - 1}) {
    SCOPED_TRACE(offset);
    FiguresStay figures;
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtUnmapMem(at(mapping.start(), offset)));
    EXPECT_TRUE(is_marked(mapping.start(), block.size(), 1));
  }
}

TEST_F(Unmap, UNMAP_04_ReservedButUnmappedAddressIsRefused) {
  Reservation range(4 * kGranule);
  Block block;
  Mapping mapping(range.at(kGranule), block);
  mark(mapping.start(), kGranule, 1);
  for (const size_t granule : {0u, 2u, 3u}) {
    SCOPED_TRACE(granule);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtUnmapMem(range.at(granule * kGranule)));
  }
  EXPECT_TRUE(is_marked(mapping.start(), kGranule, 1));
}

TEST_F(Unmap, UNMAP_04_UnknownAddressIsRefused) {
  int on_the_stack = 5;
  auto on_the_heap = std::make_unique<int>(6);
  void* released = reserve(kGranule);
  ASSERT_SUCCESS(aclrtReleaseMemAddress(released));
  const uint64_t last_granule = ~uint64_t{0} - kGranule + 1;
  void* unknown[] = {&on_the_stack, on_the_heap.get(), released,
                     address(1),    address(kGranule), address(last_granule)};
  for (void* start : unknown) {
    SCOPED_TRACE(start);
    FiguresStay figures;
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtUnmapMem(start));
  }
  EXPECT_EQ(on_the_stack, 5);
  EXPECT_EQ(*on_the_heap, 6);
}

TEST_P(UnmapEitherMap, UNMAP_04_SecondUnmapIsRefused) {
  MappedBlock scene(kGranule, block_property(), GetParam().call);
  scene.mapping.unmap();
  FiguresStay figures;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtUnmapMem(scene.start()));
}

TEST_P(UnmapEitherMap, UNMAP_05_TheLastUnmapReturnsAFreedBlock) {
  struct Kind {
    aclrtMemAttr attribute;
    size_t size;
  };
  for (const Kind kind : {Kind{ACL_HBM_MEM_HUGE, 3 * kGranule}, Kind{ACL_MEM_NORMAL, kGranule},
                          Kind{ACL_HBM_MEM_HUGE1G, kGiB}}) {
    SCOPED_TRACE(kind.attribute);
    const size_t free_at_first = free_bytes();
    Reservation first(kind.size);
    Reservation second(kind.size);
    Block block(kind.size, block_property(kind.attribute));
    Mapping first_mapping(first.start(), block, GetParam().call);
    Mapping second_mapping(second.start(), block, GetParam().call);
    block.free();
    EXPECT_EQ(free_bytes(), free_at_first - kind.size);
    first_mapping.unmap();
    EXPECT_EQ(free_bytes(), free_at_first - kind.size);
    second_mapping.unmap();
    EXPECT_EQ(free_bytes(), free_at_first);
  }
}

TEST_F(Unmap, UNMAP_05_AnOwnedBlockStaysTaken) {
  MappedBlock scene;
  FiguresStay figures;
  scene.mapping.unmap();
}

TEST_F(Unmap, UNMAP_06_BytesOfAnOwnedBlockSurvive) {
  Block block(2 * kGranule);
  Reservation first(block.size());
  Reservation second(3 * block.size());
  const std::vector<uint8_t> bytes = pattern(block.size(), 6);
  {
    Mapping mapping(first.start(), block);
    copy_in(mapping.start(), bytes);
  }
  Mapping elsewhere(second.at(block.size()), block);
  EXPECT_EQ(copy_out(elsewhere.start(), block.size()), bytes);
}

TEST_F(Unmap, UNMAP_06_BytesOfAnOwnedHostBlockSurvive) {
  Block block(kGranule, host_property());
  Reservation range(2 * kGranule);
  {
    Mapping mapping(range.start(), block);
    mark(mapping.start(), kGranule, 1);
  }
  Mapping elsewhere(range.at(kGranule), block);
  EXPECT_TRUE(is_marked(elsewhere.start(), kGranule, 1));
}

TEST_F(Unmap, UNMAP_07_GrantsEndWithTheMapping) {
  MappedBlock scene;
  grant(scene.start(), kGranule, device_location(1));
  grant(scene.start(), kGranule, host_location());
  ASSERT_TRUE(cpu_can_read(scene.start()));

  scene.mapping.unmap();
  EXPECT_FALSE(cpu_can_read(scene.start()));
  Mapping again(scene.start(), scene.block);
  EXPECT_EQ(access_of(again.start(), device_location(0)), 3u);
  EXPECT_EQ(access_of(again.start(), device_location(1)), 0u);
  EXPECT_EQ(access_of(again.start(), host_location()), 0u);
  EXPECT_FALSE(cpu_can_read(again.start()));
}

TEST_F(Unmap, UNMAP_07_AMappingWithoutAccessStartsClosedAgain) {
  MappedBlock scene(kGranule, block_property(), aclrtMemMapNoAccess);
  grant(scene.start(), kGranule, device_location(0));
  scene.mapping.unmap();
  Mapping again(scene.start(), scene.block, aclrtMemMapNoAccess);
  EXPECT_EQ(access_of(again.start(), device_location(0)), 0u);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemset(again.start(), kKiB, 0, kKiB));
}

TEST_F(Unmap, UNMAP_08_TheOtherMappingsStayAsTheyAre) {
  BlockRow row({kGranule, kGranule, 2 * kGranule});
  mark(row.at(0), kGranule, 1);
  mark(row.at(2 * kGranule), 2 * kGranule, 3);
  grant(row.at(0), kGranule, device_location(1));
  grant(row.at(2 * kGranule), 2 * kGranule, host_location());

  row.mapping(1).unmap();
  EXPECT_FALSE(is_mapped(row.at(kGranule)));
  EXPECT_TRUE(is_marked(row.at(0), kGranule, 1));
  EXPECT_TRUE(is_marked(row.at(2 * kGranule), 2 * kGranule, 3));
  EXPECT_EQ(access_of(row.at(0), device_location(1)), 3u);
  EXPECT_TRUE(cpu_can_read(row.at(2 * kGranule)));
}

TEST_F(Unmap, UNMAP_08_AnotherMappingOfTheSameBlockStays) {
  MappedBlock scene;
  Reservation elsewhere(kGranule);
  Mapping alias(elsewhere.start(), scene.block);
  mark(alias.start(), kGranule, 1);
  scene.mapping.unmap();
  EXPECT_TRUE(is_marked(alias.start(), kGranule, 1));
}

}  // namespace
}  // namespace understudy_test::mapping
