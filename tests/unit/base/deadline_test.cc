// SPDX-License-Identifier: Apache-2.0
#include "base/deadline.h"

#include <gtest/gtest.h>

namespace understudy {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(Deadline, NeverDoesNotPass) { EXPECT_FALSE(has_passed(kNever)); }

TEST(Deadline, MomentsOfThePastHavePassedAndLaterOnesHaveNot) {
  EXPECT_TRUE(has_passed(Deadline()));
  EXPECT_TRUE(has_passed(Clock::now()));
  EXPECT_FALSE(has_passed(Clock::now() + hours(1000)));
}

TEST(Deadline, LiesAheadByTheDuration) {
  const Deadline before = Clock::now();
  const Deadline deadline = deadline_after(hours(1));
  EXPECT_GE(deadline - before, hours(1));
  EXPECT_LE(deadline - Clock::now(), hours(1));
}

TEST(Deadline, WithoutADurationItHasPassed) {
  EXPECT_TRUE(has_passed(deadline_after(milliseconds(0))));
  EXPECT_TRUE(has_passed(deadline_after(milliseconds(-5))));
}

TEST(Deadline, WhatTheClockCannotTellIsNever) {
  EXPECT_EQ(deadline_after(nanoseconds::max()), kNever);
  EXPECT_EQ(deadline_after(kNever - Clock::now()), kNever);
}

TEST(Deadline, LongestLimitsOfTheInterfaceAreMomentsOfTheFuture) {
  EXPECT_GT(deadline_after(seconds(UINT32_MAX)), Clock::now() + seconds(UINT32_MAX / 2));
  EXPECT_GT(deadline_after(milliseconds(INT32_MAX)), Clock::now() + milliseconds(INT32_MAX / 2));
}

}  // namespace
}  // namespace understudy
