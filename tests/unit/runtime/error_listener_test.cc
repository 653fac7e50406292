// SPDX-License-Identifier: Apache-2.0
#include "runtime/error_listener.h"

#include <gtest/gtest.h>

namespace understudy {
namespace {

void listener() {}
void tell(const TaskFailure&) {}

AnyFunction current() { return ErrorListener::Use().function(); }

TEST(ErrorListener, IsThereUntilItIsTakenAway) {
  EXPECT_EQ(current(), nullptr);
  int data = 0;
  ASSERT_TRUE(ErrorListener::set(listener, &data, tell).ok());
  {
    const ErrorListener::Use use;
    EXPECT_EQ(use.function(), &listener);
    EXPECT_EQ(use.user_data(), &data);
  }
  ASSERT_TRUE(ErrorListener::set(nullptr, nullptr, tell).ok());
  EXPECT_EQ(current(), nullptr);
}

TEST(ErrorListener, HearsNothingWhileItIsInUseOnTheSameThread) {
  ASSERT_TRUE(ErrorListener::set(listener, nullptr, tell).ok());
  {
    const ErrorListener::Use use;
    EXPECT_EQ(current(), nullptr);
    EXPECT_EQ(ErrorListener::set(nullptr, nullptr, tell).error().code(), ErrorCode::kInvalidParam);
    EXPECT_EQ(use.function(), &listener);
  }
  EXPECT_EQ(current(), &listener);
  ASSERT_TRUE(ErrorListener::set(nullptr, nullptr, tell).ok());
}

TEST(ErrorListener, StreamsAreObservedOnlyWhileThereIsOne) {
  EXPECT_FALSE(has_failure_observer());
  ASSERT_TRUE(ErrorListener::set(listener, nullptr, tell).ok());
  EXPECT_TRUE(has_failure_observer());
  ASSERT_TRUE(ErrorListener::set(nullptr, nullptr, tell).ok());
  EXPECT_FALSE(has_failure_observer());
}

}  // namespace
}  // namespace understudy
