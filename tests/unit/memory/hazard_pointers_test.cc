// SPDX-License-Identifier: Apache-2.0
#include "memory/hazard_pointers.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include "unit/run_on_threads.h"

namespace understudy {
namespace {

TEST(HazardSlots, WhatIsPublishedIsPinnedUntilItIsCleared) {
  const int mapping = 0;
  EXPECT_FALSE(is_pinned(&mapping));
  HazardPin pin;
  EXPECT_FALSE(is_pinned(&mapping));
  pin.publish(&mapping);
  EXPECT_TRUE(is_pinned(&mapping));
  pin.clear();
  EXPECT_FALSE(is_pinned(&mapping));
}

TEST(HazardSlots, EndOfAPinClearsIt) {
  const int mapping = 0;
  {
    HazardPin pin;
    pin.publish(&mapping);
  }
  EXPECT_FALSE(is_pinned(&mapping));
}

TEST(HazardSlots, PublishingAgainReplacesWhatWasPinned) {
  const int first = 0;
  const int second = 0;
  HazardPin pin;
  pin.publish(&first);
  pin.publish(&second);
  EXPECT_FALSE(is_pinned(&first));
  EXPECT_TRUE(is_pinned(&second));
}

TEST(HazardSlots, PinsOfOneThreadDoNotDisturbEachOther) {
  const int things[HazardPin::kSlotsPerThread] = {};
  std::optional<HazardPin> pins[HazardPin::kSlotsPerThread];
  for (unsigned i = 0; i < HazardPin::kSlotsPerThread; ++i) pins[i].emplace().publish(&things[i]);
  pins[1].reset();
  EXPECT_TRUE(is_pinned(&things[0]));
  EXPECT_FALSE(is_pinned(&things[1]));
  EXPECT_TRUE(is_pinned(&things[3]));
  // The slot that became free is used again.
  pins[1].emplace().publish(&things[1]);
  for (const int& thing : things) EXPECT_TRUE(is_pinned(&thing));
}

TEST(HazardSlots, SameMappingPinnedTwiceNeedsBothToEnd) {
  const int mapping = 0;
  HazardPin first;
  first.publish(&mapping);
  {
    HazardPin second;
    second.publish(&mapping);
  }
  EXPECT_TRUE(is_pinned(&mapping));
}

TEST(HazardSlots, PinsOfOtherThreadsAreSeen) {
  const int mapping = 0;
  std::latch pinned(1);
  std::latch looked(1);
  std::thread reader([&] {
    HazardPin pin;
    pin.publish(&mapping);
    pinned.count_down();
    looked.wait();
  });
  pinned.wait();
  EXPECT_TRUE(is_pinned(&mapping));
  looked.count_down();
  reader.join();
  EXPECT_FALSE(is_pinned(&mapping));
}

// A record that scans found idle so often is off the list. What its thread pins next is seen.
TEST(HazardSlots, PinBehindManyIdleScansIsSeen) {
  const int mapping = 0;
  HazardPin pin;
  for (int round = 0; round < 3; ++round) {
    for (int scan = 0; scan < 100; ++scan) ASSERT_FALSE(is_pinned(&mapping));
    pin.publish(&mapping);
    EXPECT_TRUE(is_pinned(&mapping));
    EXPECT_TRUE(is_any_pinned(&mapping, &mapping + 1));
    for (int scan = 0; scan < 100; ++scan) ASSERT_TRUE(is_pinned(&mapping));
    pin.clear();
  }
}

TEST(HazardSlots, MoreThreadsThanABlockHasPinAtOnce) {
  constexpr int kThreads = 600;
  std::vector<int> mappings(kThreads);
  std::latch pinned(kThreads);
  std::latch looked(1);
  std::vector<std::thread> threads;
  for (int& mapping : mappings) {
    threads.emplace_back([&] {
      HazardPin pin;
      pin.publish(&mapping);
      pinned.count_down();
      looked.wait();
    });
  }
  pinned.wait();
  for (const int& mapping : mappings) EXPECT_TRUE(is_pinned(&mapping));
  looked.count_down();
  for (std::thread& thread : threads) thread.join();
  for (const int& mapping : mappings) EXPECT_FALSE(is_pinned(&mapping));
}

TEST(HazardSlots, ChildHasThePinOfTheThreadThatForkedAlone) {
  const int mine = 0;
  const int of_other = 0;
  std::latch pinned(1);
  std::latch looked(1);
  std::thread reader([&] {
    HazardPin pin;
    pin.publish(&of_other);
    pinned.count_down();
    looked.wait();
  });
  pinned.wait();
  HazardPin pin;
  pin.publish(&mine);
  const pid_t child = fork();
  if (child == 0) {
    bool right = is_pinned(&mine) && !is_pinned(&of_other);
    pin.publish(&of_other);
    right = right && is_pinned(&of_other) && !is_pinned(&mine);
    _exit(right ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(is_pinned(&of_other));
  looked.count_down();
  reader.join();
}

TEST(HazardSlots, ThreadsThatComeAndGoPinForThemselves) {
  for (int round = 0; round < 5; ++round) {
    run_on_threads(4, [](int) {
      int mine = 0;
      for (int i = 0; i < 100; ++i) {
        HazardPin pin;
        pin.publish(&mine);
        EXPECT_TRUE(is_pinned(&mine));
        pin.clear();
        EXPECT_FALSE(is_pinned(&mine));
      }
    });
  }
}

// The protocol of the address space: a reader publishes and looks again, a writer takes the thing
// out of sight and then looks for pins. One of the two sees the other.
TEST(HazardSlots, WriterThatSeesNoPinIsNotReadFrom) {
  struct Thing {
    std::atomic<bool> ended{false};
  };
  for (int round = 0; round < 30; ++round) {
    Thing thing;
    std::atomic<Thing*> visible{&thing};
    std::atomic<bool> used_after_end{false};
    run_on_threads(2, [&](int index) {
      if (index == 0) {
        HazardPin pin;
        Thing* const seen = visible.load();
        if (seen == nullptr) return;
        pin.publish(seen);
        if (visible.load() != seen) return;
        if (seen->ended.load()) used_after_end.store(true);
      } else {
        visible.exchange(nullptr);
        while (is_pinned(&thing)) std::this_thread::yield();
        thing.ended.store(true);
      }
    });
    ASSERT_FALSE(used_after_end.load());
  }
}

// The same where other threads scan so much that records leave the list all the time.
TEST(HazardSlots, WriterThatSeesNoPinIsNotReadFromWhileRecordsLeaveTheList) {
  constexpr int kThings = 64;
  struct Thing {
    std::atomic<bool> ended{false};
  };
  std::vector<Thing> things(kThings);
  std::vector<std::atomic<Thing*>> visible(kThings);
  std::atomic<bool> used_after_end{false};
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < kThings; ++i) {
      things[i].ended.store(false);
      visible[i].store(&things[i]);
    }
    run_on_threads(3, [&](int index) {
      const int nothing = 0;
      for (int i = 0; i < kThings; ++i) {
        if (index == 0) {
          for (int scan = 0; scan < 20; ++scan) (void)is_pinned(&nothing);
          HazardPin pin;
          Thing* const seen = visible[i].load();
          if (seen == nullptr) continue;
          pin.publish(seen);
          if (visible[i].load() == seen && seen->ended.load()) used_after_end.store(true);
        } else if (index == 1) {
          visible[i].exchange(nullptr);
          while (is_pinned(&things[i])) std::this_thread::yield();
          things[i].ended.store(true);
        } else {
          for (int scan = 0; scan < 40; ++scan) (void)is_pinned(&nothing);
        }
      }
    });
    ASSERT_FALSE(used_after_end.load());
  }
}

TEST(HazardSlotsDeathTest, TooManyPinsOfAThreadAreOurOwnFault) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        std::optional<HazardPin> pins[HazardPin::kSlotsPerThread + 1];
        for (auto& pin : pins) pin.emplace();
      },
      "a thread pins more than 4 mappings");
}

}  // namespace
}  // namespace understudy
