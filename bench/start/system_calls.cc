// SPDX-License-Identifier: Apache-2.0
#include "start/system_calls.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "support/fail.h"

namespace bench {

namespace {

constexpr int kMayNotBeTraced = 100;

// How often it stops at the beginning of a call before it ends.
uint64_t count_until_end(pid_t child) {
  uint64_t calls = 0;
  for (int signal = 0;;) {
    require(ptrace(PTRACE_SYSCALL, child, nullptr, signal) == 0, "PTRACE_SYSCALL");
    int status = 0;
    require(waitpid(child, &status, 0) == child, "waitpid");
    if (!WIFSTOPPED(status)) {
      if (status != 0) fail("a child process ended with status 0x%x", unsigned(status));
      return calls;
    }
    const bool at_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
    signal = at_call ? 0 : WSTOPSIG(status);
    if (!at_call) continue;
    __ptrace_syscall_info call{};
    require(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof call, &call) > 0, "PTRACE_SYSCALL_INFO");
    if (call.op == PTRACE_SYSCALL_INFO_ENTRY && call.entry.nr != SYS_exit_group) ++calls;
  }
}

}  // namespace

std::optional<uint64_t> system_calls_of(const std::function<void()>& function) {
  fflush(stdout);
  const pid_t child = fork();
  require(child >= 0, "fork");
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) std::_Exit(kMayNotBeTraced);
    raise(SIGSTOP);
    function();
    std::_Exit(0);
  }
  int status = 0;
  require(waitpid(child, &status, 0) == child, "waitpid");
  if (!WIFSTOPPED(status)) return std::nullopt;
  require(ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0,
          "PTRACE_SETOPTIONS");
  return count_until_end(child);
}

}  // namespace bench
