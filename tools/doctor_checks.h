// SPDX-License-Identifier: Apache-2.0
//
// What `understudy doctor` looks at, one function each. A check tries or reads one thing and says
// what it means to the software NPU, in plain words. It changes nothing on the machine.
#pragma once

#include <string>
#include <vector>

namespace understudy::command {

enum class Verdict : unsigned char {
  kFine,
  kCouldBeBetter,  // everything works; something is slower or smaller than it could be
  kProblem,        // something does not work
};

struct Finding {
  Verdict verdict = Verdict::kFine;
  std::string found;    // what there is, in a few words
  std::string meaning;  // what that does here
  std::string command;  // what improves it; empty if there is nothing to improve
};

struct Check {
  const char* name;
  Finding (*look)();
};

// The library beside the command, and its configuration.
const std::vector<Check>& installation_checks();
// Host memory, and the pages that it comes in.
const std::vector<Check>& memory_checks();
// Limits of this process and of its user.
const std::vector<Check>& limit_checks();
// The kernel, its features, and the processor.
const std::vector<Check>& kernel_checks();

}  // namespace understudy::command
