// SPDX-License-Identifier: Apache-2.0
#include "server/ledger_mutex.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <thread>

#include "unit/other_process.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

using Holder = LedgerMutexWord::Holder;

constexpr Holder kFirst = 1;
constexpr Holder kSecond = 2;
constexpr Holder kHighest = (1U << 31) - 2;

// All live, but for one.
class Living final : public LedgerMutexWord::Census {
 public:
  explicit Living(Holder dead = 0) : dead_(dead) {}

  bool is_alive(Holder holder) const override {
    asked_.fetch_add(1);
    return holder != dead_.load();
  }
  void note_death(Holder holder) { dead_.store(holder); }
  uint64_t pending() const { return asked_.load(); }

 private:
  std::atomic<Holder> dead_;
  mutable std::atomic<uint64_t> asked_{0};
};

class LedgerMutexTest : public testing::Test {
 protected:
  LedgerLocking lock(Holder self, Deadline deadline = kNever) {
    return mutex_.lock(self, census_, deadline);
  }
  static Deadline soon() { return Clock::now() + std::chrono::milliseconds(10); }

  Living census_;
  LedgerMutexWord mutex_;
};

TEST_F(LedgerMutexTest, FreeOneIsTakenAtOnce) {
  for (const Holder holder : {kFirst, kSecond, kHighest}) {
    // Also by one who has no time.
    EXPECT_EQ(lock(holder, Deadline()), LedgerLocking::kTaken);
    mutex_.unlock();
  }
  EXPECT_EQ(census_.pending(), 0u);
}

TEST_F(LedgerMutexTest, TakenOneIsWaitedForUntilTheDeadline) {
  ASSERT_EQ(lock(kFirst), LedgerLocking::kTaken);
  EXPECT_EQ(lock(kSecond, Deadline()), LedgerLocking::kTimedOut);
  const Deadline deadline = soon();
  EXPECT_EQ(lock(kSecond, deadline), LedgerLocking::kTimedOut);
  EXPECT_GE(Clock::now(), deadline);
  // Whoever gave up has left nothing behind.
  mutex_.unlock();
  EXPECT_EQ(lock(kSecond), LedgerLocking::kTaken);
  EXPECT_EQ(lock(kFirst, Deadline()), LedgerLocking::kTimedOut);
  mutex_.unlock();
}

TEST_F(LedgerMutexTest, OneWhoseHolderIsDeadIsTakenFromIt) {
  for (const Holder dead : {kFirst, kHighest}) {
    census_.note_death(dead);
    ASSERT_EQ(lock(dead), LedgerLocking::kTaken);
    EXPECT_EQ(lock(kSecond, Deadline()), LedgerLocking::kTakenFromTheDead);
    // From now on it is the second one's.
    EXPECT_EQ(lock(kFirst + 2, Deadline()), LedgerLocking::kTimedOut);
    mutex_.unlock();
    EXPECT_EQ(lock(kSecond), LedgerLocking::kTaken);
    mutex_.unlock();
  }
}

TEST_F(LedgerMutexTest, OneOfWhomTheDeadWaitedIsLeftToItsHolder) {
  ASSERT_EQ(lock(kFirst), LedgerLocking::kTaken);
  ASSERT_EQ(lock(kSecond, Deadline()), LedgerLocking::kTimedOut);
  census_.note_death(kSecond);
  EXPECT_EQ(lock(kSecond + 1, soon()), LedgerLocking::kTimedOut);
  mutex_.unlock();
}

TEST_F(LedgerMutexTest, OtherThreadOfTheSameProcessIsNotDead) {
  ASSERT_EQ(lock(kFirst), LedgerLocking::kTaken);
  // Whatever others may think of it.
  census_.note_death(kFirst);
  EXPECT_EQ(lock(kFirst, soon()), LedgerLocking::kTimedOut);
  mutex_.unlock();
}

TEST_F(LedgerMutexTest, DeathIsNoticedByWhoWaitsAlready) {
  ASSERT_EQ(lock(kFirst), LedgerLocking::kTaken);
  std::thread waiter([&] {
    EXPECT_EQ(lock(kSecond), LedgerLocking::kTakenFromTheDead);
    mutex_.unlock();
  });
  while (census_.pending() == 0) std::this_thread::yield();
  census_.note_death(kFirst);
  waiter.join();
  EXPECT_EQ(lock(kSecond, Deadline()), LedgerLocking::kTaken);
  mutex_.unlock();
}

