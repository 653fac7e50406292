// SPDX-License-Identifier: Apache-2.0
#include "platform/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>

#include "platform/fault_plan.h"

namespace understudy::platform {

namespace {

struct Start {
  void (*body)(void*);
  void* argument;
  char name[16];  // what the kernel keeps
};

void* run(void* raw) {
  const std::unique_ptr<Start> start(static_cast<Start*>(raw));
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
    failure = pthread_create(&thread, nullptr, run, start.get());
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

uint64_t thread_identity() { return static_cast<uint64_t>(pthread_self()); }

uint32_t kernel_thread_id() {
  // The initial-exec model makes this one instruction, also in a library opened at run time.
  thread_local uint32_t id [[gnu::tls_model("initial-exec")]] = 0;
  if (id == 0) id = static_cast<uint32_t>(gettid());
  return id;
}

}  // namespace understudy::platform
