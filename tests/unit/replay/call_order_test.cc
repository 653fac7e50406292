// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/call_order.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace understudy::command {
namespace {

class CallOrderTest : public testing::Test {
 protected:
  static constexpr uint32_t kCalls = 20000;

  static constexpr uint32_t kThreads = 4;

  void end(uint32_t place) { order_.note_end(place); }

  CallOrder::Counts counts_{};
  std::vector<std::atomic<uint8_t>> ended_ = std::vector<std::atomic<uint8_t>>(kCalls);
  std::vector<std::atomic<uint32_t>> waiting_ = std::vector<std::atomic<uint32_t>>(kThreads + 1);
  CallOrder order_{counts_, ended_, waiting_};
};

TEST_F(CallOrderTest, CountsUpToTheFirstThatHasNotEnded) {
  end(1);
  end(2);
  EXPECT_EQ(order_.ended(), 0U);
  end(0);
  EXPECT_EQ(order_.ended(), 3U);
}

TEST_F(CallOrderTest, NoEndIsLostBetweenThreads) {
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] {
      for (uint32_t place = thread; place < kCalls; place += kThreads) end(place);
    });
  }
  order_.await(kCalls, kThreads);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order_.ended(), kCalls);
}

TEST_F(CallOrderTest, MoreThreadsWaitThanThereIsRoomFor) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([this] { order_.await_elsewhere(2, kThreads); });
  }
  end(0);
  end(1);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(waiting_.back(), 0U);
}

TEST_F(CallOrderTest, ThreadsTakeTurns) {
  std::vector<std::thread> threads;
  std::vector<uint32_t> made;
  for (uint32_t thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint32_t place = thread; place < 2000; place += 2) {
        order_.await(place, thread);
        made.push_back(place);
        end(place);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(made.size(), 2000U);
  for (uint32_t place = 0; place < made.size(); ++place) EXPECT_EQ(made[place], place);
}

}  // namespace
}  // namespace understudy::command
