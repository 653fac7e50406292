// SPDX-License-Identifier: Apache-2.0
//
// What a fork does to this library. A page of memory that the kernel wipes in children
// (MADV_WIPEONFORK) tells a child from its parent, however the child was made. It is armed when the
// library is loaded, so a fork at any moment of any call is noticed. Where the kernel cannot wipe,
// a handler of fork wipes it, and the process id tells children of a bare clone.
// In a child of fork, registered descriptors are closed before fork returns: a child that kept one
// open would keep all of its parent's memory. Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>

namespace understudy::platform {

// Ends the state of being a fork child: the process has what it needs of its own.
void arm_fork_sentinel();

// What the page holds. All zero in a child.
struct ForkSentinel {
  static constexpr uint32_t kArmed = 0x5eed5eed;

  std::atomic<uint32_t> state{0};
  std::atomic<uint32_t> turn{0};  // of ProcessTurn
};
extern constinit std::atomic<ForkSentinel*> fork_sentinel;

// True in a child, however it was made, until arm_fork_sentinel is called there.
[[gnu::cold]] bool in_unarmed_fork_child();
inline bool in_fork_child() {
  const ForkSentinel& sentinel = *fork_sentinel.load(std::memory_order_acquire);
  if (sentinel.state.load(std::memory_order_acquire) == ForkSentinel::kArmed) [[likely]]
    return false;
  return in_unarmed_fork_child();
}
// Has it called in every child of fork from now on, on the thread that forked.
void call_in_fork_child(void (*function)());

// One thread of the process at a time. A child finds it free, whichever thread of its parent had it
// at the moment of the fork.
class ProcessTurn {
 public:
  ProcessTurn();
  ~ProcessTurn();
  ProcessTurn(const ProcessTurn&) = delete;
  ProcessTurn& operator=(const ProcessTurn&) = delete;

 private:
  std::atomic<uint32_t>& taken_;
};

// Fixed room: descriptors past it stay open in children.
void close_in_fork_child(int descriptor);
void forget_for_fork_child(int descriptor);
// For a child that fork did not make: closes what its parent registered, if it still is that.
void close_inherited_descriptors();

}  // namespace understudy::platform
