// SPDX-License-Identifier: Apache-2.0
#include "platform/futex.h"

#include <gtest/gtest.h>

#include <thread>

#include "unit/run_on_threads.h"

namespace understudy::platform {
namespace {

TEST(Futex, WordThatIsNotAsExpectedIsNotSleptOn) {
  const std::atomic<uint32_t> word{7};
  EXPECT_EQ(sleep_on(word, 6, kNever), SleepEnd::kNotAsleep);
  EXPECT_EQ(sleep_on_shared(word, 8, kNever), SleepEnd::kNotAsleep);
}

TEST(Futex, MomentThatHasPassedIsNotWaitedFor) {
  const std::atomic<uint32_t> word{7};
  EXPECT_EQ(sleep_on(word, 7, Clock::now()), SleepEnd::kTimeOver);
  EXPECT_EQ(sleep_on(word, 7, Deadline()), SleepEnd::kTimeOver);
  EXPECT_EQ(sleep_on_shared(word, 7, Deadline()), SleepEnd::kTimeOver);
}

TEST(Futex, SleepEndsAtTheDeadlineAndNotBefore) {
  const std::atomic<uint32_t> word{0};
  const Deadline deadline = deadline_after(std::chrono::milliseconds(1));
  SleepEnd end = SleepEnd::kInterrupted;
  while (end == SleepEnd::kInterrupted) end = sleep_on(word, 0, deadline);
  EXPECT_EQ(end, SleepEnd::kTimeOver);
  EXPECT_TRUE(has_passed(deadline));
}

TEST(Futex, WakingWithoutASleeperWakesNoThread) {
  const std::atomic<uint32_t> word{0};
  EXPECT_EQ(wake_one(word), 0);
  EXPECT_EQ(wake_all(word), 0);
  EXPECT_EQ(wake_all_processes(word), 0);
}

// Threads that sleep on a word until it is 1.
class FutexSleepers : public testing::Test {
 protected:
  static constexpr int kSleepers = 3;

  void sleep_until_set() {
    while (word_.load() == 0) {
      ready_.fetch_add(1);
      sleep_on(word_, 0, kNever);
    }
    up_.fetch_add(1);
  }
  void wait_until_ready() const {
    while (ready_.load() < kSleepers) std::this_thread::yield();
  }

  std::atomic<uint32_t> word_{0};
  std::atomic<int> ready_{0};
  std::atomic<int> up_{0};
};

TEST_F(FutexSleepers, ChangeOfTheWordWakesAllWhoSleepOnIt) {
  run_on_threads(kSleepers + 1, [&](int index) {
    if (index > 0) return sleep_until_set();
    wait_until_ready();
    word_.store(1);
    wake_all(word_);
  });
  EXPECT_EQ(up_.load(), kSleepers);
}

// The word does not change before three sleeps were ended, each by a call of its own.
TEST_F(FutexSleepers, WakingOneEndsOneSleep) {
  run_on_threads(kSleepers + 1, [&](int index) {
    if (index > 0) return sleep_until_set();
    for (int woken = 0; woken < kSleepers;) {
      const int one = wake_one(word_);
      EXPECT_LE(one, 1);
      woken += one;
      if (one == 0) std::this_thread::yield();
    }
    word_.store(1);
    wake_all(word_);
  });
  EXPECT_EQ(up_.load(), kSleepers);
}

}  // namespace
}  // namespace understudy::platform
