// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/comparison.h"

#include <gtest/gtest.h>

#include "tools/recording/compared_places.h"

namespace understudy::command {
namespace {

using Places = std::map<std::string, ComparableFigures::Place>;

ComparableFigures::Place with_peak(uint64_t bytes) {
  return {.at_peak = bytes, .at_end = 0, .allocations = 1, .allocated = bytes};
}

const ComparedPlace* find(const std::vector<ComparedPlace>& places, const std::string& name) {
  for (const ComparedPlace& place : places) {
    if (place.name == name) return &place;
  }
  return nullptr;
}

TEST(RecordingComparison, LineNumbersAndAddressesAreLeftOut) {
  EXPECT_EQ(without_lines("fill at kv.cc:41 < main at kv.cc:80"), "fill at kv.cc < main at kv.cc");
  EXPECT_EQ(without_lines("kv.py:41 fill < kv.py:7 <module>"), "kv.py fill < kv.py <module>");
  EXPECT_EQ(without_lines("lib.so+0x1f2a"), "lib.so+");
  EXPECT_EQ(without_lines("0x7f00 < a::b1 at c:x:3:"), " < a::b1 at c:x:3:");
  EXPECT_EQ(without_lines(":"), ":");
  EXPECT_EQ(without_lines(""), "");
}

TEST(RecordingComparison, SameStacksAreComparedOneByOne) {
  const Places before{{"f at a.c:1", with_peak(10)}, {"f at a.c:5", with_peak(20)}};
  const Places after{{"f at a.c:1", with_peak(15)}, {"f at a.c:5", with_peak(20)}};
  const std::vector<ComparedPlace> places = compare_places(before, after);
  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(find(places, "f at a.c:1")->at_peak.growth(), 5);
  EXPECT_FALSE(find(places, "f at a.c:5")->differs());
}

TEST(RecordingComparison, StacksAreNewOrVanished) {
  const Places before{{"f at a.c:1", with_peak(10)}, {"g at a.c:9", with_peak(1)}};
  const Places after{{"f at a.c:1", with_peak(10)}, {"f at a.c:5", with_peak(20)}};
  const std::vector<ComparedPlace> places = compare_places(before, after);
  ASSERT_EQ(places.size(), 3U);
  EXPECT_EQ(find(places, "f at a.c:1")->presence, Presence::kBoth);
  EXPECT_EQ(find(places, "f at a.c:5")->presence, Presence::kNew);
  EXPECT_EQ(find(places, "g at a.c:9")->presence, Presence::kVanished);
  EXPECT_EQ(find(places, "g at a.c:9")->at_peak.growth(), -1);
}

TEST(RecordingComparison, MovedLineIsNoNewPlace) {
  const std::vector<ComparedPlace> places =
      compare_places({{"f at a.c:1", with_peak(10)}}, {{"f at a.c:3", with_peak(12)}});
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0].name, "f at a.c:3");
  EXPECT_TRUE(places[0].has_moved);
  EXPECT_EQ(places[0].presence, Presence::kBoth);
  EXPECT_EQ(places[0].at_peak.growth(), 2);
}

// Line 5 of the second may be line 1 of the first, or another one.
TEST(RecordingComparison, SeveralMovedLinesAreComparedTogether) {
  const Places before{{"f at a.c:1", with_peak(10)}, {"f at a.c:5", with_peak(20)}};
  const Places after{{"f at a.c:5", with_peak(10)}, {"f at a.c:9", with_peak(20)}};
  const std::vector<ComparedPlace> places = compare_places(before, after);
  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0].name, "f at a.c");
  EXPECT_FALSE(places[0].differs());
}

TEST(RecordingComparison, WhatGrewMostIsFirst) {
  ComparableFigures before;
  ComparableFigures after;
  before.functions = {{"few", {1, 10}}, {"gone", {100, 10}}, {"slower", {5, 10}}};
  after.functions = {{"few", {3, 10}}, {"many", {50, 10}}, {"slower", {5, 90}}};
  const Comparison found = compare(before, after);
  std::vector<std::string> order;
  for (const ComparedFunction& function : found.functions) order.push_back(function.name);
  EXPECT_EQ(order, (std::vector<std::string>{"many", "few", "slower", "gone"}));
  EXPECT_EQ(found.functions[2].mean.before, 2U);
  EXPECT_EQ(found.functions[2].mean.after, 18U);
  EXPECT_FALSE(found.is_equal_but_for_times());
}

TEST(RecordingComparison, TimesAloneAreNoDifference) {
  ComparableFigures before;
  before.duration = 100;
  before.functions = {{"aclrtMalloc", {1, 10}}};
  ComparableFigures after = before;
  EXPECT_TRUE(compare(before, after).is_equal_but_for_times());
  EXPECT_TRUE(compare(before, after).has_equal_times());
  after.functions["aclrtMalloc"].total = 11;
  EXPECT_TRUE(compare(before, after).is_equal_but_for_times());
  EXPECT_FALSE(compare(before, after).has_equal_times());
  after.failures[{"aclrtMalloc", 207001}] = 1;
  EXPECT_FALSE(compare(before, after).is_equal_but_for_times());
}

TEST(RecordingComparison, WithoutStacksInBothPlacesAreFunctions) {
  ComparableFigures before;
  before.has_stacks = true;
  before.places = {{"f at a.c:1", with_peak(10)}};
  before.places_by_function = {{"aclrtMalloc", with_peak(10)}};
  ComparableFigures after;
  after.places = after.places_by_function = {{"aclrtMalloc", with_peak(30)}};
  const Comparison found = compare(before, after);
  ASSERT_EQ(found.places.size(), 1U);
  EXPECT_EQ(found.places[0].name, "aclrtMalloc");
  EXPECT_EQ(found.places[0].at_peak.growth(), 20);
}

}  // namespace
}  // namespace understudy::command
