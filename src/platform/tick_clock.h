// SPDX-License-Identifier: Apache-2.0
//
// A clock that is read in a few nanoseconds: the processor's counter where it runs at one rate on
// all processors, else the clock of the machine. How long a tick is cannot be told at once: pairs
// of ticks and nanoseconds tell afterwards. Any thread may call anything.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace understudy::platform {

// Nanoseconds since the machine was started, or since 1970.
uint64_t machine_time() noexcept;
uint64_t wall_clock_time() noexcept;

// Whether the counter of the processor may be used. Found out when the library is loaded.
extern const bool has_steady_counter;

inline uint64_t tick() noexcept {
#if defined(__x86_64__)
  if (has_steady_counter) [[likely]]
    return __rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
  return machine_time();
}

}  // namespace understudy::platform
