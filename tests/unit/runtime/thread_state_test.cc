// SPDX-License-Identifier: Apache-2.0
#include "runtime/thread_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>

namespace understudy {
namespace {

constexpr const char* kCopy = "copy";
constexpr const char* kFree = "free";

Error failure(const std::string& text) {
  return Error::format(ErrorCode::kInvalidParam, "%s", text.c_str());
}

TEST(ErrorTexts, AreTakenNewestFirstAndOnce) {
  ErrorTexts texts;
  EXPECT_EQ(texts.take(), "");
  texts.add(kCopy, failure("first"));
  texts.add(kFree, failure("second"));
  EXPECT_EQ(texts.take(), "free: second\ncopy: first\n");
  EXPECT_EQ(texts.take(), "");
}

TEST(ErrorTexts, OldOnesGoWhenThereAreTooMany) {
  ErrorTexts texts;
  for (int i = 0; i < 1000; ++i) texts.add(kCopy, failure(std::to_string(i)));
  const std::string text = texts.take();
  EXPECT_TRUE(text.starts_with("copy: 999\ncopy: 998\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 64);
}

TEST(ErrorTexts, OlderOnesAreDatedByASuccessOfTheirFunction) {
  ErrorTexts texts;
  texts.add(kCopy, failure("one"));
  texts.add(kFree, failure("two"));
  texts.note_success(kCopy);
  texts.add(kCopy, failure("three"));
  EXPECT_EQ(texts.take(), "copy: three\nfree: two\n");
  // The newest stays whatever came after it.
  texts.add(kFree, failure("four"));
  texts.add(kCopy, failure("five"));
  texts.note_success(kCopy);
  texts.note_success(kFree);
  EXPECT_EQ(texts.take(), "copy: five\n");
}

TEST(ErrorTexts, SaySuccessesOfWhichFunctionsMatter) {
  ErrorTexts texts;
  EXPECT_EQ(texts.awaited(), 0u);
  texts.add(kCopy, failure("one"));
  EXPECT_EQ(texts.awaited(), bit_of_function(kCopy));
  texts.note_success(kFree);
  EXPECT_EQ(texts.awaited(), bit_of_function(kCopy));
  texts.note_success(kCopy);
  EXPECT_EQ(texts.awaited(), 0u);
}

TEST(ErrorTexts, ATextIsOneLine) {
  ErrorTexts texts;
  texts.add(kCopy, failure("of\ntwo\r\nlines"));
  EXPECT_EQ(texts.take(), "copy: of two  lines\n");
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
