// SPDX-License-Identifier: Apache-2.0
#include "memory/reservation_index.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "platform/address_window.h"
#include "unit/expect_result.h"
#include "unit/platform/planned_fault.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

class ReservationIndexTest : public testing::Test {
 protected:
  ~ReservationIndexTest() override {
    for (const auto& [base, size] : live_) EXPECT_TRUE(is_ok(index_.remove(base)));
  }

  bool is_found(VirtualAddress address) { return index_.find(address) != nullptr; }
  VirtualRange range_around(VirtualAddress address) {
    Reservation* const found = index_.find(address);
    if (found == nullptr) return {};
    MutexLock lock(found->mutex);
    return found->range;
  }
  VirtualRange add(uint64_t size, uint64_t alignment = kGranule) {
    const VirtualRange range = value_of(index_.add_anywhere(size, alignment, ReservedPages::kHuge));
    live_.emplace(range.base, range.size);
    return range;
  }
  void remove(VirtualAddress base) {
    EXPECT_TRUE(is_ok(index_.remove(base)));
    live_.erase(base);
  }
  // A range that is free on the host and in the index.
  static VirtualRange free_range(uint64_t size, uint64_t alignment = kGranule) {
    const VirtualRange range = value_of(platform::occupy_anywhere(size, alignment));
    platform::vacate(range);
    return range;
  }

  ReservationIndex index_;
  std::map<VirtualAddress, uint64_t> live_;
};

TEST_F(ReservationIndexTest, RangeIsFoundByEveryAddressInsideAndNoOther) {
  const VirtualRange range = add(3 * kGranule);
  for (const VirtualAddress address : {range.base, range.base + 1, range.end() - 1}) {
    EXPECT_TRUE(is_found(address));
    EXPECT_EQ(range_around(address), range);
  }
  EXPECT_FALSE(is_found(range.end()));
  EXPECT_FALSE(is_found(range.base - 1));
  remove(range.base);
  EXPECT_FALSE(is_found(range.base));
}

TEST_F(ReservationIndexTest, SizesAreRoundedUpToTheGranule) {
  EXPECT_EQ(add(1).size, kGranule);
  EXPECT_EQ(add(kGranule + 1).size, 2 * kGranule);
}

TEST_F(ReservationIndexTest, AddressesFollowTheAlignment) {
  for (const uint64_t alignment : {kGranule, 64 * kMiB, kGiB}) {
    add(kGranule);
    EXPECT_TRUE(is_aligned(add(kGranule, alignment).base, alignment));
  }
}

TEST_F(ReservationIndexTest, AddressesWithoutAWishStayOutOfTheWindowForWishes) {
  for (int i = 0; i < 10; ++i) {
    const VirtualRange range = add(kGiB, kGiB);
    EXPECT_FALSE(range.overlaps(kExpectedWindow));
    EXPECT_LE(range.end(), PageTable::kEnd);
  }
}

TEST_F(ReservationIndexTest, HostKeepsOutOfAReservationAndGetsItBack) {
  const VirtualRange range = add(kGranule);
  EXPECT_TRUE(platform::is_mapped(range.base));
  EXPECT_FALSE(platform::occupy(range).ok());
  remove(range.base);
  EXPECT_FALSE(platform::is_mapped(range.base));
}

TEST_F(ReservationIndexTest, AddressIsUsedAgainLate) {
  const VirtualRange first = add(kGranule);
  if (!kNearWindow.contains(first)) GTEST_SKIP() << "the host keeps the near window for itself";
  remove(first.base);
  for (int i = 0; i < 10; ++i) {
    const VirtualRange next = add(kGranule);
    EXPECT_GE(next.base, first.end());
    remove(next.base);
  }
}

TEST_F(ReservationIndexTest, NextFitGoesOnBehindTheLastOne) {
  const VirtualRange first = add(3 * kGranule);
  if (!kNearWindow.contains(first)) GTEST_SKIP() << "the host keeps the near window for itself";
  EXPECT_EQ(add(kGranule).base, first.end());
}

