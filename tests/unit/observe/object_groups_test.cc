// SPDX-License-Identifier: Apache-2.0
//
// One history per process: each test has numbers of its own.
#include "observe/object_groups.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "observe/history.h"

namespace understudy {
namespace {

class ObjectGroupsTest : public testing::Test {
 protected:
  ObjectGroupsTest() { chosen_checks.store(CheckSet::mistakes().bits()); }
  ~ObjectGroupsTest() override {
    History::name_place("");
    chosen_checks.store(0);
  }

  static uint64_t begin(ObjectKind kind, const char* place, uint64_t size = 0) {
    static uint64_t last = 0x200000000000;
    last += 0x10000000;
    History::name_place(place);
    History::begin({kind, last, size, 0});
    return last;
  }
};

TEST_F(ObjectGroupsTest, WhatBeganSinceAMarkIsGroupedByLines) {
  const uint64_t early = begin(ObjectKind::kStream, "a.py:1 f");
  const uint64_t mark = History::count_begun();
  EXPECT_TRUE(live_since(mark).empty());
  const uint64_t ended = begin(ObjectKind::kAllocation, "a.py:2 f", 4096);
  (void)begin(ObjectKind::kAllocation, "a.py:2 f", 4096);
  (void)begin(ObjectKind::kStream, "a.py:2 f");
  (void)begin(ObjectKind::kAllocation, "a.py:2 f\na.py:9 g", 4096);
  (void)begin(ObjectKind::kAllocation, "a.py:2 f", 8192);
  (void)begin(ObjectKind::kShare, "a.py:3 f");
  ObjectEnd(ObjectKind::kAllocation, ended).confirm();
  ObjectEnd(ObjectKind::kStream, early).confirm();
  std::vector<std::string> sentences;
  for (const ObjectGroup& group : live_since(mark)) sentences.push_back(sentence_of(group));
  EXPECT_EQ(sentences, (std::vector<std::string>{
                           "2 allocations of 12 KiB together on device 0, allocated at a.py:2",
                           "1 stream on device 0, created at a.py:2",
                           "1 allocation of 4 KiB on device 0, allocated at a.py:2"}));
}

}  // namespace
}  // namespace understudy
