// SPDX-License-Identifier: Apache-2.0
//
// Processes that are stopped (SIGSTOP) at a chosen moment, and the limit that the contract sets to
// every call of the others: it answers within 5 s in total.
#pragma once

#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <random>

#include "rules/share_objects.h"

namespace understudy_test::share {

// The contract's 5 s, and what a busy machine may add.
inline constexpr std::chrono::seconds kCallLimit(5);
inline constexpr std::chrono::seconds kNoise(3);
inline constexpr std::chrono::seconds kLongestCall = kCallLimit + kNoise;

class Stopwatch {
 public:
  std::chrono::steady_clock::duration time() const {
    return std::chrono::steady_clock::now() - begin_;
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// A process that stands still until the end of the scope.
class Stopped {
 public:
  explicit Stopped(Remote& process) : process_(process) {
    process_.peer().signal(SIGSTOP);
    int status = 0;
    EXPECT_EQ(waitpid(process_.pid(), &status, WUNTRACED), process_.pid());
    EXPECT_TRUE(WIFSTOPPED(status));
  }
  ~Stopped() {
    if (process_.pid() > 0) process_.peer().signal(SIGCONT);
  }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

 private:
  Remote& process_;
};

// Lets a random part of the time pass, busily: the other process is to be met in the middle of
// something.
inline void spend_part_of(std::chrono::steady_clock::duration time, std::mt19937& random) {
  const Stopwatch watch;
  const auto part = time * static_cast<int>(random() % 1000) / 1000;
  while (watch.time() < part) {
  }
}

}  // namespace understudy_test::share
