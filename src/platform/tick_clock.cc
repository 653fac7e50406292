// SPDX-License-Identifier: Apache-2.0
#include "platform/tick_clock.h"

#include <time.h>

#include "platform/processor.h"

namespace understudy::platform {

namespace {

uint64_t read_clock(clockid_t clock) noexcept {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

const bool has_steady_counter = has_invariant_counter();

uint64_t machine_time() noexcept { return read_clock(CLOCK_MONOTONIC); }

uint64_t wall_clock_time() noexcept { return read_clock(CLOCK_REALTIME); }

}  // namespace understudy::platform
