// SPDX-License-Identifier: Apache-2.0
//
// Which tests a program has.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tools/conformance/test_run.h"

namespace understudy::command {

// Full names, in the program's order. Throws std::runtime_error if the program does not tell in
// time.
std::vector<std::string> list_tests(const TestRunOptions& options,
                                    std::chrono::milliseconds time_limit);

}  // namespace understudy::command
