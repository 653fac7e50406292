// SPDX-License-Identifier: Apache-2.0
#include "tools/swept_program.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "device/config_keys.h"
#include "tools/child_process.h"

namespace understudy::command {

bool SweptProgram::RunEnd::is_survival() const { return status && WIFEXITED(*status); }

SweptProgram::SweptProgram(const std::vector<std::string>& program, bool joins_server,
                           Errors errors)
    : errors_(errors), program_({std::filesystem::read_symlink("/proc/self/exe").string(), "run"}) {
  if (joins_server) program_.emplace_back("--join");
  program_.emplace_back("--");
  program_.insert(program_.end(), program.begin(), program.end());
}

SweptProgram::RunEnd SweptProgram::run_first(std::vector<std::string> keys,
                                             const std::string& variable) {
  left_out_ = std::move(keys);
  first_ = run_with(variable);
  time_limit_ = std::max<std::chrono::milliseconds>(std::chrono::seconds(10), first_.took * 10);
  return first_;
}

SweptProgram::RunEnd SweptProgram::run_with(const std::string& variable) {
  std::vector<std::string> environment = {variable};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool is_left_out = std::ranges::any_of(left_out_, [&](const std::string& key) {
      return text.starts_with(config_variable(key) + "=");
    });
    if (!is_left_out) environment.emplace_back(text);
  }
  const auto begun = std::chrono::steady_clock::now();
  ChildProcess process(program_, environment, file("output"),
                       file(errors_ == Errors::kApart ? "errors" : "output"));
  std::chrono::milliseconds took{0};
  std::optional<int> status;
  while (!(status = process.poll_end()) && took < time_limit_ && interruption_ == 0) {
    interruption_ = held_.wait();
    took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                                 begun);
  }
  return {status, took};
}

std::string SweptProgram::outcome_of(const RunEnd& end) const {
  if (!end.status) return "does not end";
  if (WIFSIGNALED(*end.status)) {
    return std::string("killed: ") + strsignal(WTERMSIG(*end.status));
  }
  const std::string status = std::to_string(WEXITSTATUS(*end.status));
  return ends_like_first(end) ? "goes on" : "ends with status " + status;
}

std::string SweptProgram::text_of(const std::string& name) const {
  std::ostringstream text;
  text << std::ifstream(file(name)).rdbuf();
  return text.str();
}

}  // namespace understudy::command
