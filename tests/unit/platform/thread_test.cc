// SPDX-License-Identifier: Apache-2.0
#include "platform/thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>

#include "unit/expect_result.h"
#include "unit/platform/planned_fault.h"

namespace understudy::platform {
namespace {

// What a thread finds out about itself.
struct Findings {
  std::string name;
  sigset_t blocked;
  uint64_t identity = 0;
  uint32_t number = 0;
  std::atomic<bool> complete{false};

  static void look(void* raw) {
    auto& self = *static_cast<Findings*>(raw);
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    self.name = name;
    pthread_sigmask(SIG_BLOCK, nullptr, &self.blocked);
    self.identity = thread_identity();
    self.number = kernel_thread_id();
    self.complete.store(true);
  }
  void wait() const {
    while (!complete.load()) std::this_thread::yield();
  }
};

TEST(StartThread, RunsItsBodyOnAThreadOfThatName) {
  Findings findings;
  ASSERT_TRUE(is_ok(start_thread("helper", Findings::look, &findings)));
  findings.wait();
  EXPECT_EQ(findings.name, "helper");
  EXPECT_NE(findings.identity, thread_identity());
  EXPECT_NE(findings.number, kernel_thread_id());
}

TEST(StartThread, NameThatIsTooLongIsCut) {
  Findings findings;
  ASSERT_TRUE(is_ok(start_thread("a name of more than 15", Findings::look, &findings)));
  findings.wait();
  EXPECT_EQ(findings.name, "a name of more ");
}

TEST(StartThread, SignalsAreBlockedButThoseOfItsOwnFaults) {
  Findings findings;
  ASSERT_TRUE(is_ok(start_thread("helper", Findings::look, &findings)));
  findings.wait();
  for (const int foreign : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGALRM, SIGPROF}) {
    EXPECT_EQ(sigismember(&findings.blocked, foreign), 1) << foreign;
  }
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
    EXPECT_EQ(sigismember(&findings.blocked, own), 0) << own;
  }
}

TEST(StartThread, SignalsOfTheCallerStayAsTheyWere) {
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  Findings findings;
  ASSERT_TRUE(is_ok(start_thread("helper", Findings::look, &findings)));
  findings.wait();
  sigset_t after;
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
  }
}

TEST(StartThread, ThreadThatTheHostDoesNotGiveIsAnError) {
  Findings findings;
  {
    const PlannedFault fault(SystemCall::kStartThread, 1, EAGAIN);
    const Result<void> started = start_thread("helper", Findings::look, &findings);
    ASSERT_TRUE(fails_with(started, ErrorCode::kOutOfResources));
    EXPECT_EQ(started.error().system_number(), EAGAIN);
  }
  EXPECT_FALSE(findings.complete.load());
  ASSERT_TRUE(is_ok(start_thread("helper", Findings::look, &findings)));
  findings.wait();
}

TEST(ThreadFacts, NumbersAreThoseOfTheSystem) {
  EXPECT_EQ(thread_identity(), static_cast<uint64_t>(pthread_self()));
  EXPECT_EQ(kernel_thread_id(), static_cast<uint32_t>(gettid()));
  EXPECT_EQ(kernel_thread_id(), kernel_thread_id());
}

TEST(ThreadFacts, ForkChildHasANumberOfItsOwn) {
  ASSERT_EQ(kernel_thread_id(), static_cast<uint32_t>(gettid()));
  const pid_t child = fork();
  if (child == 0) _exit(kernel_thread_id() == static_cast<uint32_t>(gettid()) ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ThreadFacts, ProcessorsAreThoseOfTheAffinityMask) {
  EXPECT_GE(usable_processors(), 1u);
  // On a thread of its own, whose mask nobody else has.
  std::thread([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_processors(), 1u);
  }).join();
}

// Others of this program's tests may have left threads that are about to end.
TEST(Thread, ThreadsOfTheProgramAreCountedWithoutOurs) {
  struct Gate {
    std::atomic<bool> is_open{false};
    std::atomic<bool> is_left{false};
  } gate;
  std::thread([] {}).join();  // with the first one, ThreadSanitizer begins one of its own
  const unsigned before = program_threads();
  ASSERT_GE(before, 1U);
  const Result<void> started = start_thread(
      "counted",
      [](void* raw) {
        auto& own = *static_cast<Gate*>(raw);
        while (!own.is_open.load()) sched_yield();
        own.is_left.store(true);
      },
      &gate);
  ASSERT_TRUE(started.ok());
  EXPECT_LE(program_threads(), before);
  std::thread other([&] {
    while (!gate.is_open.load()) sched_yield();
  });
  EXPECT_GE(program_threads(), 2U);
  gate.is_open.store(true);
  other.join();
  while (!gate.is_left.load()) sched_yield();
}

}  // namespace
}  // namespace understudy::platform
