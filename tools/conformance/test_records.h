// SPDX-License-Identifier: Apache-2.0
//
// What a test program wrote while it ran (tests/support/conformance.h), by test.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace understudy::command {

// An assertion that did not hold.
struct Failure {
  std::string file;  // empty if it has none
  int line = 0;
  std::string message;
};

// A call that failed as it should, with another code.
struct CodeDifference {
  std::string call;
  int expected = 0;
  int got = 0;
};

struct TestRecord {
  bool is_started = false;
  bool is_ended = false;
  bool is_failed = false;
  std::vector<Failure> failures;
  std::vector<CodeDifference> codes;
  std::string skip_reason;  // empty: it was not skipped
};

// By name. What other processes recorded without knowing their test goes to the one that was
// running. Lines that a process was killed in are left out.
std::map<std::string, TestRecord> read_records(const std::string& path);

}  // namespace understudy::command
