// SPDX-License-Identifier: Apache-2.0
#include "platform/call_site.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "support/fork_safety.h"

namespace understudy::platform {
namespace {

uintptr_t some_address() { return reinterpret_cast<uintptr_t>(&waitpid) + 1; }

// Forks while another thread reads debug information for the first time. What the child answers,
// which reads it, too; the alarm ends one that waits for ever.
int fork_while_reading() {
  std::atomic<bool> begun{false};
  std::thread reader([&] {
    begun.store(true);
    (void)find_source(some_address());
  });
  while (!begun.load()) std::this_thread::yield();
  int answer = 0;
  for (int i = 0; i < 8 && answer == 0; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      (void)find_source(some_address());
      _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) answer = 1;
  }
  reader.join();
  return answer;
}

TEST(CallSite, ChildReadsWhatAThreadOfItsParentWasReading) {
  US_SKIP_UNLESS_THREADS_MAY_FORK();
  // In a process of its own, which has read nothing yet.
  const pid_t parent = fork();
  if (parent == 0) _exit(fork_while_reading());
  int status = 0;
  ASSERT_EQ(waitpid(parent, &status, 0), parent);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace understudy::platform
