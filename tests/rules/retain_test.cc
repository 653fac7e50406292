// SPDX-License-Identifier: Apache-2.0
//
// aclrtMemRetainAllocationHandle: from a mapping back to its block, with a reference of its own.
// Covers: RETAIN-01, RETAIN-02, RETAIN-03, RETAIN-04, RETAIN-05, RETAIN-07.
#include <vector>

#include "rules/mapping_objects.h"

namespace understudy_test::mapping {
namespace {

class Retain : public VirtualMemoryTest {};
class RetainEitherMap : public MapCallTest {};
INSTANTIATE_TEST_SUITE_P(, RetainEitherMap, both_map_calls(), name_of);

aclrtDrvMemHandle retain(void* start) {
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_SUCCESS(aclrtMemRetainAllocationHandle(start, &handle));
  EXPECT_NE(handle, nullptr);
  return handle;
}

TEST_F(Retain, RETAIN_01_NullPointersAreRefused) {
  MappedBlock scene;
  aclrtDrvMemHandle handle = address(0xABAB);
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemRetainAllocationHandle(nullptr, &handle));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemRetainAllocationHandle(scene.start(), nullptr));
  EXPECT_EQ(handle, address(0xABAB));
  scene.block.free();
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreePhysical(scene.block.handle()));
}

TEST_P(RetainEitherMap, RETAIN_02_TheResultIsTheHandleThatWasMapped) {
  Reservation range(4 * kGranule);
  Block first;
  Block second(2 * kGranule);
  Mapping first_mapping(range.start(), first, GetParam().call);
  Mapping second_mapping(range.at(2 * kGranule), second, GetParam().call);
  FiguresStay figures;
  EXPECT_EQ(retain(first_mapping.start()), first.handle());
  EXPECT_EQ(retain(second_mapping.start()), second.handle());
  EXPECT_SUCCESS(aclrtFreePhysical(first.handle()));
  EXPECT_SUCCESS(aclrtFreePhysical(second.handle()));
}

TEST_F(Retain, RETAIN_02_EveryMappingOfABlockGivesTheSameHandle) {
  MappedBlock scene(kGranule, host_property());
  Reservation elsewhere(kGranule);
  Mapping alias(elsewhere.start(), scene.block);
  EXPECT_EQ(retain(scene.start()), scene.block.handle());
  EXPECT_EQ(retain(alias.start()), scene.block.handle());
  EXPECT_SUCCESS(aclrtFreePhysical(scene.block.handle()));
  EXPECT_SUCCESS(aclrtFreePhysical(scene.block.handle()));
}

TEST_F(Retain, RETAIN_02_AMappingOutlivingItsHandleGivesItBack) {
  MappedBlock scene;
  mark(scene.start(), kGranule, 1);
  scene.block.free();
  EXPECT_EQ(retain(scene.start()), scene.block.handle());

  scene.mapping.unmap();
  Reservation elsewhere(kGranule);
  Mapping again(elsewhere.start(), scene.block);
  EXPECT_TRUE(is_marked(again.start(), kGranule, 1));
  EXPECT_SUCCESS(aclrtFreePhysical(scene.block.handle()));
}

TEST_P(RetainEitherMap, RETAIN_03_EachReferenceNeedsItsOwnFree) {
  constexpr int kRetains = 3;
  const size_t free_at_first = free_bytes();
  MappedBlock scene(kGranule, block_property(), GetParam().call);
  for (int i = 0; i < kRetains; ++i) EXPECT_EQ(retain(scene.start()), scene.block.handle());
  scene.mapping.unmap();

  for (int i = 0; i < kRetains; ++i) {
    EXPECT_SUCCESS(aclrtFreePhysical(scene.block.handle()));
    EXPECT_EQ(free_bytes(), free_at_first - kGranule);
  }
  scene.block.free();
  EXPECT_EQ(free_bytes(), free_at_first);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreePhysical(scene.block.handle()));
}

TEST_F(Retain, RETAIN_03_WithAMappingTheReferencesCountTheSame) {
  MappedBlock scene;
  mark(scene.start(), kGranule, 1);
  retain(scene.start());
  EXPECT_SUCCESS(aclrtFreePhysical(scene.block.handle()));
  scene.block.free();
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreePhysical(scene.block.handle()));
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 1));
}

TEST_F(Retain, RETAIN_04_ARetainedBlockOutlivesMappingAndHandle) {
  const size_t free_at_first = free_bytes();
  const std::vector<uint8_t> bytes = pattern(2 * kGranule, 8);
  MappedBlock scene(2 * kGranule);
  copy_in(scene.start(), bytes);
  const aclrtDrvMemHandle retained = retain(scene.start());
  scene.mapping.unmap();
  scene.block.free();
  EXPECT_EQ(free_bytes(), free_at_first - scene.size());

  Reservation elsewhere(scene.size());
  ASSERT_SUCCESS(aclrtMapMem(elsewhere.start(), scene.size(), 0, retained, 0));
  EXPECT_EQ(copy_out(elsewhere.start(), bytes.size()), bytes);
  EXPECT_SUCCESS(aclrtUnmapMem(elsewhere.start()));
  EXPECT_SUCCESS(aclrtFreePhysical(retained));
  EXPECT_EQ(free_bytes(), free_at_first);
}

TEST_F(Retain, RETAIN_05_OnlyTheStartOfAMappingIsAccepted) {
  Reservation range(4 * kGranule);
  Block block(2 * kGranule);
  Mapping mapping(range.at(kGranule), block);
  int on_the_stack = 0;
  const std::vector<void*> wrong = {at(mapping.start(), 1),
                                    at(mapping.start(), 4096),
                                    at(mapping.start(), kGranule),
                                    range.start(),
                                    range.at(3 * kGranule),
                                    &on_the_stack,
                                    address(1),
                                    block.handle()};
  for (void* start : wrong) {
    SCOPED_TRACE(start);
    FiguresStay figures;
    aclrtDrvMemHandle handle = address(0xABAB);
    EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMemRetainAllocationHandle(start, &handle));
    EXPECT_EQ(handle, address(0xABAB));
  }

  mapping.unmap();
  aclrtDrvMemHandle handle = address(0xABAB);
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID,
               aclrtMemRetainAllocationHandle(mapping.start(), &handle));
  EXPECT_EQ(handle, address(0xABAB));

  block.free();
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreePhysical(block.handle()));
}

TEST(RetainAbsent, RETAIN_07_AnOlderDriverSaysNotSupported) {
  US_FRESH_PROCESS({"UNDERSTUDY_FEATURES", "-retain_handle"});
  DeviceScope device;
  MappedBlock scene;
  mark(scene.start(), kGranule, 1);
  aclrtDrvMemHandle handle = address(0xABAB);
  EXPECT_FAILS(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
               aclrtMemRetainAllocationHandle(scene.start(), &handle));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemRetainAllocationHandle(nullptr, &handle));
  EXPECT_EQ(handle, address(0xABAB));
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtMemRetainAllocationHandle(scene.start(), nullptr));
  EXPECT_TRUE(is_marked(scene.start(), kGranule, 1));
  scene.block.free();
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreePhysical(scene.block.handle()));
}

}  // namespace
}  // namespace understudy_test::mapping
