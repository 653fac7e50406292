// SPDX-License-Identifier: Apache-2.0
//
// aclrtFreePhysical: one reference less, and memory back once nothing holds the block.
// Covers: PFREE-01, PFREE-02, PFREE-03, PFREE-04, PFREE-05, PFREE-06, PFREE-07, PFREE-10.
#include "rules/vmm_objects.h"

namespace understudy_test::vmm {
namespace {

using FreePhysical = DeviceTest;

void expect_free_refused(aclrtDrvMemHandle handle) {
  const FiguresStay watch;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtFreePhysical(handle));
}

aclrtDrvMemHandle retain(void* mapped) {
  aclrtDrvMemHandle handle = nullptr;
  EXPECT_SUCCESS(aclrtMemRetainAllocationHandle(mapped, &handle));
  return handle;
}

TEST_F(FreePhysical, PFREE_01_NullIsRefused) {
  const FiguresStay watch;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtFreePhysical(nullptr));
}

TEST_F(FreePhysical, PFREE_02_UnmappedBlockIsReturnedAtOnce) {
  for (const aclrtMemAttr attribute : kDeviceAttributes) {
    SCOPED_TRACE(attribute);
    const MemoryFigures before = memory_figures();
    const size_t free_before = free_bytes();
    const aclrtDrvMemHandle handle = create_block(5 * kHugePage, block_property(attribute));
    EXPECT_EQ(free_bytes(), free_before - 5 * kHugePage);
    EXPECT_SUCCESS(aclrtFreePhysical(handle));
    EXPECT_EQ(free_bytes(), free_before);
    EXPECT_TRUE(memory_figures() == before);
  }
}

TEST_F(FreePhysical, PFREE_02_ReturnedMemoryCanBeTakenAgain) {
  const size_t everything = free_bytes(ACL_HBM_MEM_HUGE) / kHugePage * kHugePage;
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    const aclrtDrvMemHandle handle = create_block(everything);
    EXPECT_SUCCESS(aclrtFreePhysical(handle));
  }
}

TEST_F(FreePhysical, PFREE_02_HostBlockIsFreedToo) {
  const FiguresStay watch;
  for (const aclrtMemLocationType location : kHostLocations) {
    SCOPED_TRACE(location);
    const aclrtDrvMemHandle handle =
        create_block(kHugePage, block_property(ACL_MEM_HUGE, location));
    EXPECT_SUCCESS(aclrtFreePhysical(handle));
    expect_free_refused(handle);
  }
}

TEST_F(FreePhysical, PFREE_03_PFREE_04_MappedBlockLivesUntilItsMappingEnds) {
  MappedBlock mapped;
  const std::vector<uint8_t> bytes = pattern(kHugePage, 3);
  copy_in(mapped.start(), bytes);
  const size_t held = free_bytes();

  EXPECT_SUCCESS(aclrtFreePhysical(mapped.block.give_up()));
  EXPECT_EQ(free_bytes(), held);
  EXPECT_TRUE(copy_out(mapped.start(), bytes.size()) == bytes);
  expect_usable(mapped.start(), 4);

  EXPECT_SUCCESS(aclrtUnmapMem(mapped.mapping.give_up()));
  EXPECT_EQ(free_bytes(), held + kHugePage);
}

TEST_F(FreePhysical, PFREE_03_OtherBlocksOfTheReservationAreNotTouched) {
  const Range range(2 * kHugePage);
  Block first;
  const Block second;
  const Mapping first_mapping(range.start(), first);
  const Mapping second_mapping(range.byte(kHugePage), second);
  const std::vector<uint8_t> bytes = pattern(2 * kHugePage, 5);
  copy_in(range.start(), bytes);
  EXPECT_SUCCESS(aclrtFreePhysical(first.give_up()));
  EXPECT_TRUE(copy_out(range.start(), bytes.size()) == bytes);
}

TEST_F(FreePhysical, PFREE_05_SecondFreeWhileMappedIsRefused) {
  MappedBlock mapped;
  const std::vector<uint8_t> bytes = pattern(4 * kKiB, 6);
  copy_in(mapped.start(), bytes);
  const aclrtDrvMemHandle handle = mapped.block.give_up();
  EXPECT_SUCCESS(aclrtFreePhysical(handle));
  expect_free_refused(handle);
  EXPECT_TRUE(copy_out(mapped.start(), bytes.size()) == bytes);
}

TEST_F(FreePhysical, PFREE_05_SecondFreeOfADestroyedBlockIsRefused) {
  const aclrtDrvMemHandle never_mapped = create_block(kHugePage);
  EXPECT_SUCCESS(aclrtFreePhysical(never_mapped));
  expect_free_refused(never_mapped);

  aclrtDrvMemHandle once_mapped = nullptr;
  {
    MappedBlock mapped;
    once_mapped = mapped.block.give_up();
    EXPECT_SUCCESS(aclrtFreePhysical(once_mapped));
  }
  expect_free_refused(once_mapped);
}

