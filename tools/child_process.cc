// SPDX-License-Identifier: Apache-2.0
#include "tools/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>
#include <thread>

namespace understudy::command {

namespace {

constexpr int kCannotStart = 126;  // what shells say

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// In the child, between fork and exec.
[[noreturn]] void become(char* const* arguments, char* const* environment,
                         const std::string& output, const std::string& errors) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int in = open("/dev/null", O_RDONLY);
  const int out = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int error =
      errors == output ? dup(out) : open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (in >= 0 && out >= 0 && error >= 0 && dup2(in, STDIN_FILENO) >= 0 &&
      dup2(out, STDOUT_FILENO) >= 0 && dup2(error, STDERR_FILENO) >= 0) {
    close(in);
    close(out);
    close(error);
    execve(arguments[0], arguments, environment);
  }
  _exit(kCannotStart);
}

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> arguments, std::vector<std::string> environment,
                           const std::string& output, const std::string& errors) {
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  pid_ = fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) become(argument_pointers.data(), environment_pointers.data(), output, errors);
  setpgid(pid_, pid_);  // parent or child, the first of them, so that kill() always finds the group
}

ChildProcess::~ChildProcess() { kill(); }

std::optional<int> ChildProcess::poll_end() {
  if (status_) return status_;
  // Looks without taking the status: until then the group's id cannot belong to another one.
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      info.si_pid == 0) {
    return std::nullopt;
  }
  kill();
  return status_;
}

std::optional<int> ChildProcess::wait_for(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!poll_end() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status_;
}

void ChildProcess::kill() {
  if (status_) return;
  ::kill(-pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = status;
}

}  // namespace understudy::command
