// SPDX-License-Identifier: Apache-2.0
#include "observe/access_map.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

namespace understudy {
namespace {

TaskAccess access_of(uint32_t stream, uint64_t position, VirtualRange range, AccessUse use) {
  return {{stream, position}, {range, use}, {}};
}

StreamClock clock_at(std::initializer_list<std::pair<uint32_t, uint64_t>> reached) {
  StreamClock clock;
  for (const auto& [stream, position] : reached) clock.advance(stream, position);
  return clock;
}

TEST(AccessMap, WriteIsFoundByReadersAndWritersOfItsBytesAlone) {
  AccessMap map;
  map.add(access_of(1, 5, {100, 50}, AccessUse::kWrite), clock_at({{1, 5}}));
  for (const AccessUse use : {AccessUse::kRead, AccessUse::kReduce, AccessUse::kWrite}) {
    const auto found = map.find_unordered({{149, 10}, use}, {});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->task.stream, 1U);
    EXPECT_EQ(found->task.position, 5U);
  }
  EXPECT_FALSE(map.find_unordered({{150, 10}, AccessUse::kWrite}, {}));
  EXPECT_FALSE(map.find_unordered({{90, 10}, AccessUse::kWrite}, {}));
}

TEST(AccessMap, WhatTheClockHasReachedIsInOrder) {
  AccessMap map;
  map.add(access_of(1, 5, {100, 50}, AccessUse::kWrite), clock_at({{1, 5}}));
  EXPECT_TRUE(map.find_unordered({{100, 1}, AccessUse::kRead}, clock_at({{1, 4}})));
  EXPECT_FALSE(map.find_unordered({{100, 1}, AccessUse::kRead}, clock_at({{1, 5}})));
  EXPECT_TRUE(map.find_unordered({{100, 1}, AccessUse::kRead}, clock_at({{2, 5}})));
}

TEST(AccessMap, ReadsAndReductionsDoNotConflictWithTheirKind) {
  AccessMap map;
  map.add(access_of(1, 1, {0, 10}, AccessUse::kRead), clock_at({{1, 1}}));
  map.add(access_of(1, 2, {20, 10}, AccessUse::kReduce), clock_at({{1, 2}}));
  EXPECT_FALSE(map.find_unordered({{0, 10}, AccessUse::kRead}, {}));
  EXPECT_TRUE(map.find_unordered({{0, 10}, AccessUse::kReduce}, {}));
  EXPECT_FALSE(map.find_unordered({{20, 10}, AccessUse::kReduce}, {}));
  EXPECT_TRUE(map.find_unordered({{20, 10}, AccessUse::kRead}, {}));
}

TEST(AccessMap, ReadsOfTwoStreamsAreBothKept) {
  AccessMap map;
  map.add(access_of(1, 1, {0, 10}, AccessUse::kRead), clock_at({{1, 1}}));
  map.add(access_of(2, 1, {0, 10}, AccessUse::kRead), clock_at({{2, 1}}));
  EXPECT_TRUE(map.find_unordered({{0, 10}, AccessUse::kWrite}, clock_at({{1, 1}})));
  EXPECT_TRUE(map.find_unordered({{0, 10}, AccessUse::kWrite}, clock_at({{2, 1}})));
  EXPECT_FALSE(map.find_unordered({{0, 10}, AccessUse::kWrite}, clock_at({{1, 1}, {2, 1}})));
}

TEST(AccessMap, LaterWriteReplacesWhatCameBeforeItInItsBytes) {
  AccessMap map;
  map.add(access_of(1, 1, {0, 100}, AccessUse::kWrite), clock_at({{1, 1}}));
  map.add(access_of(2, 7, {40, 20}, AccessUse::kWrite), clock_at({{1, 1}, {2, 7}}));
  EXPECT_EQ(map.find_unordered({{50, 1}, AccessUse::kRead}, {})->task.stream, 2U);
  EXPECT_EQ(map.find_unordered({{39, 1}, AccessUse::kRead}, {})->task.stream, 1U);
  EXPECT_EQ(map.find_unordered({{60, 1}, AccessUse::kRead}, {})->task.stream, 1U);
}

TEST(AccessMap, ForgottenBytesHaveNoAccesses) {
  AccessMap map;
  map.add(access_of(1, 1, {0, 100}, AccessUse::kWrite), clock_at({{1, 1}}));
  map.forget({30, 40});
  EXPECT_FALSE(map.find_unordered({{30, 40}, AccessUse::kWrite}, {}));
  EXPECT_TRUE(map.find_unordered({{29, 1}, AccessUse::kWrite}, {}));
  EXPECT_TRUE(map.find_unordered({{70, 1}, AccessUse::kWrite}, {}));
}

}  // namespace
}  // namespace understudy
