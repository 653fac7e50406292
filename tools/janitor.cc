// SPDX-License-Identifier: Apache-2.0
#include "tools/janitor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "platform/process_identity.h"
#include "platform/text_file.h"
#include "server/server_removal.h"
#include "tools/server_users.h"

namespace understudy::command {

namespace {

constexpr pid_t kFirstOfNamespace = 1;
constexpr int kProgram = STDERR_FILENO + 1;  // the janitor's only descriptor

size_t size_of(const char* kernel_file) {
  return platform::read_text_file(kernel_file).value_or("").size();
}

// People who look for the program by its command line (pgrep -f) must not find the janitor. The
// arguments of a process are where its first one begins, and its variables follow them; a text that
// runs over into these is shown too (proc_pid_cmdline(5)). The janitor needs neither.
void change_command_line(const std::string& text) {
  const size_t arguments = size_of("/proc/self/cmdline");
  if (arguments == 0) return;
  const size_t room = arguments + size_of("/proc/self/environ");
  memset(program_invocation_name, 0, room);
  memcpy(program_invocation_name, text.data(), std::min(text.size(), room - 1));
  prctl(PR_SET_NAME, "understudy-wait");
}

// Keeps nothing that is the program's, whose end or whose readers would wait for it.
void let_go(int program) {
  // Where the program has no standard input, the number may be one of those.
  const int moved = fcntl(program, F_DUPFD, kProgram);
  const int nothing = open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (nothing < 0 || dup2(nothing, standard) < 0) close(standard);
  }
  if (dup2(moved, kProgram) < 0 && program != kProgram) _exit(EXIT_FAILURE);  // for `clean`
  close_range(kProgram + 1, ~0U, 0);
  if (chdir("/") != 0) return;  // cannot be; and then it stays where it is
}

void wait_for_end_of(int process) {
  pollfd ended{process, POLLIN, 0};
  while (poll(&ended, 1, -1) < 0 && errno == EINTR) {
  }
}

[[noreturn]] void tend(const std::string& directory) {
  wait_for_end_of(kProgram);
  close(kProgram);
  for (auto user = find_user_of(directory); user.valid(); user = find_user_of(directory)) {
    wait_for_end_of(user.get());
  }
  // A process that cannot be waited for may use it still; then it stays, for `understudy clean`.
  remove_abandoned_server(directory, RemovalMode::kRemove);
  rmdir(directory.c_str());  // of a server that no process ever joined
  _exit(EXIT_SUCCESS);
}

bool is_pending(int signal) {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, signal) == 1;
}

// Takes the SIGCHLD of a child that has ended. Where it was blocked when the command was started,
// the program would find it pending, from a child that it never had.
void take_signal_of(pid_t child) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  const timespec now{};
  siginfo_t from{};
  if (sigtimedwait(&ends, &from, &now) == SIGCHLD && from.si_pid != child) kill(getpid(), SIGCHLD);
}

}  // namespace

void start_janitor(const std::string& directory) {
  if (getpid() == kFirstOfNamespace) return;
  const platform::UniqueFd program = platform::open_process(getpid());
  if (!program.valid()) return;
  const bool had_signal = is_pending(SIGCHLD);
  const pid_t parent = fork();
  if (parent == 0) {
    setsid();
    // Here, and not in the janitor: the program begins when this process has ended, and must not
    // find one that still looks like itself.
    let_go(program.get());
    change_command_line("understudy: removes " + directory);
    if (fork() == 0) tend(directory);
    _exit(EXIT_SUCCESS);
  }
  while (parent > 0 && waitpid(parent, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (parent > 0 && !had_signal) take_signal_of(parent);
}

}  // namespace understudy::command