TEST_F(ReservationIndexTest, AlignmentHoldsBehindAReservationThatIsInTheWay) {
  const VirtualRange first = add(kGranule);
  if (!kNearWindow.contains(first)) GTEST_SKIP() << "the host keeps the near window for itself";
  // Once at the start of the next place, and once in its middle.
  VirtualAddress next = *align_up(first.end(), kGiB);
  for (const uint64_t distance : {uint64_t{0}, kGranule}) {
    const VirtualRange in_the_way{next + distance, 3 * kGranule};
    ASSERT_TRUE(is_ok(index_.add_at(in_the_way, ReservedPages::kHuge)));
    live_.emplace(in_the_way.base, in_the_way.size);
    EXPECT_EQ(add(2 * kGranule, kGiB).base, next + kGiB);
    next += 2 * kGiB;
  }
}

TEST_F(ReservationIndexTest, PlaceThatTheHostOccupiesIsPassedOver) {
  const VirtualRange first = add(kGranule);
  const PlannedFault fault(SystemCall::kReserveAddresses, 1, EEXIST);
  const VirtualRange second = add(kGranule);
  EXPECT_TRUE(fault.happened());
  EXPECT_FALSE(second.overlaps(first));
  EXPECT_TRUE(platform::is_mapped(second.base));
}

TEST_F(ReservationIndexTest, ExactRangeIsReservedOrNothing) {
  const VirtualRange range = free_range(4 * kGranule);
  EXPECT_EQ(value_of(index_.add_at(range, ReservedPages::kCommon)), range);
  live_.emplace(range.base, range.size);
  for (const VirtualRange overlapping :
       {range, VirtualRange{range.base, kGranule}, VirtualRange{range.end() - kGranule, kGiB},
        VirtualRange{range.base + kGranule, kGranule},
        VirtualRange{range.base - kGranule, 2 * kGranule}}) {
    EXPECT_TRUE(
        fails_with(index_.add_at(overlapping, ReservedPages::kCommon), ErrorCode::kInvalidParam));
  }
}

