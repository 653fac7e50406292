// SPDX-License-Identifier: Apache-2.0
#include "platform/call_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "platform/call_site.h"

namespace understudy::platform {
namespace {

// The compiler keeps both calls as they are, and a frame for each.
[[gnu::noinline]] const CallStack* capture_at(unsigned depth) {
  const CallStack* stack = depth == 0 ? capture_stack() : capture_at(depth - 1);
  asm volatile("" : "+r"(stack));
  return stack;
}
[[gnu::noinline]] const CallStack* from_here(unsigned depth) {
  const CallStack* stack = capture_at(depth);
  asm volatile("" : "+r"(stack));
  return stack;
}
[[gnu::noinline]] const CallStack* from_there(unsigned depth) {
  const CallStack* stack = capture_at(depth);
  asm volatile("" : "+r"(stack));
  return stack;
}

TEST(CallStackTest, SameStackIsOneObject) {
  std::vector<const CallStack*> stacks;
  for (int i = 0; i < 3; ++i) stacks.push_back(from_here(4));
  ASSERT_NE(stacks[0], nullptr);
  EXPECT_GE(stacks[0]->frames().size(), 6U);
  EXPECT_EQ(std::ranges::count(stacks, stacks[0]), 3);
}

// Both are at the same depth, so the one is where the other was remembered.
TEST(CallStackTest, OtherCallersAtTheSameDepthAreSeen) {
  const CallStack* stacks[4];
  for (int i = 0; i < 4; ++i) stacks[i] = i % 2 == 0 ? from_here(2) : from_there(2);
  EXPECT_EQ(stacks[0], stacks[2]);
  EXPECT_EQ(stacks[1], stacks[3]);
  EXPECT_NE(stacks[0], stacks[1]);
}

TEST(CallStackTest, DeepStacksKeepTheirInnermostFrames) {
  const CallStack* const stack = from_here(1000);
  ASSERT_NE(stack, nullptr);
  EXPECT_EQ(stack->frames().size(), CallStack::kMostFrames);
  EXPECT_EQ(stack, capture_at(500)) << "all of it is the same recursion";
}

TEST(CallStackTest, EveryDepthHasItsOwn) {
  std::vector<const CallStack*> stacks;
  for (unsigned i = 0; i < 32; ++i) stacks.push_back(from_here(i % 16));
  for (unsigned depth = 0; depth < 16; ++depth) EXPECT_EQ(stacks[depth], stacks[depth + 16]);
  stacks.resize(16);
  std::ranges::sort(stacks);
  EXPECT_EQ(std::ranges::adjacent_find(stacks), stacks.end());
}

TEST(CallStackTest, ThreadsCaptureAtOnceAndAtTheirEnd) {
  struct AtTheEnd {
    ~AtTheEnd() { EXPECT_NE(capture_stack(), nullptr); }
  };
  std::vector<std::thread> threads;
  std::vector<const CallStack*> stacks(8);
  for (size_t i = 0; i < stacks.size(); ++i) {
    threads.emplace_back([&stacks, i] {
      static thread_local AtTheEnd at_the_end;
      (void)at_the_end;
      for (int j = 0; j < 1000; ++j) stacks[i] = from_here(3);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::ranges::count(stacks, stacks[0]), 8);
}

TEST(CallSiteTest, IsAFileAndAnOffset) {
  const CallStack* const stack = from_here(0);
  ASSERT_NE(stack, nullptr);
  const std::string site = call_site_of(stack->frames().front());
  EXPECT_TRUE(site.starts_with("unit_tests+0x")) << site;
  EXPECT_EQ(call_site_of(1), "");
}

TEST(CallSiteTest, HasAPlaceInTheSource) {
  const CallStack* const stack = from_here(0);
  ASSERT_NE(stack, nullptr);
  const std::string place = source_place_of(stack->frames().front());
  if (place == call_site_of(stack->frames().front())) {
    GTEST_SKIP() << "the compiler has no libbacktrace, or there is no debug information";
  }
  EXPECT_TRUE(place.starts_with("call_stack_test.cc:")) << place;
  EXPECT_EQ(source_place_of(1), "");
}

}  // namespace
}  // namespace understudy::platform
