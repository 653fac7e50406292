// SPDX-License-Identifier: Apache-2.0
//
// aclrtReleaseMemAddress: gives back a reservation, but only one without mappings.
// Covers: REL-01, REL-02, REL-03, REL-04, REL-05, REL-06.
#include "rules/vmm_objects.h"

namespace understudy_test::vmm {
namespace {

using ReleaseMemAddress = DeviceTest;

void expect_release_refused(void* start) {
  const FiguresStay watch;
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtReleaseMemAddress(start));
}

TEST_F(ReleaseMemAddress, REL_01_NullIsRefused) {
  const FiguresStay watch;
  EXPECT_FAILS(ACL_ERROR_INVALID_PARAM, aclrtReleaseMemAddress(nullptr));
}

TEST_F(ReleaseMemAddress, REL_02_EmptyReservationIsReleased) {
  const FiguresStay watch;
  for (const size_t size : {size_t{1}, size_t{512}, kHugePage, 3 * kGiB, 32 * kTiB}) {
    SCOPED_TRACE(size);
    EXPECT_SUCCESS(aclrtReleaseMemAddress(reserve(size)));
  }
}

TEST_F(ReleaseMemAddress, REL_02_ReservationWhoseMappingsAreGoneIsReleased) {
  const Block block;
  Range range(2 * kHugePage);
  { const Mapping mapping(range.byte(kHugePage), block); }
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range.give_up()));
}

TEST_F(ReleaseMemAddress, REL_02_ReleasedRangeIsNoLongerAReservation) {
  const Block block;
  Range range(kHugePage);
  void* start = range.give_up();
  EXPECT_SUCCESS(aclrtReleaseMemAddress(start));
  EXPECT_FAILS(ACL_ERROR_RT_PARAM_INVALID, aclrtMapMem(start, kHugePage, 0, block.handle(), 0));
}

TEST_F(ReleaseMemAddress, REL_02_ReleasedRangeIsHandedOutAgain) {
  const uint64_t start = find_free_start(kGiB);
  US_SKIP_UNLESS_FOUND(start);
  const Block block;
  for (int round = 0; round < 3; ++round) {
    SCOPED_TRACE(round);
    const Range range(kGiB, 0, address(start));
    ASSERT_EQ(range.start(), address(start));
    const Mapping mapping(range.start(), block);
    expect_usable(range.start());
  }
}

// Far more in sum than there are addresses.
TEST_F(ReleaseMemAddress, REL_02_AddressSpaceDoesNotWearOut) {
  for (int round = 0; round < 5000; ++round) {
    void* range = nullptr;
    ASSERT_SUCCESS(aclrtReserveMemAddress(&range, 16 * kTiB, 0, nullptr, 0)) << round;
    ASSERT_SUCCESS(aclrtReleaseMemAddress(range)) << round;
  }
}

TEST_F(ReleaseMemAddress, REL_03_ReservationWithAMappingIsKept) {
  for (const size_t offset : {size_t{0}, kHugePage, 3 * kHugePage}) {
    SCOPED_TRACE(offset);
    const Block block;
    const Block another;
    const Range range(4 * kHugePage);
    const Mapping mapping(range.byte(offset), block);
    const std::vector<uint8_t> bytes = pattern(kHugePage, 2);
    copy_in(mapping.start(), bytes);

    expect_release_refused(range.start());
    EXPECT_TRUE(copy_out(mapping.start(), bytes.size()) == bytes);
    const Mapping further(range.byte((offset + kHugePage) % (4 * kHugePage)), another);
    expect_usable(further.start());
  }
}

TEST_F(ReleaseMemAddress, REL_03_MappingOfAFreedHandleCountsToo) {
  MappedBlock mapped;
  EXPECT_SUCCESS(aclrtFreePhysical(mapped.block.give_up()));
  expect_release_refused(mapped.start());
  expect_usable(mapped.start());
}

TEST_F(ReleaseMemAddress, REL_03_MappingWithoutAccessCountsToo) {
  const Block block;
  const Range range(kHugePage);
  EXPECT_SUCCESS(aclrtMemMapNoAccess(range.start(), kHugePage, 0, block.handle(), 0));
  expect_release_refused(range.start());
  EXPECT_SUCCESS(aclrtUnmapMem(range.start()));
}

TEST_F(ReleaseMemAddress, REL_03_RefusedReleaseSucceedsOnceTheLastMappingIsGone) {
  const Block block;
  Range range(2 * kHugePage);
  Mapping first(range.start(), block);
  Mapping second(range.byte(kHugePage), block);
  EXPECT_SUCCESS(aclrtUnmapMem(first.give_up()));
  expect_release_refused(range.start());
  EXPECT_SUCCESS(aclrtUnmapMem(second.give_up()));
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range.give_up()));
}

TEST_F(ReleaseMemAddress, REL_04_OnlyTheStartReleases) {
  const Block block;
  const Range range(4 * kHugePage);
  for (const size_t offset : {size_t{1}, 4 * kKiB, kHugePage, 2 * kHugePage, 4 * kHugePage - 1}) {
    SCOPED_TRACE(offset);
    expect_release_refused(range.byte(offset));
  }
  const Mapping mapping(range.byte(2 * kHugePage), block);
  expect_usable(mapping.start());
  expect_release_refused(mapping.start());
  expect_usable(mapping.start());
}

TEST_F(ReleaseMemAddress, REL_05_AddressesNeverReservedAreRefused) {
  int on_stack = 0;
  std::vector<uint8_t> on_heap(4 * kMiB);
  const std::vector<uint64_t> invented = {
      1,          kHugePage,         16 * kTiB + 5 * kGiB,  uint64_t{1} << 46, uint64_t{1} << 63,
      UINT64_MAX, number(&on_stack), number(on_heap.data())};
  for (const uint64_t value : invented) {
    SCOPED_TRACE(value);
    expect_release_refused(address(value));
  }
  on_heap.back() = 1;
  EXPECT_EQ(on_stack, 0);
}

TEST_F(ReleaseMemAddress, REL_05_SecondReleaseIsRefused) {
  void* start = reserve(kGiB);
  EXPECT_SUCCESS(aclrtReleaseMemAddress(start));
  expect_release_refused(start);
}

TEST_F(ReleaseMemAddress, REL_05_HandleIsNoReservation) {
  const Block block;
  expect_release_refused(block.handle());
}

TEST_F(ReleaseMemAddress, REL_06_BlockThatWasMappedThereSurvives) {
  const Block block;
  const std::vector<uint8_t> bytes = pattern(kHugePage, 9);
  {
    const Range range(kHugePage);
    const Mapping mapping(range.start(), block);
    copy_in(mapping.start(), bytes);
  }
  const FiguresStay watch;
  const Range elsewhere(kHugePage);
  const Mapping mapping(elsewhere.start(), block);
  EXPECT_TRUE(copy_out(mapping.start(), bytes.size()) == bytes);
}

TEST_F(ReleaseMemAddress, REL_06_ReleaseChangesNoFigures) {
  const Block block;
  Range range(kHugePage);
  { const Mapping mapping(range.start(), block); }
  const FiguresStay watch;
  EXPECT_SUCCESS(aclrtReleaseMemAddress(range.give_up()));
}

}  // namespace
}  // namespace understudy_test::vmm
