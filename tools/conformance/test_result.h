// SPDX-License-Identifier: Apache-2.0
//
// How one test went, alone in a process: judged from what it recorded, how its process ended and
// what it printed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/conformance/test_records.h"

namespace understudy::command {

// The worse, the later; of several tests of a rule the worst decides, unless it does not apply.
enum class Outcome { kNotApplicable, kHolds, kDiffers, kHung, kCrashed };
std::string_view name_of(Outcome outcome);

// The end of the process that a test ran in.
struct ProcessEnd {
  int wait_status = 0;
  bool is_hung = false;  // it was ended because its time was up
  std::string_view output;
};

struct TestResult {
  std::string test;
  Outcome outcome = Outcome::kHolds;
  std::string reason;  // why it does not apply, crashed or hung
  std::vector<Failure> failures;
  std::vector<CodeDifference> refused;   // codes that are wrong
  std::vector<CodeDifference> accepted;  // other codes than ours that are as right
};

TestResult judge(const std::string& test, const TestRecord& record, const ProcessEnd& end);

}  // namespace understudy::command
