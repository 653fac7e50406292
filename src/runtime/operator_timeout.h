// SPDX-License-Identifier: Apache-2.0
//
// How long an operator may run, in microseconds. No operator runs here, but programs read back what
// became of their wish. Rules: ERR-15, ERR-19. Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "device/product_profile.h"

namespace understudy {

class OperatorTimeout {
 public:
  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

  explicit OperatorTimeout(const OperatorTimes& times)
      : step_(times.step), value_(uint64_t{times.unset} * 1'000'000) {}

  uint64_t step() const { return step_; }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }
  // Rounds a wish up to a number of steps that there can be, and gives what counts from now on.
  // 0: as long as possible.
  uint64_t set(uint64_t wish) {
    const uint64_t counted = rounded(wish);
    value_.store(counted, std::memory_order_relaxed);
    return counted;
  }

 private:
  static constexpr uint64_t kMostSteps = 254;
  // With shorter steps the longest time would be too short for "as long as possible".
  static constexpr uint64_t kShortStep = 100'000;

  uint64_t rounded(uint64_t wish) const {
    const uint64_t most = kMostSteps * step_;
    if (wish == 0) return step_ < kShortStep ? kNoLimit : most;
    if (wish > most) return most;
    return (wish + step_ - 1) / step_ * step_;
  }

  const uint64_t step_;
  std::atomic<uint64_t> value_;
};

}  // namespace understudy
