// SPDX-License-Identifier: Apache-2.0
//
// A program that is run again and again, each time with one variable of the configuration that is
// different, by way of this command: each run has devices of its own. Its output goes to files.
// Signals that interrupt the command are held while this lives. Owned by one thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/held_signals.h"
#include "tools/work_directory.h"

namespace understudy::command {

class SweptProgram {
 public:
  // How a run ended.
  struct RunEnd {
    std::optional<int> status;  // as wait(2) gives it; none: not in time
    std::chrono::milliseconds took{0};

    bool is_survival() const;
  };
  // What the program writes to standard error: with the rest of its output, or by itself.
  enum class Errors { kInOutput, kApart };

  // The configuration is in the environment of this process. Throws std::system_error.
  SweptProgram(const std::vector<std::string>& program, bool joins_server, Errors errors);

  // The first run, which takes as long as it takes; those that follow may take ten times as long,
  // and ten seconds. `keys` are those whose variables are left out of the environment, for good.
  RunEnd run_first(std::vector<std::string> keys, const std::string& variable);
  // With a variable, as NAME=VALUE.
  RunEnd run_with(const std::string& variable);
  bool ends_like_first(const RunEnd& end) const { return end.status == first_.status; }
  // How a run ended, for people: *goes on* if it has the status of the first one.
  std::string outcome_of(const RunEnd& end) const;

  // What the last run has written.
  std::string output() const { return text_of("output"); }
  std::string errors() const { return text_of("errors"); }
  // A file for what the runs leave behind.
  std::string file(const std::string& name) const { return (directory_.path() / name).string(); }
  // The signal that has interrupted the command; 0: none.
  int interruption() const { return interruption_; }

 private:
  std::string text_of(const std::string& name) const;

  const WorkDirectory directory_{"sweep"};
  const Errors errors_;
  std::vector<std::string> program_;  // by way of this command
  std::vector<std::string> left_out_;
  std::chrono::milliseconds time_limit_ = std::chrono::hours(24);
  RunEnd first_;
  const HeldSignals held_;
  int interruption_ = 0;
};

}  // namespace understudy::command
