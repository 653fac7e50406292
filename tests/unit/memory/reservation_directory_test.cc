// SPDX-License-Identifier: Apache-2.0
#include "memory/reservation_directory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <thread>
#include <vector>

namespace understudy {
namespace {

constexpr VirtualAddress kEnd = VirtualAddress{1} << 48;

class ReservationDirectoryTest : public testing::Test {
 protected:
  void enter(VirtualRange range, Reservation& reservation) {
    directory_.prepare();
    directory_.enter(range, reservation);
  }

  ReservationDirectory directory_;
  Reservation one_;
  Reservation other_;
};

TEST_F(ReservationDirectoryTest, IsEmptyAtFirst) {
  for (const VirtualAddress address : {VirtualAddress{0}, 24 * kTiB, kEnd - 1, kEnd, ~uint64_t{}}) {
    EXPECT_EQ(directory_.find(address), nullptr);
  }
}

TEST_F(ReservationDirectoryTest, RangeOfAnyShapeIsFoundByItsAddressesAndNoOther) {
  constexpr uint64_t kLarge = 512 * kGiB;
  const std::vector<VirtualRange> shapes = {
      {24 * kTiB, kGranule},
      {24 * kTiB + kGiB - kGranule, 2 * kGranule},
      {24 * kTiB, kGiB},
      {24 * kTiB + kGranule, kGiB},
      {24 * kTiB + 3 * kGranule, 5 * kGiB},
      {24 * kTiB, kLarge},
      {24 * kTiB + kGiB, kLarge},
      {24 * kTiB + kLarge - kGranule, 2 * kGranule},
      {24 * kTiB + kLarge - kGiB - kGranule, 3 * kLarge + 2 * kGiB + 2 * kGranule},
      {0, kEnd},
  };
  for (const VirtualRange& range : shapes) {
    enter(range, one_);
    for (const VirtualAddress inside :
         {range.base, range.base + kGranule - 1, range.base + range.size / 2, range.end() - 1}) {
      EXPECT_EQ(directory_.find(inside), &one_) << std::hex << inside;
    }
    EXPECT_EQ(directory_.find(range.base - 1), nullptr);
    EXPECT_EQ(directory_.find(range.end()), nullptr);
    directory_.leave(range);
    for (const VirtualAddress was : {range.base, range.base + range.size / 2, range.end() - 1}) {
      EXPECT_EQ(directory_.find(was), nullptr) << std::hex << was;
    }
  }
}

TEST_F(ReservationDirectoryTest, NeighboursStayWhenOneLeaves) {
  const VirtualRange first{24 * kTiB, kGranule};
  const VirtualRange second{first.end(), kGiB};
  enter(first, one_);
  enter(second, other_);
  directory_.leave(first);
  EXPECT_EQ(directory_.find(first.base), nullptr);
  EXPECT_EQ(directory_.find(second.base), &other_);
  EXPECT_EQ(directory_.find(second.end() - 1), &other_);
}

TEST_F(ReservationDirectoryTest, EntryThatLedToSmallOnesCanHoldALargeOneLater) {
  enter({24 * kTiB + kGranule, kGranule}, one_);
  directory_.leave({24 * kTiB + kGranule, kGranule});
  enter({24 * kTiB, 512 * kGiB}, other_);
  EXPECT_EQ(directory_.find(24 * kTiB + kGranule), &other_);
}

TEST_F(ReservationDirectoryTest, NodesAreUsedAgainWhereverTheNextRangeLies) {
  for (uint64_t i = 0; i < 10'000; ++i) {
    const VirtualRange range{i * 7 * kGiB, kGranule};
    enter(range, one_);
    directory_.leave(range);
  }
  EXPECT_LE(directory_.nodes(), 8u);
}

TEST_F(ReservationDirectoryTest, AgreesWithAnOrderedMap) {
  struct Entered {
    VirtualAddress end;
    Reservation* reservation;
  };
  std::map<VirtualAddress, Entered> model;
  std::vector<Reservation> reservations(64);
  std::mt19937_64 random(20'26);
  const auto expected = [&](VirtualAddress address) -> Reservation* {
    const auto behind = model.upper_bound(address);
    if (behind == model.begin()) return nullptr;
    const Entered& before = std::prev(behind)->second;
    return address < before.end ? before.reservation : nullptr;
  };
  for (int step = 0; step < 20'000; ++step) {
    if (!model.empty() && random() % 2 == 0) {
      auto victim = model.begin();
      std::advance(victim, static_cast<std::ptrdiff_t>(random() % model.size()));
      directory_.leave({victim->first, victim->second.end - victim->first});
      model.erase(victim);
    } else {
      // Few places of each kind, so that nodes are shared and emptied often.
      const uint64_t unit = uint64_t{1} << (21 + 9 * (random() % 3));
      const VirtualRange range{(24 * kTiB + random() % 3 * kTiB + random() % 8 * unit) % kEnd,
                               (1 + random() % 4) * unit + random() % 3 * kGranule};
      const auto behind = model.lower_bound(range.end());
      if (range.end() > kEnd ||
          (behind != model.begin() && std::prev(behind)->second.end > range.base)) {
        continue;
      }
      Reservation& reservation = reservations[random() % reservations.size()];
      enter(range, reservation);
      model.emplace(range.base, Entered{range.end(), &reservation});
    }
    for (const auto& [base, entered] : model) {
      for (const VirtualAddress at : {base - 1, base, entered.end - 1, entered.end}) {
        ASSERT_EQ(directory_.find(at), expected(at)) << std::hex << at;
      }
    }
    const VirtualAddress anywhere = 24 * kTiB + random() % (8 * kTiB);
    ASSERT_EQ(directory_.find(anywhere), expected(anywhere));
  }
}

TEST_F(ReservationDirectoryTest, ReadersFindAReservationWhileOthersComeAndGo) {
  const VirtualRange stays{24 * kTiB, 3 * kGranule};
  enter(stays, one_);
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done.load()) {
      ASSERT_EQ(directory_.find(stays.base + kGranule), &one_);
      Reservation* const found = directory_.find(25 * kTiB + kGranule);
      ASSERT_TRUE(found == nullptr || found == &other_);
    }
  });
  for (uint64_t i = 0; i < 20'000; ++i) {
    // In turn one granule, one GiB and more, of a node of its own and of the one that stays.
    const VirtualRange range{i % 2 == 0 ? 25 * kTiB : stays.end(),
                             i % 3 == 0 ? kGranule : (i % 3) * kGiB + 2 * kGranule};
    enter(range, other_);
    directory_.leave(range);
  }
  done.store(true);
  reader.join();
}

}  // namespace
}  // namespace understudy
