// SPDX-License-Identifier: Apache-2.0
#include "memory/address_arena.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "platform/address_window.h"
#include "unit/expect_result.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

class AddressArenaTest : public testing::Test {
 protected:
  ~AddressArenaTest() override {
    for (const VirtualRange range : ranges()) (void)platform::vacate(range);
  }
  std::vector<VirtualRange> ranges() const {
    std::vector<VirtualRange> found;
    arena_.for_each_range([&](VirtualRange range) { found.push_back(range); });
    return found;
  }
  VirtualRange take(uint64_t size, uint64_t alignment = kGranule) {
    return value_of(arena_.take(size, alignment)).range;
  }

  ReservationIndex reservations_;
  AddressArena arena_{reservations_};
};

TEST_F(AddressArenaTest, HasNoAddressesBeforeTheFirstIsTaken) {
  EXPECT_TRUE(ranges().empty());
  take(kGranule);
  EXPECT_EQ(ranges().size(), 1u);
}

TEST_F(AddressArenaTest, RangesAreAlignedApartAndInsideThePart) {
  const VirtualRange first = take(3 * kGranule);
  const VirtualRange giant = take(kGiB, kGiB);
  const VirtualRange last = take(kGranule);
  EXPECT_TRUE(is_aligned(giant.base, kGiB));
  EXPECT_FALSE(first.overlaps(giant));
  EXPECT_FALSE(first.overlaps(last));
  EXPECT_FALSE(giant.overlaps(last));
  for (const VirtualRange range : {first, giant, last}) {
    EXPECT_TRUE(ranges().front().contains(range));
  }
}

TEST_F(AddressArenaTest, AddressesThatCameBackAreGivenAgain) {
  const VirtualRange range = take(2 * kGranule);
  arena_.give_back(range);
  EXPECT_EQ(take(2 * kGranule).base, range.base);
  EXPECT_EQ(ranges().size(), 1u);
}

TEST_F(AddressArenaTest, ProgramsCannotReleaseOrTakeItsAddresses) {
  const Arena taken = value_of(arena_.take(kGranule, kGranule));
  const VirtualRange part = ranges().front();
  {
    MutexLock lock(taken.reservation->mutex);
    const ReservationUse use = taken.reservation->use;
    EXPECT_EQ(use, ReservationUse::kAllocations);
  }
  EXPECT_TRUE(fails_with(reservations_.remove(part.base), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(reservations_.add_at({part.base, kGranule}, ReservedPages::kHuge),
                         ErrorCode::kInvalidParam));
}

TEST_F(AddressArenaTest, RangeLargerThanAPartHasAPartOfItsOwn) {
  take(kGranule);
  const VirtualRange large = take(100 * kGiB, kGiB);
  EXPECT_EQ(large.size, 100 * kGiB);
  EXPECT_EQ(ranges().size(), 2u);
  arena_.give_back(large);
  EXPECT_EQ(take(100 * kGiB, kGiB).base, large.base);
}

TEST_F(AddressArenaTest, ImpossibleSizesFailAndChangeNothing) {
  take(kGranule);
  for (const uint64_t size : {200 * kTiB, align_down(UINT64_MAX, kGranule)}) {
    EXPECT_TRUE(fails_with(arena_.take(size, kGranule), ErrorCode::kOutOfMemory));
  }
  EXPECT_EQ(ranges().size(), 1u);
}

TEST_F(AddressArenaTest, ThreadsGrowItOnce) {
  run_on_threads(4, [&](int) {
    for (int i = 0; i < 100; ++i) arena_.give_back(take(kGranule));
  });
  EXPECT_EQ(ranges().size(), 1u);
}

}  // namespace
}  // namespace understudy
