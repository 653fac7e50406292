// SPDX-License-Identifier: Apache-2.0
//
// Sizes of what kernels get: their stacks, and the buffers of what they print. One value each for
// all devices of the process. No kernel runs here, so values are examined, rounded as the product
// does, and read back. Rules: LIMIT. Any thread may call anything.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "base/result.h"
#include "device/settings.h"

namespace understudy {

// Numbered as in the published interface.
enum class KernelLimit : uint8_t {
  kThreadStack,      // of a thread of a group
  kDivergenceStack,  // of a group whose threads take different ways
  kCoreStack,
  kCoreOutput,
  kThreadOutput,
};
inline constexpr unsigned kKernelLimits = 5;

// What a program asks for, by limit.
using KernelLimitRequests = std::array<std::optional<uint64_t>, kKernelLimits>;

class KernelLimits {
 public:
  explicit KernelLimits(const Settings& settings);

  // What the program reads back.
  Result<uint64_t> get(KernelLimit limit) const;
  Result<void> set(KernelLimit limit, uint64_t value);

  // All of the requests, or none; the first half only tells whether they could be granted now.
  Result<void> check(const KernelLimitRequests& requests) const;
  Result<void> set(const KernelLimitRequests& requests);

 private:
  using Values = std::array<uint64_t, kKernelLimits>;

  Result<uint64_t> rounded(KernelLimit limit, uint64_t value) const;
  Result<Values> values_after_locked(const KernelLimitRequests& requests) const US_REQUIRES(mutex_);

  const Settings& settings_;
  mutable Mutex mutex_{LockRank::kKernelLimits};
  Values values_ US_GUARDED_BY(mutex_) = {};  // rounded
};

}  // namespace understudy
