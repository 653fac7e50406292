// SPDX-License-Identifier: Apache-2.0
//
// How far a long step is, on stderr, once it has taken two seconds: a live line on a terminal, a
// whole line every half minute elsewhere. The destructor takes the live line away.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace understudy::command {

class Progress {
 public:
  // "tests": what is counted.
  Progress(std::string noun, size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(size_t done);

 private:
  using Clock = std::chrono::steady_clock;

  const std::string noun_;
  const size_t total_;
  const bool is_terminal_;
  const Clock::time_point start_;
  Clock::time_point next_;  // when to show it again
  bool has_live_line_ = false;
};

}  // namespace understudy::command
