// SPDX-License-Identifier: Apache-2.0
//
// Named points inside changes that other processes see, at which tests stop or kill a process. In
// builds without US_CHECK_INVARIANTS they are nothing.
#pragma once

#if defined(US_CHECK_INVARIANTS)

#include <atomic>

namespace understudy {

// Called with the name of each point that a thread of the process reaches; null: none.
using KillPointHandler = void (*)(const char* name);
inline std::atomic<KillPointHandler> kill_point_handler{nullptr};

inline void reach_kill_point(const char* name) {
  if (const KillPointHandler handler = kill_point_handler.load(std::memory_order_relaxed)) {
    handler(name);
  }
}

}  // namespace understudy

#define US_KILL_POINT(name) ::understudy::reach_kill_point(name)
#else
#define US_KILL_POINT(name) static_cast<void>(0)
#endif
