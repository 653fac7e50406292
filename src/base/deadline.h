// SPDX-License-Identifier: Apache-2.0
//
// Until when to wait: a moment of the steady clock, or never.
#pragma once

#include <chrono>
#include <cstdint>

namespace understudy {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

inline constexpr Deadline kNever = Deadline::max();

// A moment so far ahead that the clock cannot tell it is never.
template <typename Duration>
Deadline deadline_after(Duration duration) {
  const Deadline now = Clock::now();
  // In the unit of the duration, which may be too long for the clock's.
  const auto left = std::chrono::duration_cast<Duration>(kNever - now);
  return duration > left ? kNever : now + duration;
}

inline bool has_passed(Deadline deadline) { return deadline != kNever && Clock::now() >= deadline; }

}  // namespace understudy
