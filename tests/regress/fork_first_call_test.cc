// SPDX-License-Identifier: Apache-2.0
//
// A fault once found in fork children: a fork while another thread was in the process's very first
// call left the child with half of its parent's runtime, or waiting for a thread that it does not
// have.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "support/fork_safety.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

// 0 if every call does what it should, else which one does not.
int use_the_device() {
  if (aclrtSetDevice(0) != ACL_SUCCESS) return 1;
  void* memory = nullptr;
  if (aclrtMalloc(&memory, 2 * kMiB, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return 2;
  if (aclrtMemset(memory, kMiB, 7, kMiB) != ACL_SUCCESS) return 3;
  uint8_t byte = 0;
  if (aclrtMemcpy(&byte, 1, memory, 1, ACL_MEMCPY_DEVICE_TO_HOST) != ACL_SUCCESS) return 4;
  if (byte != 7) return 5;
  if (aclrtFree(memory) != ACL_SUCCESS) return 6;
  if (aclrtResetDevice(0) != ACL_SUCCESS) return 7;
  return 0;
}

int wait_status(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

// Children of a process whose other thread makes its first call meanwhile. Each uses the device.
int fork_during_first_call() {
  constexpr unsigned kHangSeconds = 30;
  std::atomic<bool> begun{false};
  std::atomic<bool> ended{false};
  int first_call = 0;
  std::thread caller([&] {
    begun.store(true);
    first_call = use_the_device();
    ended.store(true);
  });
  while (!begun.load()) {
  }
  int worst = 0;
  do {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kHangSeconds);  // a child that waits for ever is a fault as well
      _exit(use_the_device());
    }
    if (const int status = wait_status(child); status != 0) worst = status;
  } while (!ended.load() && worst == 0);
  caller.join();
  if (worst == 0) return first_call;
  return WIFSIGNALED(worst) ? 100 + WTERMSIG(worst) : 50 + WEXITSTATUS(worst);
}

TEST(ForkDuringTheFirstCall, ChildrenUseTheDevice) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  US_FRESH_PROCESS();
  // This process never calls the library itself, so every child of it makes a first call.
  for (int round = 0; round < 100; ++round) {
    const pid_t child = fork();
    if (child == 0) _exit(fork_during_first_call());
    const int status = wait_status(child);
    ASSERT_TRUE(WIFEXITED(status)) << "round " << round << ": wait status " << status;
    ASSERT_EQ(WEXITSTATUS(status), 0)
        << "round " << round << ": 100 and more are signals of a child of it";
  }
}

// The thread that forked may have had a context, which is none in the child, whichever thread of
// the child makes the first call.
TEST(ForkDuringTheFirstCall, ContextOfTheParentIsNoneInTheChild) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  US_FRESH_PROCESS();
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const pid_t child = fork();
  if (child == 0) {
    int other = -1;
    std::thread([&] { other = use_the_device(); }).join();
    int32_t device = -1;
    _exit(other != 0 ? other : aclrtGetDevice(&device) == ACL_ERROR_RT_CONTEXT_NULL ? 0 : 20);
  }
  EXPECT_EQ(wait_status(child), 0);
}

}  // namespace
}  // namespace understudy_test
