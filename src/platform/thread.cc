// SPDX-License-Identifier: Apache-2.0
#include "platform/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "base/scope_exit.h"
#include "platform/fault_plan.h"
#include "platform/fork_sentinel.h"

namespace understudy::platform {

namespace {

// Threads that start_thread has started: those that may or may not be there yet, and those that
// are.
std::atomic<unsigned> starting_threads{0};
std::atomic<unsigned> own_threads{0};

// That of the calling thread; 0: not asked yet. The initial-exec model makes reading it one
// instruction, also in a library opened at run time.
constinit thread_local uint32_t known_number [[gnu::tls_model("initial-exec")]] = 0;

// Threads of the parent are not there, and the one that goes on has another number.
[[maybe_unused]] const bool forgets_in_fork_child =
    (call_in_fork_child([] {
       starting_threads.store(0, std::memory_order_relaxed);
       own_threads.store(0, std::memory_order_relaxed);
       known_number = 0;
     }),
     true);

struct Start {
  void (*body)(void*);
  void* argument;
  char name[16];  // what the kernel keeps
};

void* run(void* raw) {
  const std::unique_ptr<Start> start(static_cast<Start*>(raw));
  own_threads.fetch_add(1);
  starting_threads.fetch_sub(1);
  // Also where a function of the program ends the thread.
  const ScopeExit count([] { own_threads.fetch_sub(1); });
  pthread_setname_np(pthread_self(), start->name);
  // Nor do its calls of functions of the program end it, unless those do it themselves.
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  start->body(start->argument);
  return nullptr;
}

// All but those that a thread raises by what it does itself.
sigset_t foreign_signals() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
    sigdelset(&signals, own);
  }
  return signals;
}

}  // namespace

Result<void> start_thread(const char* name, void (*body)(void*), void* argument) {
  std::unique_ptr<Start> start(new (std::nothrow) Start{body, argument, {}});
  if (start == nullptr) {
    return Error::format(ErrorCode::kOutOfResources, "the host has no memory for a thread");
  }
  std::copy_n(name, std::min(std::char_traits<char>::length(name), sizeof start->name - 1),
              start->name);
  int failure = planned_fault(SystemCall::kStartThread);
  if (failure == 0) {
    // The new thread inherits the mask; blocking here closes the gap at its start.
    const sigset_t blocked = foreign_signals();
    sigset_t before;
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    pthread_t thread;
    starting_threads.fetch_add(1);
    failure = pthread_create(&thread, nullptr, run, start.get());
    if (failure != 0) starting_threads.fetch_sub(1);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (failure == 0) {
      (void)start.release();
      pthread_detach(thread);
      return {};
    }
  }
  return Error::system(ErrorCode::kOutOfResources, failure, "the host gives no thread");
}

unsigned usable_processors() {
  cpu_set_t processors;
  if (sched_getaffinity(0, sizeof processors, &processors) == 0) {
    return static_cast<unsigned>(std::max(1, CPU_COUNT(&processors)));
  }
  // More processors than the set has room for.
  return static_cast<unsigned>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

unsigned program_threads() {
  // One that was started comes within moments, on a busy machine within a second.
  constexpr int kLooks = 10'000;
  for (int look = 0; starting_threads.load() != 0; ++look) {
    if (look == kLooks) return 0;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  struct stat task {};
  if (stat("/proc/self/task", &task) != 0 || task.st_nlink <= 2) return 0;
  // A folder each, beside . and .. Threads of our own that end may count as the program's.
  const auto all = static_cast<unsigned>(task.st_nlink - 2);
  return all - std::min(all, own_threads.load());
}

uint64_t thread_identity() { return static_cast<uint64_t>(pthread_self()); }

uint32_t kernel_thread_id() {
  if (known_number == 0) known_number = static_cast<uint32_t>(gettid());
  return known_number;
}

}  // namespace understudy::platform
