// SPDX-License-Identifier: Apache-2.0
#include "support/fresh_process.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "support/conformance.h"
#include "support/process_environment.h"
#include "support/server_directory.h"

namespace understudy_test {

namespace {

constexpr const char* kChildMark = "UNDERSTUDY_TEST_CHILD";

std::string current_test_filter() {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  return std::string("--gtest_filter=") + info->test_suite_name() + "." + info->name();
}

bool names(const std::vector<Variable>& environment, const char* name) {
  return std::any_of(environment.begin(), environment.end(),
                     [&](const Variable& variable) { return variable.first == name; });
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t got = 0; (got = read(descriptor, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  return text;
}

}  // namespace

bool is_fresh_process() { return getenv(kChildMark) != nullptr; }

bool ran_in_fresh_process(std::initializer_list<Variable> environment) {
  const char* mark = getenv(kChildMark);
  if (mark != nullptr && current_test_filter() == mark) return false;

  std::vector<Variable> wanted(environment);
  if (const std::optional<std::string> reason = why_not_applicable(wanted)) {
    [&] { GTEST_SKIP() << *reason; }();
    return true;
  }
  std::vector<std::string> arguments = {"/proc/self/exe", current_test_filter(),
                                        "--gtest_also_run_disabled_tests"};
  // The parent's devices may be of another product.
  const ServerDirectory directory;
  if (!names(wanted, kServerVariable)) wanted.emplace_back(kServerVariable, directory.path());
  std::vector<std::string> variables = environment_with(wanted);
  variables.push_back(std::string(kChildMark) + "=" + current_test_filter());
  std::vector<char*> argument_pointers = pointers_to(arguments);
  std::vector<char*> variable_pointers = pointers_to(variables);

  std::array<int, 2> output;
  if (pipe(output.data()) != 0) {
    ADD_FAILURE() << "pipe failed: " << strerror(errno);
    return true;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, output[0]);
  pid_t child = -1;
  const int failed = posix_spawn(&child, "/proc/self/exe", &actions, nullptr,
                                 argument_pointers.data(), variable_pointers.data());
  posix_spawn_file_actions_destroy(&actions);
  close(output[1]);
  if (failed != 0) {
    close(output[0]);
    ADD_FAILURE() << "posix_spawn failed: " << strerror(failed);
    return true;
  }
  const std::string text = read_all(output[0]);
  close(output[0]);
  int status = 0;
  waitpid(child, &status, 0);
  // Exit code 0 alone could also mean that the filter met no test.
  const bool passed = WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
                      text.find("[  PASSED  ] 1 test") != std::string::npos;
  const bool skipped = text.find("[  SKIPPED ]") != std::string::npos;
  if (skipped) {
    [&] { GTEST_SKIP() << "the fresh process skipped:\n" << text; }();
  } else if (!passed) {
    ADD_FAILURE() << "in a fresh process (wait status " << status << "):\n" << text;
  }
  return true;
}

}  // namespace understudy_test
