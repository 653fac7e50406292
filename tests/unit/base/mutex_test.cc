// SPDX-License-Identifier: Apache-2.0
#include "base/mutex.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "unit/run_on_threads.h"

namespace understudy {
namespace {

TEST(Mutex, OneThreadAtATimeIsInside) {
  Mutex mutex(LockRank::kExtentAllocator);
  int inside = 0;
  int most_inside = 0;
  int visits = 0;
  run_on_threads(4, [&](int) {
    for (int i = 0; i < 1000; ++i) {
      MutexLock lock(mutex);
      most_inside = std::max(most_inside, ++inside);
      ++visits;
      --inside;
    }
  });
  EXPECT_EQ(most_inside, 1);
  EXPECT_EQ(visits, 4000);
}

TEST(Mutex, LocksFurtherDownTheListMayBeTakenInsideOthers) {
  Mutex outer(LockRank::kReservationIndex);
  Mutex middle(LockRank::kReservation);
  Mutex inner(LockRank::kHostBudget);
  for (int i = 0; i < 2; ++i) {
    MutexLock first(outer);
    MutexLock second(middle);
    MutexLock third(inner);
  }
}

TEST(Mutex, RanksCountForEachThreadByItself) {
  Mutex inner(LockRank::kHostBudget);
  Mutex outer(LockRank::kReservation);
  MutexLock lock(inner);
  std::thread([&] { MutexLock other(outer); }).join();
}

#if defined(US_CHECK_INVARIANTS)

class MutexDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  Mutex outer_{LockRank::kReservation};
  Mutex inner_{LockRank::kHostBudget};
};

void take_both(Mutex& first, Mutex& second) {
  MutexLock lock(first);
  MutexLock other(second);
}

TEST_F(MutexDeathTest, LockFurtherUpTheListIsNotTakenInside) {
  EXPECT_DEATH(take_both(inner_, outer_), "a lock of rank [0-9]+ was taken while");
}

TEST_F(MutexDeathTest, TwoLocksOfOneRankAreNotTakenTogether) {
  Mutex same(LockRank::kReservation);
  EXPECT_DEATH(take_both(outer_, same), "a lock of rank [0-9]+ was taken while");
}

TEST_F(MutexDeathTest, ReleasedLockNoLongerCounts) {
  { MutexLock lock(inner_); }
  take_both(outer_, inner_);
  EXPECT_DEATH(take_both(inner_, outer_), "a lock of rank [0-9]+ was taken while");
}

#endif

}  // namespace
}  // namespace understudy
