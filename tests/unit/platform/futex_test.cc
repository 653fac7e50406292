// SPDX-License-Identifier: Apache-2.0
#include "platform/futex.h"

#include <gtest/gtest.h>

#include <thread>

#include "unit/run_on_threads.h"

namespace understudy::platform {
namespace {

TEST(Futex, WordThatIsNotAsExpectedIsNotSleptOn) {
  const std::atomic<uint32_t> word{7};
  sleep_on(word, 6, kNever);
}

TEST(Futex, MomentThatHasPassedIsNotWaitedFor) {
  const std::atomic<uint32_t> word{7};
  sleep_on(word, 7, Clock::now());
  sleep_on(word, 7, Deadline());
}

TEST(Futex, SleepEndsAtTheDeadline) {
  const std::atomic<uint32_t> word{0};
  const Deadline deadline = deadline_after(std::chrono::milliseconds(1));
  while (!has_passed(deadline)) sleep_on(word, 0, deadline);
}

TEST(Futex, WakingWhereNobodySleepsDoesNothing) {
  const std::atomic<uint32_t> word{0};
  wake_one(word);
  wake_all(word);
}

TEST(Futex, ChangeOfTheWordWakesAllWhoSleepOnIt) {
  std::atomic<uint32_t> word{0};
  std::atomic<int> up{0};
  run_on_threads(4, [&](int index) {
    if (index == 0) {
      word.store(1);
      wake_all(word);
    } else {
      while (word.load() == 0) sleep_on(word, 0, kNever);
      up.fetch_add(1);
    }
  });
  EXPECT_EQ(up.load(), 3);
}

TEST(Futex, WakingOneAtATimeReachesEverybody) {
  constexpr int kSleepers = 3;
  std::atomic<uint32_t> word{0};
  std::atomic<int> up{0};
  run_on_threads(kSleepers + 1, [&](int index) {
    if (index > 0) {
      while (word.load() == 0) sleep_on(word, 0, kNever);
      up.fetch_add(1);
      return;
    }
    word.store(1);
    while (up.load() < kSleepers) {
      wake_one(word);
      std::this_thread::yield();
    }
  });
}

}  // namespace
}  // namespace understudy::platform
