// SPDX-License-Identifier: Apache-2.0
#include "stream/task_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <set>

#include "unit/run_on_threads.h"
#include "unit/stream/stream_tools.h"

namespace understudy {
namespace {

constexpr uint64_t kSegment = 64;  // tasks in one

Task numbered(uint64_t number) { return setting(number, 0); }

uint64_t take(TaskQueue& queue) {
  const uint64_t number = queue.front().fill.to;
  queue.pop();
  return number;
}

TEST(TaskQueue, KeepsTheOrderAcrossSegments) {
  constexpr uint64_t kTasks = 10 * kSegment + 7;
  TaskQueue queue;
  for (uint64_t i = 0; i < kTasks; ++i) queue.push(numbered(i));
  for (uint64_t i = 0; i < kTasks; ++i) ASSERT_EQ(take(queue), i);
}

TEST(TaskQueue, KeepsTheOrderHoweverFullItIsInBetween) {
  TaskQueue queue;
  uint64_t pushed = 0;
  uint64_t taken = 0;
  for (uint64_t burst = 1; burst < 3 * kSegment; ++burst) {
    for (uint64_t i = 0; i < burst; ++i) queue.push(numbered(pushed++));
    while (taken < pushed) ASSERT_EQ(take(queue), taken++);
  }
}

TEST(TaskQueue, TaskInFrontStaysWhereItIsAndCanBeChanged) {
  TaskQueue queue;
  queue.push(numbered(1));
  Task& front = queue.front();
  front.fill.value = 77;
  for (uint64_t i = 0; i < 3 * kSegment; ++i) queue.push(numbered(i));
  EXPECT_EQ(&queue.front(), &front);
  EXPECT_EQ(queue.front().fill.value, 77u);
}

TEST(TaskQueue, SegmentsAreUsedAgain) {
  TaskQueue queue;
  std::set<const Task*> places;
  for (uint64_t i = 0; i < 100 * kSegment; ++i) {
    queue.push(numbered(i));
    places.insert(&queue.front());
    ASSERT_EQ(take(queue), i);
  }
  EXPECT_LE(places.size(), 3 * kSegment);
}

TEST(TaskQueue, OneThreadAddsWhileAnotherTakes) {
  constexpr uint64_t kTasks = 300 * kSegment + 5;
  TaskQueue queue;
  std::atomic<uint64_t> published{0};
  uint64_t mistakes = 0;
  run_on_threads(2, [&](int index) {
    for (uint64_t i = 0; i < kTasks; ++i) {
      if (index == 0) {
        queue.push(numbered(i));
        published.store(i + 1, std::memory_order_release);
      } else {
        wait_for([&] { return published.load(std::memory_order_acquire) > i; });
        if (take(queue) != i) ++mistakes;
      }
    }
  });
  EXPECT_EQ(mistakes, 0u);
}

// ASan finds segments that nobody frees, and those freed twice.
TEST(TaskQueue, FreesItsSegmentsWhereverItsEndsAre) {
  for (const uint64_t pushed : {uint64_t{0}, uint64_t{1}, kSegment, kSegment + 1, 5 * kSegment}) {
    for (const uint64_t taken : {uint64_t{0}, uint64_t{1}, kSegment, kSegment + 1, 5 * kSegment}) {
      if (taken > pushed) continue;
      TaskQueue queue;
      for (uint64_t i = 0; i < pushed; ++i) queue.push(numbered(i));
      for (uint64_t i = 0; i < taken; ++i) ASSERT_EQ(take(queue), i);
    }
  }
}

TEST(TaskQueue, HandsPayloadsThrough) {
  TaskQueue queue;
  for (uint64_t i = 0; i < 3; ++i) queue.push(listed_copy(i, 0));
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(queue.front().list->at(0).copy.to, i);
    release_payload(queue.front());
    queue.pop();
  }
}

TEST(TaskPayload, TasksThatOwnNothingFreeNothing) {
  int own = 7;
  Task function = host_function(count_call, &own);
  release_payload(function);
  Task copy(TaskKind::kCopy, 0);
  copy.copy = {.to = reinterpret_cast<VirtualAddress>(&own), .from = 8, .count = 9};
  release_payload(copy);
  EXPECT_EQ(own, 7);
}

}  // namespace
}  // namespace understudy
