// SPDX-License-Identifier: Apache-2.0
#include "platform/fault_observer.h"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): siginfo_t and ucontext are POSIX
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cerrno>

namespace understudy::platform {

namespace {

using Observer = void (*)(const FaultedAccess&);

constexpr size_t kMuchRoom = size_t{128} << 10;

struct Watched {
  int signal;
  struct sigaction before;  // what the program had
};

constinit std::atomic<Observer> observer{nullptr};
constinit std::atomic<bool> is_observing{false};
constinit std::array<Watched, 2> watched = {{{SIGSEGV, {}}, {SIGBUS, {}}}};

const struct sigaction& action_before(int signal) {
  return signal == watched[0].signal ? watched[0].before : watched[1].before;
}

bool has_little_room() {
  stack_t stack;
  return sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0 &&
         stack.ss_size < kMuchRoom;
}

#if defined(__x86_64__)
uintptr_t instruction_of(const ucontext_t& context) {
  return static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
}
bool is_write(const ucontext_t& context) {
  constexpr greg_t kWrite = 2;  // of the page fault's error code
  return (context.uc_mcontext.gregs[REG_ERR] & kWrite) != 0;
}
std::span<const uintptr_t> registers_of(const ucontext_t& context) {
  return {reinterpret_cast<const uintptr_t*>(context.uc_mcontext.gregs), size_t{REG_RIP}};
}
#else
uintptr_t instruction_of(const ucontext_t& context) { return context.uc_mcontext.pc; }
bool is_write(const ucontext_t&) { return false; }
std::span<const uintptr_t> registers_of(const ucontext_t&) { return {}; }
#endif

void tell(int signal, const siginfo_t& info, const ucontext_t& context) {
  // Other threads that fault meanwhile, and a fault in here, go on without.
  if (is_observing.exchange(true)) return;
  const int number = errno;
  const struct sigaction& before = action_before(signal);
  FaultedAccess access;
  if (info.si_code != SI_KERNEL) access.address = reinterpret_cast<uintptr_t>(info.si_addr);
  access.is_write = is_write(context);
  access.is_fatal = (before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_DFL;
  access.has_little_room = has_little_room();
  access.registers = registers_of(context);
  access.stack = capture_interrupted_stack(instruction_of(context));
  observer.load()(access);
  errno = number;
  is_observing.store(false);
}

void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction& before = action_before(signal);
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(signal, info, context);
  } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
    // The instruction faults once more, and nothing is in between then.
    sigaction(signal, &before, nullptr);
  } else {
    before.sa_handler(signal);
  }
}

void on_fault(int signal, siginfo_t* info, void* context) {
  // What a process was sent is no access.
  if (info->si_code > 0) tell(signal, *info, *static_cast<const ucontext_t*>(context));
  pass_on(signal, info, context);
}

}  // namespace

Result<void> observe_faults(void (*wanted)(const FaultedAccess&)) {
  Observer none = nullptr;
  if (!observer.compare_exchange_strong(none, wanted)) return {};
  for (Watched& each : watched) {
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (sigaction(each.signal, nullptr, &each.before) != 0 ||
        sigaction(each.signal, &action, nullptr) != 0) {
      return Error::system(ErrorCode::kOutOfResources, errno, "signal %d cannot be observed",
                           each.signal);
    }
  }
  return {};
}

}  // namespace understudy::platform
