// SPDX-License-Identifier: Apache-2.0
#include "base/object_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "unit/run_on_threads.h"

namespace understudy {
namespace {

struct Object {
  uint32_t pool_next = 0;
  std::atomic<int> owner{0};
};
using Pool = ObjectPool<Object>;

TEST(ObjectPool, NumbersOfTakenSlotsAreUnique) {
  Pool pool;
  std::set<uint32_t> numbers;
  for (int i = 0; i < 2000; ++i) EXPECT_TRUE(numbers.insert(*pool.take()).second);
  for (const uint32_t number : numbers) EXPECT_LT(number, uint32_t{1} << kPoolIndexBits);
}

TEST(ObjectPool, SlotThatCameBackIsTakenNextAndIsTheSameObject) {
  Pool pool;
  const uint32_t number = *pool.take();
  Object* const object = &pool.at(number);
  pool.give_back(number);
  EXPECT_EQ(pool.take(), number);
  EXPECT_EQ(&pool.at(number), object);
}

TEST(ObjectPool, ObjectsAreKeptWhileTheirSlotIsFree) {
  Pool pool;
  const uint32_t number = *pool.take();
  pool.at(number).owner = 17;
  pool.give_back(number);
  EXPECT_EQ(pool.at(number).owner, 17);
}

TEST(ObjectPool, ExistsForWhatWasTakenAndNotForInventedNumbers) {
  Pool pool;
  EXPECT_FALSE(pool.exists(0));
  const uint32_t number = *pool.take();
  EXPECT_TRUE(pool.exists(number));
  pool.give_back(number);
  EXPECT_TRUE(pool.exists(number));
  EXPECT_FALSE(pool.exists(1'000'000));
  EXPECT_FALSE(pool.exists((uint32_t{1} << kPoolIndexBits) - 1));
  EXPECT_FALSE(pool.exists(uint32_t{1} << kPoolIndexBits));
  EXPECT_FALSE(pool.exists(UINT32_MAX));
}

TEST(ObjectPool, WhatExistsCanBeLookedAt) {
  Pool pool;
  (void)pool.take();
  for (uint32_t number = 0; number < 1000; ++number) {
    if (!pool.exists(number)) continue;
    EXPECT_EQ(pool.at(number).owner, 0) << number;
  }
}

TEST(ObjectPool, SlotsThatOneThreadGivesBackReachAnother) {
  Pool pool;
  constexpr int kCount = 1000;
  std::vector<uint32_t> taken;
  for (int i = 0; i < kCount; ++i) taken.push_back(*pool.take());
  const uint32_t highest = *std::max_element(taken.begin(), taken.end());
  // This thread gives all of them back; another one takes as many. Only the few that stay in the
  // list of this thread may be missing there.
  for (const uint32_t number : taken) pool.give_back(number);
  std::set<uint32_t> reused;
  std::thread([&] {
    for (int i = 0; i < kCount; ++i) {
      const uint32_t number = *pool.take();
      if (number <= highest) reused.insert(number);
    }
  }).join();
  EXPECT_GE(reused.size(), kCount - 64u);
}

TEST(ObjectPool, NoTwoThreadsHaveTheSameSlot) {
  Pool pool;
  std::atomic<bool> shared{false};
  run_on_threads(4, [&](int index) {
    std::vector<uint32_t> mine;
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < 100; ++i) {
        const uint32_t number = *pool.take();
        if (pool.at(number).owner.exchange(index + 1) != 0) shared = true;
        mine.push_back(number);
      }
      for (const uint32_t number : mine) {
        if (pool.at(number).owner.exchange(0) != index + 1) shared = true;
        pool.give_back(number);
      }
      mine.clear();
    }
  });
  EXPECT_FALSE(shared);
}

}  // namespace
}  // namespace understudy
