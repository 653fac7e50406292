// SPDX-License-Identifier: Apache-2.0
#include "device/failure_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "device/public_calls.h"

namespace understudy {
namespace {

using namespace std::chrono_literals;

FailureRule parsed(const std::string& text) {
  Result<std::vector<FailureRule>> rules = parse_failure_rules(text);
  EXPECT_TRUE(rules.ok()) << rules.error().text();
  if (!rules.ok() || rules.value().size() != 1) return {};
  return rules.value().front();
}

std::string refusal(const std::string& text) {
  const Result<std::vector<FailureRule>> rules = parse_failure_rules(text);
  return rules.ok() ? "none" : rules.error().text();
}

TEST(FailureRuleTest, NamesFunctionsGroupsOrAll) {
  EXPECT_EQ(parsed("aclrtMalloc:nth=5").functions, std::vector<std::string>{"aclrtMalloc"});
  const std::vector<std::string> several = {"aclrtMapMem", "aclrtFree"};
  EXPECT_EQ(parsed("aclrtMapMem|aclrtFree:nth=1").functions, several);
  const FailureRule group = parsed("copy:nth=1");
  EXPECT_NE(std::ranges::find(group.functions, "aclrtMemcpyAsync"), group.functions.end());
  EXPECT_EQ(std::ranges::find(group.functions, "aclrtMalloc"), group.functions.end());
  EXPECT_TRUE(parsed("all:nth=1").functions.empty());
  EXPECT_TRUE(parsed("aclrtFree|all:nth=1").functions.empty());
}

TEST(FailureRuleTest, MayNameAPlace) {
  EXPECT_EQ(parsed("all:nth=1").site, "");
  const FailureRule rule = parsed("aclrtFree@program+0x11f2:nth=1");
  EXPECT_EQ(rule.functions, std::vector<std::string>{"aclrtFree"});
  EXPECT_EQ(rule.site, "program+0x11f2");
  EXPECT_NE(refusal("aclrtFree@:nth=1"), "none");
}

TEST(FailureRuleTest, HasOneCondition) {
  EXPECT_EQ(std::get<NthCall>(parsed("all:nth=5").condition).number, 5U);
  EXPECT_EQ(std::get<EveryCall>(parsed("all:every=4").condition).interval, 4U);
  EXPECT_EQ(std::get<LargeCall>(parsed("all:from_size=1M").condition).bytes, 1U << 20);
  EXPECT_EQ(std::get<LateCall>(parsed("all:after=2s").condition).after, 2s);
  EXPECT_EQ(std::get<LateCall>(parsed("all:after=1.5ms").condition).after, 1500us);
  const auto random = std::get<RandomCall>(parsed("all:probability=0.25,seed=7").condition);
  EXPECT_EQ(random.threshold, RandomCall::kOften / 4);
  EXPECT_EQ(random.seed, 7U);
  EXPECT_EQ(std::get<RandomCall>(parsed("all:seed=3,probability=1").condition).seed, 3U);
}

TEST(FailureRuleTest, MayHaveACodeAndStick) {
  const FailureRule plain = parsed("all:nth=1");
  EXPECT_EQ(plain.code, std::nullopt);
  EXPECT_FALSE(plain.sticky);
  const FailureRule rule = parsed("all:nth=1,code=207001,sticky");
  EXPECT_EQ(rule.code, 207001);
  EXPECT_TRUE(rule.sticky);
  EXPECT_EQ(rule.text, "all:nth=1,code=207001,sticky");
}

TEST(FailureRuleTest, SemicolonsSeparateRules) {
  const auto rules = parse_failure_rules("aclrtMalloc:nth=1;aclrtFree:every=2");
  ASSERT_TRUE(rules.ok());
  ASSERT_EQ(rules.value().size(), 2U);
  EXPECT_EQ(rules.value()[1].text, "aclrtFree:every=2");
  const auto none = parse_failure_rules("");
  EXPECT_TRUE(none.ok() && none.value().empty());
}

TEST(FailureRuleTest, WhatIsWrongIsSaid) {
  EXPECT_EQ(refusal("aclrtMaloc:nth=1"),
            "configuration key fail: aclrtMaloc:nth=1: there is no function or group "
            "\"aclrtMaloc\"; the nearest is aclrtMalloc");
  EXPECT_EQ(refusal("copies:nth=1"),
            "configuration key fail: copies:nth=1: there is no function or group \"copies\"; the "
            "nearest is copy");
  EXPECT_EQ(refusal("all"),
            "configuration key fail: all: a colon and a condition are missing, such as :nth=1");
  EXPECT_EQ(refusal("all:sticky"),
            "configuration key fail: all:sticky: a condition is missing, such as nth=1");
  EXPECT_EQ(refusal("all:nth=1,every=2"),
            "configuration key fail: all:nth=1,every=2: it has two conditions");
  EXPECT_EQ(refusal("all:nth=1,seed=2"),
            "configuration key fail: all:nth=1,seed=2: a seed belongs to a probability");
  EXPECT_EQ(refusal("all:nth"), "configuration key fail: all:nth: \"nth\" has a wrong value");
}

TEST(FailureRuleTest, WrongValuesAreRefused) {
  for (const char* part : {"nth=0",
                           "nth=-1",
                           "nth=x",
                           "nth=",
                           "every=0",
                           "probability=1.1",
                           "probability=-0.1",
                           "probability=nan",
                           "probability=",
                           "from_size=",
                           "from_size=big",
                           "after=2",
                           "after=-1s",
                           "after=nans",
                           "after=1e9s",
                           "nth=1,code=0",
                           "nth=1,code=99999999999",
                           "nth=1,code=oom",
                           "probability=0.5,seed=x",
                           "nth=1,",
                           "nth=1,sticky=1",
                           "nth=1,sometimes"}) {
    EXPECT_NE(refusal("all:" + std::string(part)), "none") << part;
  }
  for (const char* rules : {":nth=1", "|:nth=1", "all:nth=1;", ";", "all|:nth=1"}) {
    EXPECT_NE(refusal(rules), "none") << rules;
  }
}

TEST(FailureRuleTest, LongTextIsRefusedInAShortSentence) {
  EXPECT_LT(refusal(std::string(100'000, 'x') + ":nth=1").size(), 300U);
  EXPECT_LT(refusal("all:" + std::string(100'000, 'x')).size(), 300U);
}

TEST(PublicCallsTest, EachFunctionHasOneGroup) {
  for (const CallGroup& group : call_groups()) {
    for (const std::string_view function : group.functions) {
      EXPECT_EQ(group_of_call(function), &group) << function;
    }
  }
  EXPECT_EQ(group_of_call("aclrtNothing"), nullptr);
}

}  // namespace
}  // namespace understudy
