// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/flame_graph.h"

#include <gtest/gtest.h>

#include "tests/unit/recording/recording_maker.h"
#include "tools/recording/folded_stacks.h"

namespace understudy::command {
namespace {

TEST(FoldedStacks, ThePeakOfTheFullestDeviceByItsStacks) {
  RecordingMaker maker;
  const uint32_t stack = maker.stack("fill at kv.cc:41\nmain; or not at kv.cc:60");
  const uint32_t first = maker.object("allocation", 1, 100, 10, 30);
  const uint32_t second = maker.object("allocation", 2, 50, 20);
  const uint32_t third = maker.object("allocation", 3, 7, 25);
  maker.object("host block", 4, 5000, 26);
  maker.object("allocation", 5, 120, 28);
  maker.made.objects.back().device = 1;
  maker.object("allocation", 6, 1, 40);
  maker.made.objects[first].stack = maker.made.objects[second].stack = stack;
  maker.made.objects[third].begin_call = maker.call(0, 1, 1, 0, {});
  const FoldedMemory peak = memory_at_peak(maker.made);
  EXPECT_EQ(peak.title, "device 0 at its peak of 157 bytes, after 0.000000 s");
  EXPECT_EQ(folded_text(peak),
            "aclrtMalloc 7\n"
            "main, or not (kv.cc:60);fill (kv.cc:41) 150\n");
  EXPECT_EQ(folded_text(memory_at_end(maker.made)),
            "device 0;aclrtMalloc 7\n"
            "device 0;allocation 1\n"
            "device 0;main, or not (kv.cc:60);fill (kv.cc:41) 50\n"
            "device 1;allocation 120\n"
            "host;host block 5000\n");
}

TEST(FoldedStacks, HostMemoryStandsInWhereThereIsNoOther) {
  RecordingMaker maker;
  maker.object("host block", 4, 2048, 26);
  EXPECT_EQ(folded_text(memory_at_peak(maker.made)), "host block 2048\n");
  EXPECT_EQ(folded_text(memory_at_end(maker.made)), "host block 2048\n");
  EXPECT_EQ(folded_text(memory_at_peak({})), "");
  EXPECT_EQ(folded_text(memory_at_end({})), "");
}

TEST(FoldedStacks, EachStackIsOneLine) {
  RecordingMaker maker;
  maker.made.functions.push_back({"two\nlines\xff;", {}});
  const uint32_t object = maker.object("allocation", 1, UINT64_MAX, 10);
  maker.made.objects[object].begin_call = maker.call(2, 1, 1, 0, {});
  maker.object("allocation", 2, UINT64_MAX, 10);
  EXPECT_EQ(folded_text(memory_at_end(maker.made)),
            "allocation 18446744073709551615\n"
            "two lines\xef\xbf\xbd, 18446744073709551615\n");
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(FlameGraph, FramesThatAreSharedAreOne) {
  const std::string graph = flame_graph({"title <&>",
                                         {{{"main"}, 10},
                                          {{"main", "a"}, 20},
                                          {{"main", "a", "c"}, 30},
                                          {{"main", "b"}, 40},
                                          {{"other", "a"}, 100}}});
  EXPECT_EQ(count(graph, "<g "), 7U);
  EXPECT_EQ(count(graph, "data-name=\"main\" data-bytes=\"100\" data-depth=\"1\""), 1U);
  EXPECT_EQ(count(graph, "data-name=\"a\" data-bytes=\"50\" data-depth=\"2\""), 1U);
  EXPECT_EQ(count(graph, "data-name=\"b\" data-bytes=\"40\" data-depth=\"2\""), 1U);
  EXPECT_EQ(count(graph, "data-name=\"a\" data-bytes=\"100\" data-depth=\"2\""), 1U);
  EXPECT_EQ(count(graph, "title &lt;&amp;&gt;"), 2U);
}

TEST(FlameGraph, WhatCannotBeSeenIsLeftOut) {
  const std::string graph = flame_graph({"", {{{"large"}, 1000000}, {{"tiny"}, 50}}});
  EXPECT_EQ(count(graph, "data-name=\"large\""), 1U);
  EXPECT_EQ(count(graph, "data-name=\"tiny\""), 0U);
  EXPECT_EQ(count(graph, "data-bytes=\"1000050\""), 1U);
}

TEST(FlameGraph, ExtremeSumsAndNoneAreDrawn) {
  const std::string graph = flame_graph({"", {{{"a"}, UINT64_MAX}, {{"b"}, UINT64_MAX}}});
  EXPECT_EQ(count(graph, "data-bytes=\"18446744073709551615\""), 2U);
  EXPECT_EQ(count(flame_graph({"", {}}), "<g "), 0U);
  EXPECT_EQ(count(flame_graph({"", {{{"a"}, 0}}}), "<g "), 0U);
}

TEST(FlameGraph, NamesAreCutBetweenLetters) {
  std::string name;
  for (int index = 0; index < 400; ++index) name += "\xe2\x82\xac";
  const std::string graph = flame_graph({"", {{{name}, 1}}});
  EXPECT_EQ(count(graph, "\xe2\x82\xac\xe2\x80\xa6</text>"), 1U);
}

}  // namespace
}  // namespace understudy::command
