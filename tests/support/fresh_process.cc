// SPDX-License-Identifier: Apache-2.0
#include "support/fresh_process.h"

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace understudy_test {

namespace {

constexpr const char* kChildMark = "UNDERSTUDY_TEST_CHILD";

std::string current_test_filter() {
  const testing::TestInfo* info = testing::UnitTest::GetInstance()->current_test_info();
  return std::string("--gtest_filter=") + info->test_suite_name() + "." + info->name();
}

bool is_overridden(const char* entry, std::initializer_list<Variable> environment) {
  for (const Variable& variable : environment) {
    const std::string prefix = variable.first + "=";
    if (strncmp(entry, prefix.c_str(), prefix.size()) == 0) return true;
  }
  return false;
}

std::vector<std::string> child_environment(std::initializer_list<Variable> environment) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    // The one test of the child may be of another shard.
    const std::string_view text = *entry;
    const bool shard =
        text.starts_with("GTEST_TOTAL_SHARDS=") || text.starts_with("GTEST_SHARD_INDEX=");
    if (!shard && !is_overridden(*entry, environment)) entries.emplace_back(*entry);
  }
  for (const Variable& variable : environment) {
    entries.push_back(variable.first + "=" + variable.second);
  }
  entries.push_back(std::string(kChildMark) + "=" + current_test_filter());
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
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

bool ran_in_fresh_process(std::initializer_list<Variable> environment) {
  const char* mark = getenv(kChildMark);
  if (mark != nullptr && current_test_filter() == mark) return false;

  std::vector<std::string> arguments = {"/proc/self/exe", current_test_filter(),
                                        "--gtest_also_run_disabled_tests"};
  std::vector<std::string> variables = child_environment(environment);
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