TEST_F(ReservationIndexTest, ExactRangeInWhichHostMemoryLivesIsRefused) {
  const VirtualRange host = value_of(platform::occupy_anywhere(2 * kGranule, kGranule));
  EXPECT_TRUE(fails_with(index_.add_at(host, ReservedPages::kCommon), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(index_.add_at({host.base + kGranule, kGranule}, ReservedPages::kCommon),
                         ErrorCode::kInvalidParam));
  platform::vacate(host);
}

TEST_F(ReservationIndexTest, ExactRangeThatTheHostCannotMapIsReservedAllTheSame) {
  const VirtualRange far{kFarWindow.end() - kGiB, kGiB};
  EXPECT_EQ(value_of(index_.add_at(far, ReservedPages::kCommon)), far);
  live_.emplace(far.base, far.size);
  EXPECT_TRUE(is_found(far.end() - 1));
  EXPECT_FALSE(platform::is_mapped(far.base));
  // There the index alone knows what overlaps.
  for (const VirtualRange overlapping :
       {VirtualRange{far.end() - kGranule, kGranule},
        VirtualRange{far.base - kGiB, kGiB + kGranule}, VirtualRange{far.base, kGranule}}) {
    EXPECT_TRUE(
        fails_with(index_.add_at(overlapping, ReservedPages::kCommon), ErrorCode::kInvalidParam));
  }
  EXPECT_TRUE(is_ok(index_.add_at({far.base - kGranule, kGranule}, ReservedPages::kCommon)));
  live_.emplace(far.base - kGranule, kGranule);
}

TEST_F(ReservationIndexTest, MoreThanTheHostHasGoesToTheFarWindow) {
  const VirtualRange large = add(100 * kTiB, kGiB);
  EXPECT_TRUE(kFarWindow.contains(large));
  EXPECT_TRUE(fails_with(index_.add_anywhere(100 * kTiB, kGiB, ReservedPages::kHuge),
                         ErrorCode::kOutOfMemory));
  remove(large.base);
  add(100 * kTiB, kGiB);
}

TEST_F(ReservationIndexTest, MoreThanThereAreAddressesIsOutOfMemory) {
  for (const uint64_t size : {kFarWindow.size + 1, uint64_t{UINT64_MAX}}) {
    EXPECT_TRUE(fails_with(index_.add_anywhere(size, kGranule, ReservedPages::kHuge),
                           ErrorCode::kOutOfMemory));
  }
}

TEST_F(ReservationIndexTest, OnlyTheStartOfALiveReservationCanBeRemoved) {
  const VirtualRange range = add(2 * kGranule);
  for (const VirtualAddress address :
       {VirtualAddress{0}, range.base - 1, range.base + 1, range.base + kGranule, range.end(),
        VirtualAddress{UINT64_MAX}}) {
    EXPECT_TRUE(fails_with(index_.remove(address), ErrorCode::kInvalidParam))
        << std::hex << address;
  }
  EXPECT_TRUE(is_found(range.base));
  remove(range.base);
  EXPECT_TRUE(fails_with(index_.remove(range.base), ErrorCode::kInvalidParam));
}

TEST_F(ReservationIndexTest, NeighbourhoodOfAReservationIsRemembered) {
  const VirtualRange range{kFarWindow.base + 10 * kTiB + kGiB, kTiB};
  const AddressKinds& kinds = index_.kinds();
  EXPECT_FALSE(kinds.was_device(range.base));
  ASSERT_TRUE(is_ok(index_.add_at(range, ReservedPages::kCommon)));
  EXPECT_TRUE(kinds.was_device(range.base));
  EXPECT_TRUE(kinds.was_device(range.end() - 1));
  EXPECT_FALSE(kinds.was_device(range.base - kTiB));
  EXPECT_FALSE(kinds.was_device(range.end() + kTiB));
  EXPECT_TRUE(index_.is_occupied(range.base));
  ASSERT_TRUE(is_ok(index_.remove(range.base)));
  EXPECT_TRUE(kinds.was_device(range.base));
  EXPECT_FALSE(index_.is_occupied(range.base));
  EXPECT_FALSE(kinds.was_device(PageTable::kEnd));
  EXPECT_FALSE(kinds.was_device(UINT64_MAX));
}

TEST(AddressKinds, DeviceAddressesStayWhatTheyAre) {
  AddressKinds kinds;
  kinds.note_host(85 * kTiB + 7);
  EXPECT_TRUE(kinds.is_host(85 * kTiB));
  EXPECT_FALSE(kinds.is_host(86 * kTiB));
  kinds.note_device({85 * kTiB + kGiB, kGiB});
  EXPECT_FALSE(kinds.is_host(85 * kTiB));
  kinds.note_host(85 * kTiB + 7);
  EXPECT_TRUE(kinds.was_device(85 * kTiB));
  kinds.note_host(UINT64_MAX);
  EXPECT_FALSE(kinds.was_device(UINT64_MAX));
}

TEST_F(ReservationIndexTest, RandomReservationsNeverOverlap) {
  std::mt19937_64 random(8128);
  // Where the host keeps the near window for itself, each placement takes long.
  const int steps = kNearWindow.contains(add(kGranule)) ? 300 : 60;
  for (int step = 0; step < steps; ++step) {
    if (live_.size() > 30 || (!live_.empty() && random() % 3 == 0)) {
      auto victim = live_.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random() % live_.size()));
      const VirtualAddress base = victim->first;
      remove(base);
      ASSERT_FALSE(is_found(base));
    } else {
      const uint64_t size = 1 + random() % (random() % 4 == 0 ? 8 * kGiB : 64 * kMiB);
      const uint64_t alignment = random() % 2 == 0 ? kGranule : kGiB;
      const VirtualRange range =
          value_of(index_.add_anywhere(size, alignment, ReservedPages::kHuge));
      ASSERT_TRUE(is_aligned(range.base, alignment));
      ASSERT_EQ(range.size, *align_up(size, kGranule));
      for (const auto& [other, other_size] : live_) {
        ASSERT_FALSE(range.overlaps({other, other_size}));
      }
      live_.emplace(range.base, range.size);
    }
  }
}

TEST_F(ReservationIndexTest, ThreadsGetRangesOfTheirOwn) {
  Mutex mutex(LockRank::kErrorLog);
  run_on_threads(4, [&](int) {
    std::vector<VirtualRange> mine;
    for (int i = 0; i < 10; ++i) {
      mine.push_back(value_of(index_.add_anywhere(kGranule, kGranule, ReservedPages::kHuge)));
      EXPECT_TRUE(is_found(mine.back().base));
    }
    MutexLock lock(mutex);
    for (const VirtualRange& range : mine) {
      EXPECT_TRUE(live_.emplace(range.base, range.size).second);
    }
  });
  EXPECT_EQ(live_.size(), 40u);
}

}  // namespace
}  // namespace understudy
