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
  const std::chrono::duration<double> left = kNever - now;  // no overflow, however long it is
  return duration >= left ? kNever : now + std::chrono::duration_cast<Clock::duration>(duration);
}

inline bool has_passed(Deadline deadline) { return deadline != kNever && Clock::now() >= deadline; }

}  // namespace understudy
