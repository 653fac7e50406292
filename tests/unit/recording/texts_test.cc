// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/unit/recording/recording_maker.h"
#include "tools/recording/argument_text.h"
#include "tools/recording/stack_lines.h"
#include "tools/recording/valid_text.h"

namespace understudy::command {
namespace {

TEST(ValidText, Utf8StaysAsItIs) {
  for (const std::string text :
       {"", "plain", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xef\xbf\xbd"}) {
    EXPECT_EQ(valid_utf8(text), text);
  }
}

TEST(ValidText, BrokenBytesAreReplaced) {
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(valid_utf8("a\xffz"), "a" + bad + "z");
  EXPECT_EQ(valid_utf8("a\xe2\x82"), "a" + bad + bad);               // cut short
  EXPECT_EQ(valid_utf8("\xc0\xaf"), bad + bad);                      // too long
  EXPECT_EQ(valid_utf8("\xe0\x80\xaf"), bad + bad + bad);            // too long
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), bad + bad + bad);            // half of a pair
  EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), bad + bad + bad + bad);  // beyond the last
  EXPECT_EQ(valid_utf8("\xf0\x8f\xbf\xbf"), bad + bad + bad + bad);  // too long
  EXPECT_EQ(valid_utf8("\x80"), bad);
}

TEST(ValidText, EveryTwoBytesMakeValidJson) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      std::string json;
      append_json_text(json, text);
      EXPECT_EQ(nlohmann::json::parse(json).get<std::string>(), valid_utf8(text)) << json;
    }
  }
}

TEST(ValidText, XmlHasNoLettersThatItForbids) {
  std::string text;
  append_xml_text(text, std::string("<a \"b\">&\x01\n\xef\xbf\xbe\xff", 14));
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(text, "&lt;a &quot;b&quot;&gt;&amp;" + bad + "&#10;" + bad + bad);
}

TEST(StackLines, FunctionsAndPlacesAreFound) {
  const auto label = [](const char* text) { return label_of(parse_stack_line(text)); };
  EXPECT_EQ(label("fill at kv.cc:41"), "fill (kv.cc:41)");
  EXPECT_EQ(label("look at me at my file.cc:41"), "look at me (my file.cc:41)");
  EXPECT_EQ(label("kv.py:41 fill"), "fill (kv.py:41)");
  EXPECT_EQ(label("a:b/kv.py:41 fill it"), "fill it (a:b/kv.py:41)");
  EXPECT_EQ(label("kv.cc:41"), "kv.cc:41");
  EXPECT_EQ(label("0x1234 in libtorch.so"), "0x1234 in libtorch.so");
  EXPECT_EQ(label("fill at kv.cc:99999999999999999999"), "fill at kv.cc:99999999999999999999");
  EXPECT_EQ(label(" at :"), " at :");
  EXPECT_EQ(parse_stack_line("fill at kv.cc:41").line, 41U);
}

TEST(StackLines, WithoutStackTheFunctionStandsAlone) {
  RecordingMaker maker;
  const uint32_t call = maker.call(0, 1, 1, 0, {});
  const uint32_t stack = maker.stack("inner at a.cc:1\n\nouter at a.cc:2\n");
  const uint32_t empty = maker.stack("");
  const std::vector<StackLine> lines = stack_lines(maker.made, stack, call);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].function, "inner");
  EXPECT_EQ(lines[1].function, "outer");
  for (const uint32_t none : {kNone, empty}) {
    ASSERT_EQ(stack_lines(maker.made, none, call).size(), 1U);
    EXPECT_EQ(stack_lines(maker.made, none, call)[0].function, "aclrtMalloc");
    EXPECT_TRUE(stack_lines(maker.made, none, kNone).empty());
  }
}

TEST(StackLines, DeepStacksAreCut) {
  RecordingMaker maker;
  std::string lines;
  for (int line = 0; line < 9000; ++line) lines += "f\n";
  EXPECT_EQ(stack_lines(maker.made, maker.stack(lines), kNone).size(), 256U);
}

std::string argument(char type, std::vector<uint64_t> words, bool is_out = false,
                     bool has_failed = false) {
  Recording recording;
  recording.texts = {"config.json"};
  std::string text;
  append_argument(text, recording, {"name", type, 1, is_out}, words, has_failed);
  return text;
}

TEST(ArgumentText, EachTypeReadsAsItsCallerWroteIt) {
  EXPECT_EQ(argument('u', {UINT64_MAX}), "18446744073709551615");
  EXPECT_EQ(argument('i', {UINT64_MAX}), "-1");
  EXPECT_EQ(argument('p', {0x1f}), "0x1f");
  EXPECT_EQ(argument('f', {0x3fc00000}), "1.5");
  EXPECT_EQ(argument('f', {0x7fc00000}), "nan");
  EXPECT_EQ(argument('t', {0}), "config.json");
  EXPECT_EQ(argument('t', {1}), "none");
  EXPECT_EQ(argument('t', {UINT64_MAX}), "none");
  EXPECT_EQ(argument('x', {0}), "NULL");
  EXPECT_EQ(argument('x', {9}), "not NULL");
  EXPECT_EQ(argument('L', {uint64_t{1} << 32 | 3}), "device 3");
  EXPECT_EQ(argument('L', {0}), "host");
  EXPECT_EQ(argument('L', {UINT64_MAX}), "location type -1 4294967295");
  EXPECT_EQ(argument('P', {0, uint64_t{1} << 32 | 4, 2, 0}),
            "device 2, attribute 4, handle type 0, allocation type 0");
  EXPECT_EQ(argument('P', {9}), "0x9");
  EXPECT_EQ(argument('P', {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}), "none");
  EXPECT_EQ(argument('?', {9}), "0x9");
  EXPECT_EQ(argument('u', {}), "not recorded");
  EXPECT_EQ(argument('u', {64}, true, true), "0x40");
}

TEST(ArgumentText, ArgumentsAreFoundByName) {
  RecordingMaker maker;
  const uint32_t call = maker.call(0, 1, 1, 0, {5, 6});
  const uint32_t cut = maker.call(0, 1, 1, 0, {5});
  EXPECT_EQ(argument_named(maker.made, maker.made.calls[call], "size")[0], 6U);
  EXPECT_TRUE(argument_named(maker.made, maker.made.calls[call], "stream").empty());
  EXPECT_TRUE(argument_named(maker.made, maker.made.calls[cut], "size").empty());
}

}  // namespace
}  // namespace understudy::command
