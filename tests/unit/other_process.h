// SPDX-License-Identifier: Apache-2.0
//
// A child of fork that does its part of a test. The two take turns by words over a line, so that
// neither ever sleeps to wait for the other. What the child EXPECTs counts for the test.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <stdexcept>
#include <utility>

#include "platform/fork_sentinel.h"
#include "platform/unique_fd.h"

namespace understudy {

// One end of a line between two processes.
class Line {
 public:
  explicit Line(int descriptor) : descriptor_(descriptor) {}

  void say(uint64_t word = 0) const {
    EXPECT_EQ(send(descriptor_.get(), &word, sizeof word, MSG_NOSIGNAL), ssize_t{sizeof word});
  }
  // The next word of the other side; nothing if it has ended.
  std::optional<uint64_t> hear() const {
    uint64_t word = 0;
    if (recv(descriptor_.get(), &word, sizeof word, 0) != ssize_t{sizeof word}) return {};
    return word;
  }
  // The same where the other side lives; without a word the test ends here.
  uint64_t hear_word() const {
    const std::optional<uint64_t> word = hear();
    if (!word) throw std::runtime_error("the other process has ended");
    return *word;
  }

  int descriptor() const { return descriptor_.get(); }

 private:
  platform::UniqueFd descriptor_;
};

class OtherProcess {
 public:
  // Runs body(line) in the child, which ends without a word to anyone when the body does.
  template <typename Body>
  explicit OtherProcess(Body body) : OtherProcess(make_pair()) {
    // Backing files and ledgers of this process are no business of the child's.
    platform::arm_fork_sentinel();
    fflush(nullptr);
    id_ = fork();
    if (id_ < 0) throw std::runtime_error("no child process");
    if (id_ != 0) {
      theirs_.reset();
      return;
    }
    line_.reset();
    inherited_ = parts();
    try {
      body(std::as_const(*theirs_));
    } catch (const std::exception& failure) {
      ADD_FAILURE() << failure.what();
    }
    end_child();
  }
  ~OtherProcess() {
    if (id_ > 0) kill();
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  // For the child: dies at once, with whatever it has, in the middle of its body.
  [[noreturn]] static void end_child() {
    fflush(nullptr);
    _exit(parts() == inherited_ ? 0 : kFailed);
  }

  pid_t id() const { return id_; }
  void say(uint64_t word = 0) const { line_->say(word); }
  std::optional<uint64_t> hear() const { return line_->hear(); }
  uint64_t hear_word() const { return line_->hear_word(); }

  // Waits for its end.
  testing::AssertionResult ended_well() {
    const int status = wait();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "the child ended with wait status " << status;
  }
  testing::AssertionResult ended_by(int signal) {
    const int status = wait();
    if (WIFSIGNALED(status) && WTERMSIG(status) == signal) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "the child ended with wait status " << status;
  }
  // Waits until it has stopped itself.
  void wait_until_stopped() const {
    int status = 0;
    while (waitpid(id_, &status, WUNTRACED) < 0 && errno == EINTR) {
    }
    EXPECT_TRUE(WIFSTOPPED(status)) << status;
  }
  void go_on() const { ::kill(id_, SIGCONT); }
  void kill() {
    ::kill(id_, SIGKILL);
    (void)wait();
  }

 private:
  static constexpr int kFailed = 100;

  // What the test has noted so far, which is nothing but failures.
  static int parts() {
    return testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
  }
  static std::array<int, 2> make_pair() {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      throw std::runtime_error("no line to a child process");
    }
    return ends;
  }
  explicit OtherProcess(const std::array<int, 2>& ends)
      : line_(std::in_place, ends[0]), theirs_(std::in_place, ends[1]) {}
  int wait() {
    int status = -1;
    while (waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
    return status;
  }

  static inline int inherited_ = 0;  // of these, by a child
  pid_t id_ = -1;
  std::optional<Line> line_;
  std::optional<Line> theirs_;
};

}  // namespace understudy
