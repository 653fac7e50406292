// SPDX-License-Identifier: Apache-2.0
#include "tools/live_program.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <system_error>

#include "tools/command.h"

namespace understudy::command {

LiveProgram::LiveProgram(const std::vector<std::string>& words, const std::string& recording,
                         const sigset_t& mask) {
  std::vector<std::string> arguments = {"understudy", "run"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& each : arguments) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ != 0) return;
  setenv("UNDERSTUDY_TRACE", recording.c_str(), 1);
  setenv("UNDERSTUDY_TRACE_STACKS", "on", 0);
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execv("/proc/self/exe", pointers.data());
  _exit(kCannotRun);
}

std::optional<int> LiveProgram::poll_end() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return status_;
}

void LiveProgram::send(int signal) const {
  if (!status_) kill(pid_, signal);
}

}  // namespace understudy::command
