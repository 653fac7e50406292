// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

namespace understudy {
namespace {

Error out_of_memory() {
  return Error::system(ErrorCode::kOutOfMemory, 12, "no %s for %d", "memory", 7);
}

Result<void> passes_on(const Result<void>& inner, bool& reached_the_end) {
  US_TRY(inner);
  reached_the_end = true;
  return {};
}

Result<int> one_more_than(const Result<int>& inner, int& seen) {
  US_TRY_ASSIGN(const int value, inner);
  seen = value;
  return value + 1;
}

Result<std::string> text_of(Result<std::unique_ptr<std::string>> inner) {
  US_TRY_ASSIGN(const std::unique_ptr<std::string> text, std::move(inner));
  return *text;
}

TEST(Result, TryLeavesTheFunctionWithTheErrorAsItIs) {
  bool reached_the_end = false;
  const Result<void> result = passes_on(out_of_memory(), reached_the_end);
  ASSERT_FALSE(result.ok());
  EXPECT_FALSE(reached_the_end);
  EXPECT_EQ(result.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(result.error().system_number(), 12);
  EXPECT_STREQ(result.error().text(), "no memory for 7");
}

TEST(Result, TryGoesOnWithoutAnError) {
  bool reached_the_end = false;
  EXPECT_TRUE(passes_on({}, reached_the_end).ok());
  EXPECT_TRUE(reached_the_end);
}

TEST(Result, TryAssignGivesTheValue) {
  int seen = 0;
  const Result<int> result = one_more_than(41, seen);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(seen, 41);
  EXPECT_EQ(result.value(), 42);
}

TEST(Result, TryAssignLeavesWithTheErrorBeforeItAssigns) {
  int seen = 0;
  const Result<int> result = one_more_than(out_of_memory(), seen);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(seen, 0);
  EXPECT_EQ(result.error().code(), ErrorCode::kOutOfMemory);
}

TEST(Result, ErrorChangesTheTypeOfResultOnItsWayUp) {
  const Result<std::string> result = text_of(out_of_memory());
  ASSERT_FALSE(result.ok());
  EXPECT_STREQ(result.error().text(), "no memory for 7");
}

TEST(Result, ValueThatCannotBeCopiedIsMoved) {
  const Result<std::string> result = text_of(std::make_unique<std::string>("moved"));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value(), "moved");
}

TEST(Error, AsChangesTheKindAndKeepsTheRest) {
  const Error changed = out_of_memory().as(ErrorCode::kInvalidParam);
  EXPECT_EQ(changed.code(), ErrorCode::kInvalidParam);
  EXPECT_EQ(changed.system_number(), 12);
  EXPECT_STREQ(changed.text(), "no memory for 7");
}

TEST(Error, WithoutASystemCallHasNoSystemNumber) {
  EXPECT_EQ(Error::format(ErrorCode::kInternal, "fault").system_number(), 0);
}

TEST(Error, LongTextIsCutAndStillEnds) {
  const std::string text(2 * Error::kMaxText, 'x');
  const Error error = Error::format(ErrorCode::kInternal, "%s", text.c_str());
  EXPECT_EQ(strlen(error.text()), Error::kMaxText - 1);
}

}  // namespace
}  // namespace understudy
