// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "runtime/initialization.h"
#include "unit/expect_result.h"
#include "unit/temporary_file.h"

namespace understudy {
namespace {

Result<InitOptions> options_in(const std::string& text) {
  const TemporaryFile file(text);
  return read_init_options(file.path().c_str());
}

TEST(InitOptions, NoFileIsTheSameAsAnEmptyObject) {
  const InitOptions none = value_of(read_init_options(nullptr));
  const InitOptions empty_path = value_of(read_init_options(""));
  const InitOptions empty_object = value_of(options_in(" { } "));
  EXPECT_EQ(none.default_device, std::nullopt);
  EXPECT_EQ(none.error_text_scope, ErrorTextScope::kThread);
  EXPECT_EQ(none.content, empty_path.content);
  EXPECT_EQ(none.content, empty_object.content);
}

TEST(InitOptions, FileThatCannotBeReadIsAnInvalidFile) {
  EXPECT_TRUE(fails_with(read_init_options("/tmp/there-is-no-such-file"), ErrorCode::kInvalidFile));
  EXPECT_TRUE(fails_with(read_init_options("/tmp"), ErrorCode::kInvalidFile));
}

TEST(InitOptions, WhatIsNoJsonObjectIsRefused) {
  for (const char* const text : {"", "{", "nonsense", "[]", "7", "null", "{\"a\": }", "{} {}"}) {
    EXPECT_TRUE(fails_with(options_in(text), ErrorCode::kInvalidArgument)) << text;
  }
}

TEST(InitOptions, DefaultDeviceIsANumberOrItsText) {
  EXPECT_EQ(value_of(options_in(R"({"defaultDevice": {"default_device": "3"}})")).default_device,
            3);
  EXPECT_EQ(value_of(options_in(R"({"defaultDevice": {"default_device": 0}})")).default_device, 0);
}

TEST(InitOptions, WrongDefaultDeviceIsRefusedByName) {
  for (const char* const section :
       {"{}", "3", R"({"default_device": -1})", R"({"default_device": "x"})",
        R"({"default_device": 1.5})", R"({"default_device": null})", R"({"default_device": ""})"}) {
    const Result<InitOptions> refused =
        options_in(std::string(R"({"defaultDevice": )") + section + "}");
    ASSERT_TRUE(fails_with(refused, ErrorCode::kInvalidArgument)) << section;
    EXPECT_NE(std::string(refused.error().text()).find("default_device"), std::string::npos);
  }
}

TEST(InitOptions, ErrorTextsArePerThreadOrPerProcess) {
  EXPECT_EQ(value_of(options_in(R"({"err_msg_mode": "0"})")).error_text_scope,
            ErrorTextScope::kThread);
  EXPECT_EQ(value_of(options_in(R"({"err_msg_mode": "1"})")).error_text_scope,
            ErrorTextScope::kProcess);
  EXPECT_EQ(value_of(options_in(R"({"err_msg_mode": 1})")).error_text_scope,
            ErrorTextScope::kProcess);
  EXPECT_TRUE(fails_with(options_in(R"({"err_msg_mode": "2"})"), ErrorCode::kInvalidArgument));
  EXPECT_TRUE(fails_with(options_in(R"({"err_msg_mode": true})"), ErrorCode::kInvalidArgument));
}

TEST(InitOptions, NestingHasALimitWellBelowTheStack) {
  const auto nested = [](size_t depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_TRUE(is_ok(options_in(nested(10))));
  EXPECT_TRUE(fails_with(options_in(nested(11)), ErrorCode::kInvalidArgument));
  EXPECT_TRUE(fails_with(options_in(nested(200'000)), ErrorCode::kInvalidArgument));
}

TEST(InitOptions, LimitsOfKernelsAreNumbersInTheirPlaces) {
  const InitOptions options = value_of(options_in(
      R"({"StackSize": {"aicore_stack_size": "65536", "x": 1}, "simt_printf_fifo_size": 9})"));
  EXPECT_EQ(options.kernel_limits, (KernelLimitRequests{{{}, {}, 65536, {}, 9}}));
  for (const char* const text :
       {R"({"StackSize": []})", R"({"StackSize": {"aicore_stack_size": {}}})",
        R"({"simt_printf_fifo_size": -9})"}) {
    EXPECT_TRUE(fails_with(options_in(text), ErrorCode::kInvalidArgument)) << text;
  }
}

TEST(InitOptions, EntriesForOthersAreAccepted) {
  const InitOptions options = value_of(options_in(R"({"dump": {"dump_list": []}, "x": 1})"));
  EXPECT_EQ(options.default_device, std::nullopt);
}

TEST(InitOptions, ContentIsComparedWithoutSpacesAndOrder) {
  const InitOptions one = value_of(options_in(R"({"a": 1, "b": {"c": [1, 2]}})"));
  const InitOptions same = value_of(options_in("{\"b\":{\"c\":[1,2]},\n\"a\":1}"));
  const InitOptions other = value_of(options_in(R"({"a": 2, "b": {"c": [1, 2]}})"));
  EXPECT_EQ(one.content, same.content);
  EXPECT_NE(one.content, other.content);
}

TEST(InitOptions, TextIsKeptAsItWasRead) {
  const std::string text = "{ \"a\" :  1 }\n";
  EXPECT_EQ(value_of(options_in(text)).text, text);
}

}  // namespace
}  // namespace understudy