TEST_F(FreePhysical, PFREE_05_StaleHandleDoesNotReachANewerBlock) {
  const aclrtDrvMemHandle stale = create_block(kHugePage);
  EXPECT_SUCCESS(aclrtFreePhysical(stale));
  const MappedBlock newer;
  expect_free_refused(stale);
  expect_usable(newer.start());
}

TEST_F(FreePhysical, PFREE_06_InventedHandlesAreRefused) {
  const MappedBlock live;
  int on_stack = 0;
  const std::vector<uint8_t> on_heap(kKiB);
  const uint64_t handle = number(live.block.handle());
  const std::vector<uint64_t> invented = {1,
                                          2,
                                          0x1000,
                                          0xdeadbeef,
                                          uint64_t{1} << 47,
                                          uint64_t{1} << 63,
                                          UINT64_MAX,
                                          handle + 1,
                                          handle - 1,
                                          handle ^ (uint64_t{1} << 62),
                                          number(&on_stack),
                                          number(on_heap.data()),
                                          number(live.start())};
  for (const uint64_t value : invented) {
    // A small handle has neighbours that are NULL or another entry of the list.
    if (value == 0 || value == handle) continue;
    SCOPED_TRACE(value);
    expect_free_refused(address(value));
  }
  expect_usable(live.start());
}

TEST_F(FreePhysical, PFREE_07_EveryRetainAllowsOneMoreFree) {
  for (const int retains : {1, 2, 7}) {
    SCOPED_TRACE(retains);
    MappedBlock mapped;
    const aclrtDrvMemHandle handle = mapped.block.give_up();
    const size_t held = free_bytes();
    for (int i = 0; i < retains; ++i) EXPECT_EQ(retain(mapped.start()), handle);
    for (int i = 0; i < retains + 1; ++i) EXPECT_SUCCESS(aclrtFreePhysical(handle));
    expect_free_refused(handle);
    EXPECT_EQ(free_bytes(), held);
    expect_usable(mapped.start());

    EXPECT_SUCCESS(aclrtUnmapMem(mapped.mapping.give_up()));
    EXPECT_EQ(free_bytes(), held + kHugePage);
    expect_free_refused(handle);
  }
}

TEST_F(FreePhysical, PFREE_07_RetainedReferencesHoldAnUnmappedBlock) {
  const size_t before = free_bytes();
  MappedBlock mapped;
  const aclrtDrvMemHandle handle = mapped.block.give_up();
  EXPECT_EQ(retain(mapped.start()), handle);
  EXPECT_SUCCESS(aclrtUnmapMem(mapped.mapping.give_up()));

  EXPECT_SUCCESS(aclrtFreePhysical(handle));
  EXPECT_EQ(free_bytes(), before - kHugePage);
  EXPECT_SUCCESS(aclrtFreePhysical(handle));
  EXPECT_EQ(free_bytes(), before);
  expect_free_refused(handle);
}

TEST_F(FreePhysical, PFREE_10_BlockMappedTwiceNeedsBothMappingsGone) {
  const size_t before = free_bytes();
  Block block;
  const Range range(2 * kHugePage);
  Mapping first(range.start(), block);
  Mapping second(range.byte(kHugePage), block);
  const std::vector<uint8_t> bytes = pattern(kHugePage, 8);
  copy_in(first.start(), bytes);

  EXPECT_SUCCESS(aclrtFreePhysical(block.give_up()));
  EXPECT_EQ(free_bytes(), before - kHugePage);
  EXPECT_SUCCESS(aclrtUnmapMem(first.give_up()));
  EXPECT_EQ(free_bytes(), before - kHugePage);
  EXPECT_TRUE(copy_out(second.start(), bytes.size()) == bytes);
  EXPECT_SUCCESS(aclrtUnmapMem(second.give_up()));
  EXPECT_EQ(free_bytes(), before);
}

TEST_F(FreePhysical, PFREE_10_BlockMappedTwiceNeedsEveryReferenceFreed) {
  const size_t before = free_bytes();
  Block block;
  const aclrtDrvMemHandle handle = block.give_up();
  const Range range(kHugePage);
  const Range other_range(kHugePage);
  {
    const Mapping first(range.start(), kHugePage, handle);
    const Mapping second(other_range.start(), kHugePage, handle);
    EXPECT_EQ(retain(second.start()), handle);
  }
  EXPECT_EQ(free_bytes(), before - kHugePage);
  EXPECT_SUCCESS(aclrtFreePhysical(handle));
  EXPECT_EQ(free_bytes(), before - kHugePage);
  EXPECT_SUCCESS(aclrtFreePhysical(handle));
  EXPECT_EQ(free_bytes(), before);
}

}  // namespace
}  // namespace understudy_test::vmm
