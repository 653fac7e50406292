// SPDX-License-Identifier: Apache-2.0
//
// Two ways to wait a little for another thread.
#pragma once

#include <chrono>

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
inline constexpr std::chrono::microseconds kShortNap(20);
void nap(std::chrono::microseconds time = kShortNap);

}  // namespace understudy
