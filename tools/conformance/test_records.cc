// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/test_records.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace understudy::command {

namespace {

void add(const nlohmann::json& line, TestRecord& record) {
  const std::string event = line.value("event", "");
  if (event == "start") {
    record.is_started = true;
  } else if (event == "end") {
    record.is_ended = true;
    record.is_failed = line.value("failed", false);
  } else if (event == "failure") {
    record.failures.push_back(
        {line.value("file", ""), line.value("line", 0), line.value("message", "")});
  } else if (event == "code") {
    record.codes.push_back(
        {line.value("call", ""), line.value("expected", 0), line.value("got", 0)});
  } else if (event == "skip" && record.skip_reason.empty()) {  // the innermost process tells first
    record.skip_reason = line.value("message", "");
  }
}

}  // namespace

std::map<std::string, TestRecord> read_records(const std::string& path) {
  std::map<std::string, TestRecord> records;
  std::ifstream file(path);
  std::string running;
  for (std::string text; std::getline(file, text);) {
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object()) continue;
    const std::string test = line.value("test", "");
    if (!test.empty()) running = test;
    if (!running.empty()) add(line, records[running]);
  }
  return records;
}

}  // namespace understudy::command
