// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>

namespace understudy {
namespace {

TEST(ErrorTexts, AreTakenNewestFirstAndOnce) {
  ErrorTexts texts;
  EXPECT_EQ(texts.take(), "");
  texts.add("first");
  texts.add("second");
  EXPECT_EQ(texts.take(), "second\nfirst\n");
  EXPECT_EQ(texts.take(), "");
}

TEST(ErrorTexts, OldOnesGoWhenThereAreTooMany) {
  ErrorTexts texts;
  for (int i = 0; i < 1000; ++i) texts.add(std::to_string(i));
  const std::string text = texts.take();
  EXPECT_TRUE(text.starts_with("999\n998\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 64);
}

TEST(ThreadState, BelongsToOneThread) {
  thread_state().last_error = 7;
  std::thread([] {
    EXPECT_EQ(thread_state().last_error, 0);
    thread_state().last_error = 8;
  }).join();
  EXPECT_EQ(thread_state().last_error, 7);
  thread_state() = {};
}

}  // namespace
}  // namespace understudy
