// SPDX-License-Identifier: Apache-2.0
//
// What the start of a process asks the host for. The files are those that the kernel sees opened by
// a child which this process traces.
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/rule_test.h"
#include "support/sanitizers.h"
#include "support/server_directory.h"

namespace understudy_test {
namespace {

// The text at an address of another process.
std::string text_of(pid_t process, uint64_t address) {
  std::string text;
  for (char letter = 0;; text.push_back(letter), ++address) {
    const iovec here{&letter, 1};
    const iovec there{reinterpret_cast<void*>(address), 1};  // NOLINT(performance-no-int-to-ptr)
    if (process_vm_readv(process, &here, 1, &there, 1, 0) != 1 || letter == 0) return text;
  }
}

// Lets a child run to its end, and gives the paths that it opens.
std::vector<std::string> paths_opened_by(pid_t child) {
  std::vector<std::string> paths;
  for (int signal = 0; ptrace(PTRACE_SYSCALL, child, nullptr, signal) == 0;) {
    int status = 0;
    if (waitpid(child, &status, 0) != child) break;
    if (!WIFSTOPPED(status)) {
      EXPECT_EQ(status, 0);
      return paths;
    }
    const bool is_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
    signal = is_call ? 0 : WSTOPSIG(status);
    __ptrace_syscall_info call{};
    if (!is_call || ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof call, &call) <= 0) continue;
    if (call.op != PTRACE_SYSCALL_INFO_ENTRY || call.entry.nr != SYS_openat) continue;
    paths.push_back(text_of(child, call.entry.args[1]));
  }
  ADD_FAILURE() << "the child was lost";
  return paths;
}

// The files of the kernel that a process opens until it can use a device of a new server. Nothing
// where a process may not trace its child.
std::optional<std::vector<std::string>> facts_read_by_start(const char* devices) {
  const ServerDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    setenv(kServerVariable, directory.path().c_str(), 1);
    setenv("UNDERSTUDY_DEVICES", devices, 1);
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(1);
    raise(SIGSTOP);
    _exit(aclInit(nullptr) == ACL_SUCCESS && aclrtSetDevice(0) == ACL_SUCCESS ? 0 : 1);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return std::nullopt;
  EXPECT_EQ(ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL),
            0);
  std::vector<std::string> paths = paths_opened_by(child);
  EXPECT_NE(std::ranges::find(paths, directory.path()), paths.end()) << "opens go unseen";
  std::erase_if(paths, [](const std::string& path) {
    return !path.starts_with("/proc/") && !path.starts_with("/sys/");
  });
  return paths;
}

TEST(Start, ReadsEachFactOfTheHostOnce) {
  US_FRESH_PROCESS();
  if (kSanitized) GTEST_SKIP() << "a sanitizer opens files of its own";
  const auto facts = facts_read_by_start("8");
  if (!facts) GTEST_SKIP() << "this process may not trace its child";
  std::map<std::string, unsigned> times;
  for (const std::string& fact : *facts) ++times[fact];
  for (const auto& [fact, count] : times) EXPECT_EQ(count, 1u) << fact;
}

// What memory there is, which is asked when some is wanted.
TEST(Start, AsksForNothingThatIsNotNeededYet) {
  US_FRESH_PROCESS();
  if (kSanitized) GTEST_SKIP() << "a sanitizer opens files of its own";
  const auto facts = facts_read_by_start("8");
  if (!facts) GTEST_SKIP() << "this process may not trace its child";
  for (const std::string& fact : *facts) {
    EXPECT_FALSE(fact.starts_with("/sys/")) << fact;
    EXPECT_NE(fact, "/proc/meminfo");
    EXPECT_NE(fact, "/proc/self/cgroup");
    EXPECT_NE(fact, "/proc/self/cmdline");
  }
}

TEST(Start, AsksForNothingMoreForMoreDevices) {
  US_FRESH_PROCESS();
  if (kSanitized) GTEST_SKIP() << "a sanitizer opens files of its own";
  const auto facts_of_one = facts_read_by_start("1");
  if (!facts_of_one) GTEST_SKIP() << "this process may not trace its child";
  EXPECT_EQ(facts_read_by_start("8"), facts_of_one);
}

}  // namespace
}  // namespace understudy_test
