// SPDX-License-Identifier: Apache-2.0
#include "device/schedule_choice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace understudy {
namespace {

ScheduleChoice parsed_schedule(const std::string& text) {
  const auto choice = parse_schedule(text);
  EXPECT_TRUE(choice.ok()) << choice.error().text();
  return choice.ok() && choice.value() ? *choice.value() : ScheduleChoice();
}

std::string schedule_refusal(const std::string& text) {
  const auto choice = parse_schedule(text);
  return choice.ok() ? "none" : choice.error().text();
}

TEST(ScheduleChoiceTest, HasASeedAndSlowStreams) {
  EXPECT_EQ(parsed_schedule("seed=7").seed, 7U);
  EXPECT_EQ(parsed_schedule("seed=7").text, "seed=7");
  EXPECT_TRUE(parsed_schedule("seed=7").slow.empty());
  EXPECT_EQ(parsed_schedule("seed=0").seed, 0U);
  EXPECT_EQ(parsed_schedule("seed=18446744073709551615").seed, UINT64_MAX);
  const ScheduleChoice both = parsed_schedule("slow=3:4x,seed=9,slow=0:1000x");
  EXPECT_EQ(both.seed, 9U);
  EXPECT_EQ(both.slow, (std::vector<SlowStream>{{3, 4}, {0, 1000}}));
}

TEST(ScheduleChoiceTest, NoTextIsNoSchedule) {
  const auto choice = parse_schedule("");
  EXPECT_TRUE(choice.ok() && !choice.value());
}

TEST(ScheduleChoiceTest, WhatIsWrongIsSaid) {
  EXPECT_EQ(schedule_refusal("slow=3:4x"),
            "configuration key schedule: slow=3:4x: a seed is missing, such as seed=1");
  EXPECT_EQ(schedule_refusal("seed=1,seed=2"),
            "configuration key schedule: seed=1,seed=2: it has two seeds");
  EXPECT_EQ(schedule_refusal("seed=x"),
            "configuration key schedule: seed=x: \"seed=x\" is not seed=N with a number");
  EXPECT_EQ(schedule_refusal("seed=1,slow=3"),
            "configuration key schedule: seed=1,slow=3: \"slow=3\" is not slow=STREAM:FACTORx with "
            "the number of a stream and a factor from 1 to 1000, such as slow=3:4x");
  EXPECT_EQ(schedule_refusal("seed=1,slow=3:2x,slow=3:4x"),
            "configuration key schedule: seed=1,slow=3:2x,slow=3:4x: stream 3 is slow twice");
  EXPECT_EQ(schedule_refusal("sweep=100"),
            "configuration key schedule: sweep=100: a sweep of seeds is up to the command: "
            "understudy run --schedule sweep=100");
  EXPECT_EQ(schedule_refusal("seed=1,fast"),
            "configuration key schedule: seed=1,fast: \"fast\" is neither seed=N nor "
            "slow=STREAM:FACTORx");
}

TEST(ScheduleChoiceTest, WrongValuesAreRefused) {
  for (const char* text :
       {"seed", "seed=", "seed=-1", "seed=1.5", "seed=18446744073709551616", "seed=1,", ",seed=1",
        "seed=1,slow", "seed=1,slow=", "seed=1,slow=:2x", "seed=1,slow=1:x", "seed=1,slow=1:2",
        "seed=1,slow=1:0x", "seed=1,slow=1:1001x", "seed=1,slow=1:-2x", "seed=1,slow=4294967296:2x",
        "seed=1,slow=stream:3x", "seed=1;slow=1:2x"}) {
    EXPECT_NE(schedule_refusal(text), "none") << text;
  }
  EXPECT_LT(schedule_refusal(std::string(100'000, 'x')).size(), 300U);
}

}  // namespace
}  // namespace understudy
