// SPDX-License-Identifier: Apache-2.0
#include "support/conformance.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

namespace understudy_test {

namespace {

using nlohmann::json;

const char* record_file() { return getenv("UNDERSTUDY_TEST_RECORD"); }
const char* foreign_product() { return getenv("UNDERSTUDY_TEST_FOREIGN"); }

// Empty in a peer, which is no test. Remembered, because gtest cannot be asked while it tells of a
// failure: its lock is held. Changes between tests alone, when they have no threads.
std::string& current_test() {
  static std::string& name = *new std::string;
  return name;
}

// One write to a file that is opened for it: tests count descriptors, and use them up.
void write_record(const json& record) {
  const char* path = record_file();
  if (path == nullptr) return;
  const std::string line =
      record.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";  // any bytes may come
  const int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());
  close(file);
}

void record_code(aclError expected, aclError actual, std::string_view call) {
  write_record({{"event", "code"},
                {"test", current_test()},
                {"call", call},
                {"expected", expected},
                {"got", actual}});
}

// The number that a text consists of, if it is one of the published ranges of error codes.
std::optional<aclError> error_code(std::string_view text) {
  constexpr std::array<int, 6> kThousands = {100, 107, 200, 207, 500, 507};
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_code =
      error == std::errc() && end == text.data() + text.size() &&
      std::find(kThousands.begin(), kThousands.end(), number / 1000) != kThousands.end();
  return is_code ? std::optional<aclError>(number) : std::nullopt;
}

// The text up to the end of its line; the text then begins behind it.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// Some tests compare a code that came from another process or through a function of theirs, as in
// EXPECT_EQ(import(token), ACL_ERROR_RT_INVALID_HANDLE), which is a literal to gtest:
//   Expected equality of these values:
//     import(token)
//       Which is: 507899
//     107017
// True if this is such a message and both are codes; that is recorded.
bool is_recorded_difference(std::string_view message) {
  constexpr std::string_view kValue = "    Which is: ";
  constexpr std::string_view kIndent = "  ";
  if (foreign_product() == nullptr || take_line(message) != "Expected equality of these values:") {
    return false;
  }
  const std::string_view call = take_line(message);
  const std::string_view value = take_line(message);
  const std::string_view literal = take_line(message);
  if (!value.starts_with(kValue) || !literal.starts_with(kIndent)) return false;
  const std::optional<aclError> actual = error_code(value.substr(kValue.size()));
  const std::optional<aclError> expected = error_code(literal.substr(kIndent.size()));
  if (!actual || !expected) return false;
  record_code(*expected, *actual, call.substr(kIndent.size()));
  return true;
}

class Recorder : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& info) override {
    current_test() = std::string(info.test_suite_name()) + "." + info.name();
    if (!is_fresh_process()) write_record({{"event", "start"}, {"test", current_test()}});
  }

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (result.passed() || is_recorded_difference(result.message())) return;
    const char* file = result.file_name();
    write_record({{"event", result.skipped() ? "skip" : "failure"},
                  {"test", current_test()},
                  {"file", file == nullptr ? "" : file},
                  {"line", result.line_number()},
                  {"message", result.message()}});
  }

  void OnTestEnd(const testing::TestInfo& info) override {
    if (is_fresh_process()) return;  // the test goes on in the process that started this one
    write_record({{"event", "end"},
                  {"test", current_test()},
                  {"failed", info.result()->Failed()},
                  {"milliseconds", info.result()->elapsed_time()}});
  }
};

// What a variable must be on a foreign library for a test that sets it; null if nothing would do.
const char* foreign_value(const std::string& variable) {
  if (variable == "UNDERSTUDY_PRODUCT") return foreign_product();
  if (variable == "UNDERSTUDY_SOC") return getenv("UNDERSTUDY_TEST_SOC");
  return nullptr;
}

}  // namespace

void record_tests() {
  if (record_file() == nullptr) return;
  testing::UnitTest::GetInstance()->listeners().Append(new Recorder);
}

bool is_recorded_difference(aclError expected, aclError actual, const char* call) {
  if (foreign_product() == nullptr || actual == ACL_SUCCESS || expected == ACL_SUCCESS ||
      actual == expected) {
    return false;
  }
  record_code(expected, actual, call);
  return true;
}

bool may_lack_text() {
  return foreign_product() != nullptr && current_test().find("ERR_03") == std::string::npos;
}

std::optional<std::string> why_not_applicable(const std::vector<Variable>& variables) {
  if (foreign_product() == nullptr) return std::nullopt;
  for (const auto& [name, value] : variables) {
    if (!name.starts_with("UNDERSTUDY_")) continue;  // ASCEND_RT_VISIBLE_DEVICES is everybody's
    const char* there = foreign_value(name);
    if (there != nullptr && value == there) continue;
    if (name == "UNDERSTUDY_PRODUCT") return "is about the product " + value;
    if (name == "UNDERSTUDY_SOC") return "is about the chip " + value;
    return "needs " + name + ", which only the software NPU knows";
  }
  return std::nullopt;
}

}  // namespace understudy_test
