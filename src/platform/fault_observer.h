// SPDX-License-Identifier: Apache-2.0
//
// Accesses of the program that fault (SIGSEGV, SIGBUS), seen before what the program does about
// them: its own handlers are called afterwards, and without one the process ends as it would have.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "platform/call_stack.h"

namespace understudy::platform {

struct FaultedAccess {
  uintptr_t address = 0;  // 0: the processor does not say, as for addresses that it cannot have
  bool is_write = false;  // where the processor says so
  bool is_fatal = false;  // the program does nothing about it: the process ends
  // The thread runs on a small stack for signals: no room for more than a line.
  bool has_little_room = false;
  std::span<const uintptr_t> registers;  // of the thread, where the processor says so
  const CallStack* stack = nullptr;
};

// Has it called on the thread that faults, one thread at a time. Once per process: the first
// observer stays.
Result<void> observe_faults(void (*observer)(const FaultedAccess&));

}  // namespace understudy::platform