TEST_F(LedgerMutexTest, OneOfManyWhoWaitTakesItFromTheDead) {
  constexpr int kWaiters = 4;
  ASSERT_EQ(lock(kFirst), LedgerLocking::kTaken);
  std::array<std::atomic<int>, 3> seen{};
  std::thread death([&] {
    while (census_.pending() < kWaiters) std::this_thread::yield();
    census_.note_death(kFirst);
  });
  run_on_threads(kWaiters, [&](int thread) {
    const LedgerLocking locking = lock(kSecond + static_cast<Holder>(thread));
    seen[static_cast<size_t>(locking)].fetch_add(1);
    mutex_.unlock();
  });
  death.join();
  EXPECT_EQ(seen[static_cast<size_t>(LedgerLocking::kTakenFromTheDead)].load(), 1);
  EXPECT_EQ(seen[static_cast<size_t>(LedgerLocking::kTaken)].load(), kWaiters - 1);
}

TEST_F(LedgerMutexTest, AllWhoWaitGetTheirTurnWhenItIsUnlocked) {
  constexpr int kWaiters = 4;
  ASSERT_EQ(lock(kFirst), LedgerLocking::kTaken);
  std::thread holder([&] {
    while (census_.pending() < kWaiters) std::this_thread::yield();
    mutex_.unlock();
  });
  std::atomic<int> turns{0};
  run_on_threads(kWaiters, [&](int thread) {
    EXPECT_EQ(lock(kSecond + static_cast<Holder>(thread)), LedgerLocking::kTaken);
    turns.fetch_add(1);
    mutex_.unlock();
  });
  holder.join();
  EXPECT_EQ(turns.load(), kWaiters);
  EXPECT_EQ(lock(kFirst, Deadline()), LedgerLocking::kTaken);
  mutex_.unlock();
}

// Threads of one process have the same number, those of others another.
TEST_F(LedgerMutexTest, ManyThreadsCountExactly) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 5000;
  int count = 0;
  run_on_threads(kThreads, [&](int thread) {
    for (int round = 0; round < kRounds; ++round) {
      ASSERT_EQ(lock(kFirst + static_cast<Holder>(thread / 2)), LedgerLocking::kTaken);
      ++count;
      mutex_.unlock();
    }
  });
  EXPECT_EQ(count, kThreads * kRounds);
}

// ---- Several processes ----

class LedgerMutexOfProcesses : public testing::Test {
 protected:
  struct Shared {
    LedgerMutexWord mutex;
    uint64_t count = 0;
  };

  LedgerMutexOfProcesses() {
    void* const memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    shared_ = new (memory) Shared();
  }
  ~LedgerMutexOfProcesses() override { munmap(shared_, sizeof(Shared)); }

  Shared* shared_ = nullptr;
};

TEST_F(LedgerMutexOfProcesses, CountExactly) {
  constexpr uint64_t kRounds = 20'000;
  const auto count = [&](Holder self) {
    const Living census;
    for (uint64_t round = 0; round < kRounds; ++round) {
      ASSERT_EQ(shared_->mutex.lock(self, census, kNever), LedgerLocking::kTaken);
      ++shared_->count;
      shared_->mutex.unlock();
    }
  };
  OtherProcess other([&](const Line& line) {
    line.say();
    count(kSecond);
  });
  other.hear_word();
  count(kFirst);
  EXPECT_TRUE(other.ended_well());
  EXPECT_EQ(shared_->count, 2 * kRounds);
}

TEST_F(LedgerMutexOfProcesses, WaiterOfAnotherProcessGetsItsTurn) {
  ASSERT_EQ(shared_->mutex.lock(kFirst, Living(), kNever), LedgerLocking::kTaken);
  OtherProcess other([&](const Line& line) {
    EXPECT_EQ(shared_->mutex.lock(kSecond, Living(), Deadline()), LedgerLocking::kTimedOut);
    line.say();
    EXPECT_EQ(shared_->mutex.lock(kSecond, Living(), kNever), LedgerLocking::kTaken);
    EXPECT_EQ(shared_->count, 1u);
    shared_->mutex.unlock();
  });
  other.hear_word();
  ++shared_->count;
  shared_->mutex.unlock();
  EXPECT_TRUE(other.ended_well());
}

TEST_F(LedgerMutexOfProcesses, KilledOneLosesIt) {
  OtherProcess other([&](const Line& line) {
    EXPECT_EQ(shared_->mutex.lock(kSecond, Living(), kNever), LedgerLocking::kTaken);
    line.say();
    line.hear();
  });
  other.hear_word();
  other.kill();
  const Living census(kSecond);
  EXPECT_EQ(shared_->mutex.lock(kFirst, census, kNever), LedgerLocking::kTakenFromTheDead);
  shared_->mutex.unlock();
}

}  // namespace
}  // namespace understudy
