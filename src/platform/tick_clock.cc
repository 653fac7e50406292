// SPDX-License-Identifier: Apache-2.0
#include "platform/tick_clock.h"

#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace understudy::platform {

namespace {

uint64_t read_clock(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// Processors say so themselves: "invariant TSC".
bool find_steady_counter() noexcept {
#if defined(__x86_64__)
  constexpr unsigned kPowerLeaf = 0x80000007;
  constexpr unsigned kInvariant = 1U << 8;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  return __get_cpuid(kPowerLeaf, &a, &b, &c, &d) != 0 && (d & kInvariant) != 0;
#else
  return true;
#endif
}

}  // namespace

const bool has_steady_counter = find_steady_counter();

uint64_t machine_time() noexcept { return read_clock(CLOCK_MONOTONIC); }

uint64_t wall_clock_time() noexcept { return read_clock(CLOCK_REALTIME); }

}  // namespace understudy::platform
