// SPDX-License-Identifier: Apache-2.0
//
// What the checks found in this process. A finding is told on standard error when it comes, unless
// a suppression names it or one from the same places was told before. At the end of the process
// follow their number and the report file, and the exit status tells of them.
//
// One per process, never destroyed. A fork child begins with none, and the same choice. Any thread
// may call anything, without a lock of the library.
#pragma once

#include <atomic>
#include <optional>
#include <vector>

#include "base/result.h"
#include "observe/check.h"
#include "observe/finding.h"

namespace understudy {

class Findings {
 public:
  Findings() = delete;

  // From now on the checks are made. Once per process: a second choice changes nothing. Fails if
  // the suppressions cannot be read. May throw std::bad_alloc, and changes nothing then.
  static Result<void> begin(const CheckChoice& choice);

  static void add(Finding finding) noexcept;
  // Those since the last time, which do not count at the end of the process any more.
  static std::vector<Finding> take() noexcept;
  // The summary and the report file. The exit status for a process that has findings, else nothing.
  static std::optional<int> finish() noexcept;

 private:
  struct Choice;
  struct State;

  static State* state() noexcept;
  static void forget_in_fork_child();

  static std::atomic<const Choice*> choice_;
  static std::atomic<State*> state_;
  static const bool registered_;
};

}  // namespace understudy
