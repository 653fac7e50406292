// SPDX-License-Identifier: Apache-2.0
//
// aclrtMapMem and aclrtMemMapNoAccess: arguments, addresses and handles they refuse.
// Covers: MAP-01, MAP-02, MAP-03, MAP-04, MAP-05, MAP-06, MAP-07, MAP-08, MAP-09, MAP-10, MAP-19,
// MAP-20, NOACC-01.
#include <sys/mman.h>

#include <array>
#include <memory>

#include "rules/mapping_objects.h"

namespace understudy_test::mapping {
namespace {

class MapArguments : public MapCallTest {};
INSTANTIATE_TEST_SUITE_P(, MapArguments, both_map_calls(), name_of);

TEST_P(MapArguments, MAP_01_NOACC_01_NullAddressIsRefused) {
  Block block;
  EXPECT_TRUE(is_refused(ACL_ERROR_INVALID_PARAM, nullptr, kGranule, block.handle()));
}

TEST_P(MapArguments, MAP_02_NOACC_01_NullHandleIsRefused) {
  Reservation range(kGranule);
  EXPECT_TRUE(is_refused(ACL_ERROR_INVALID_PARAM, range.start(), kGranule, nullptr));
  EXPECT_FALSE(is_mapped(range.start()));
}

TEST_P(MapArguments, MAP_03_NOACC_01_SizeZeroIsRefused) {
  Reservation range(kGranule);
  Block block;
  EXPECT_TRUE(is_refused(ACL_ERROR_INVALID_PARAM, range.start(), 0, block.handle()));
  EXPECT_FALSE(is_mapped(range.start()));
}

TEST_P(MapArguments, MAP_04_NOACC_01_AnyFlagIsRefused) {
  Reservation range(kGranule);
  Block block;
  for (const uint64_t flags : {uint64_t{1}, uint64_t{2}, uint64_t{1} << 63, ~uint64_t{0}}) {
    SCOPED_TRACE(flags);
    EXPECT_TRUE(is_refused(ACL_ERROR_INVALID_PARAM, range.start(), kGranule, block.handle(),
                           /*offset=*/0, flags));
  }
  EXPECT_FALSE(is_mapped(range.start()));
}

TEST_P(MapArguments, MAP_01_MAP_02_MAP_03_MAP_04_OuterChecksComeBeforeInnerOnes) {
  Reservation range(kGranule);
  Block block;
  constexpr size_t kBadOffset = kGranule;
  EXPECT_TRUE(is_refused(ACL_ERROR_INVALID_PARAM, nullptr, kGranule, block.handle(), kBadOffset));
  EXPECT_TRUE(is_refused(ACL_ERROR_INVALID_PARAM, range.start(), kGranule, nullptr, kBadOffset));
  EXPECT_TRUE(is_refused(ACL_ERROR_INVALID_PARAM, range.start(), 0, block.handle(), kBadOffset));
  EXPECT_TRUE(is_refused(ACL_ERROR_INVALID_PARAM, range.start(), kGranule, block.handle(),
                         kBadOffset, /*flags=*/1));
}

TEST_P(MapArguments, MAP_05_NOACC_01_AnyOffsetIntoTheBlockIsRefused) {
  Reservation range(4 * kGranule);
  Block block(2 * kGranule);
  for (const size_t offset : {size_t{1}, kGranule, 2 * kGranule, ~size_t{0}}) {
    SCOPED_TRACE(offset);
    for (const size_t size : {kGranule, 2 * kGranule}) {
      EXPECT_TRUE(
          is_refused(ACL_ERROR_RT_PARAM_INVALID, range.start(), size, block.handle(), offset));
    }
  }
  EXPECT_FALSE(is_mapped(range.start()));
}

TEST_P(MapArguments, MAP_06_NOACC_01_SizeBeyondTheBlockIsRefused) {
  Reservation range(4 * kGranule);
  Block block;
  for (const size_t size :
       {kGranule + 1, 2 * kGranule, 4 * kGranule, kTiB, ~size_t{0} - kGranule + 1, ~size_t{0}}) {
    SCOPED_TRACE(size);
    EXPECT_TRUE(is_refused(ACL_ERROR_RT_PARAM_INVALID, range.start(), size, block.handle()));
  }
  EXPECT_FALSE(is_mapped(range.start()));
}

TEST_P(MapArguments, MAP_07_NOACC_01_SizeBelowTheBlockIsRefused) {
  Reservation range(4 * kGranule);
  Block block(2 * kGranule);
  for (const size_t size : {size_t{1}, 4 * kKiB, kGranule, 2 * kGranule - 1}) {
    SCOPED_TRACE(size);
    EXPECT_TRUE(is_refused(ACL_ERROR_RT_PARAM_INVALID, range.start(), size, block.handle()));
  }
  EXPECT_FALSE(is_mapped(range.start()));
}

TEST_P(MapArguments, MAP_08_NOACC_01_AddressOffTheGranuleIsRefused) {
  Reservation range(4 * kGranule);
  Block block;
  for (const size_t offset : {size_t{1}, size_t{512}, 4 * kKiB, 64 * kKiB, kMiB, kGranule - 1}) {
    SCOPED_TRACE(offset);
    EXPECT_TRUE(is_refused(ACL_ERROR_RT_PARAM_INVALID, range.at(offset), kGranule, block.handle()));
  }
  EXPECT_FALSE(is_mapped(range.start()));
  EXPECT_FALSE(is_mapped(range.at(kGranule)));
}

TEST_P(MapArguments, MAP_09_NOACC_01_GiantPagesNeedGiantAlignment) {
  for (const aclrtMemAttr attribute : {ACL_HBM_MEM_HUGE1G, ACL_MEM_HUGE1G}) {
    SCOPED_TRACE(attribute);
    Reservation range(3 * kGiB);
    Block block(kGiB, block_property(attribute));
    for (const size_t offset : {kGranule, kGiB / 2, kGiB + kGranule, 2 * kGiB - kGranule}) {
      SCOPED_TRACE(offset);
      EXPECT_TRUE(is_refused(ACL_ERROR_RT_PARAM_INVALID, range.at(offset), kGiB, block.handle()));
      EXPECT_FALSE(is_mapped(range.at(offset)));
    }
    Mapping aligned(range.at(kGiB), block, GetParam().call);
  }
}

TEST_P(MapArguments, MAP_10_NOACC_01_RangeLeavingItsReservationIsRefused) {
  Reservation range(2 * kGranule);
  Block block(2 * kGranule);
  void* before = address(number(range.start()) - kGranule);
  for (void* start : {before, range.at(kGranule), range.at(2 * kGranule)}) {
    SCOPED_TRACE(start);
    EXPECT_TRUE(is_refused(ACL_ERROR_RT_PARAM_INVALID, start, block.size(), block.handle()));
  }
  EXPECT_FALSE(is_mapped(range.start()));
  EXPECT_FALSE(is_mapped(range.at(kGranule)));
}

TEST_P(MapArguments, MAP_10_NOACC_01_AddressOutsideEveryReservationIsRefused) {
  Block block;
  void* released = reserve(kGranule);
  ASSERT_SUCCESS(aclrtReleaseMemAddress(released));
  const uint64_t last_granule = ~uint64_t{0} - kGranule + 1;
  for (void* start : {released, address(kGranule), address(last_granule)}) {
    SCOPED_TRACE(start);
    EXPECT_TRUE(is_refused(ACL_ERROR_RT_PARAM_INVALID, start, kGranule, block.handle()));
  }
}

TEST_P(MapArguments, MAP_10_NOACC_01_OrdinaryMemoryIsNotMappedOver) {
  Block block;
  const size_t size = 2 * kGranule;
  void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  void* aligned = address((number(pages) + kGranule - 1) / kGranule * kGranule);
  *static_cast<char*>(aligned) = 'x';
  EXPECT_TRUE(is_refused(ACL_ERROR_RT_PARAM_INVALID, aligned, kGranule, block.handle()));
  EXPECT_EQ(*static_cast<char*>(aligned), 'x');
  munmap(pages, size);
}

// Two reservations of one granule each, side by side; NULL if the window has no free place.
void* reserve_neighbours() {
  for (uint64_t start = 16 * kTiB; start < 24 * kTiB; start += 31 * kGiB) {
    void* first = nullptr;
    if (aclrtReserveMemAddress(&first, kGranule, 0, address(start), 0) != ACL_SUCCESS) continue;
    void* second = nullptr;
    if (aclrtReserveMemAddress(&second, kGranule, 0, at(first, kGranule), 0) == ACL_SUCCESS) {
      return first;
    }
    EXPECT_SUCCESS(aclrtReleaseMemAddress(first));
  }
  return nullptr;
}

TEST_P(MapArguments, MAP_10_NOACC_01_TwoNeighbouringReservationsAreNotOne) {
  void* start = reserve_neighbours();
  if (start == nullptr) GTEST_SKIP() << "every wished address is occupied here";
  Reservation first(start, kGranule);
  Reservation second(at(start, kGranule), kGranule);
  Block block(2 * kGranule);
  EXPECT_TRUE(is_refused(ACL_ERROR_RT_PARAM_INVALID, start, block.size(), block.handle()));
  EXPECT_FALSE(is_mapped(first.start()));
  EXPECT_FALSE(is_mapped(second.start()));
}

TEST_P(MapArguments, MAP_19_NOACC_01_WhatIsNoHandleIsRefused) {
  Reservation range(kGranule);
  Block other;
  int on_the_stack = 0;
  auto on_the_heap = std::make_unique<std::array<char, 256>>();
  const std::array<aclrtDrvMemHandle, 6> handles = {
      address(1),    &on_the_stack,         on_the_heap.get(),
      range.start(), at(other.handle(), 1), address(~uint64_t{0})};
  for (const aclrtDrvMemHandle handle : handles) {
    SCOPED_TRACE(handle);
    EXPECT_TRUE(is_refused(ACL_ERROR_RT_PARAM_INVALID, range.start(), kGranule, handle));
  }
  EXPECT_FALSE(is_mapped(range.start()));
}

TEST_P(MapArguments, MAP_19_NOACC_01_DestroyedHandleIsRefused) {
  Reservation range(kGranule);
  Block destroyed;
  destroyed.free();
  EXPECT_TRUE(is_refused(ACL_ERROR_RT_PARAM_INVALID, range.start(), kGranule, destroyed.handle()));
  EXPECT_FALSE(is_mapped(range.start()));
}

TEST_P(MapArguments, MAP_20_NOACC_01_FreedHandleThatIsStillMappedIsRefused) {
  MappedBlock scene;
  Reservation elsewhere(kGranule);
  mark(scene.start(), scene.size(), 1);
  scene.block.free();
  EXPECT_TRUE(
      is_refused(ACL_ERROR_RT_PARAM_INVALID, elsewhere.start(), kGranule, scene.block.handle()));
  EXPECT_FALSE(is_mapped(elsewhere.start()));
  EXPECT_TRUE(is_marked(scene.start(), scene.size(), 1));
}

}  // namespace
}  // namespace understudy_test::mapping
