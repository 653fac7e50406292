// SPDX-License-Identifier: Apache-2.0
//
// Two ways to wait a little for another thread.
#pragma once

#include <chrono>
#include <thread>

namespace understudy {

// For loops that expect something within a microsecond: spares the other thread of the core.
inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

// For loops whose other side may not be running at all.
inline void nap() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

}  // namespace understudy
