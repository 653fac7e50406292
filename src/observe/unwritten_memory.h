// SPDX-License-Identifier: Apache-2.0
//
// The check `init`: which bytes of devices no copy, set or reduction has ever written since they
// belong to what they belong to. Physical memory says when it is taken, and those that move bytes
// what they write and read. What is known goes with the memory, not with its device addresses: all
// ranges here are where the memory is on the host, which it has one place on.
//
// What may be written unseen is forgotten, and counts as written: memory that the CPU can see, and
// memory that other processes have. A fork child begins with nothing. Any thread may call anything,
// also with locks. Where the check is not chosen, callers do not call.
#pragma once

#include <atomic>
#include <optional>

#include "base/virtual_range.h"
#include "observe/check.h"
#include "observe/unwritten_lines.h"

namespace understudy {

inline bool is_init_checked() { return is_checked(Check::kInit); }

class UnwrittenMemory {
 public:
  UnwrittenMemory() = delete;

  // As UnwrittenLines explains.
  static void begin(VirtualRange host) noexcept;
  static void forget(VirtualRange host) noexcept;
  static void renew(VirtualRange host) noexcept;
  static void write(VirtualRange host) noexcept;
  static std::optional<UnwrittenLines::Part> find(VirtualRange host) noexcept;

 private:
  struct State;
  // Null for want of memory: then nothing is known.
  static State* state() noexcept;
  static void forget_in_fork_child();

  static std::atomic<State*> state_;
  static const bool registered_;
};

}  // namespace understudy
