// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/test_list.h"

#include <fstream>
#include <optional>
#include <stdexcept>

#include "tools/child_process.h"

namespace understudy::command {

// gtest prints "Suite." and then its tests, indented, perhaps with a comment behind them.
std::vector<std::string> list_tests(const TestRunOptions& options,
                                    std::chrono::milliseconds time_limit) {
  const std::filesystem::path output = options.directory / "tests";
  ChildProcess process({options.program, "--gtest_list_tests"}, options.environment,
                       output.string());
  if (process.wait_for(time_limit) != 0) {
    throw std::runtime_error(options.program + " does not list its tests");
  }
  std::vector<std::string> tests;
  std::string suite;
  std::ifstream file(output);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("  ")) {
      tests.push_back(suite + line.substr(2, line.find(' ', 2) - 2));
    } else {
      suite = line.substr(0, line.find(' '));
    }
  }
  return tests;
}

}  // namespace understudy::command
