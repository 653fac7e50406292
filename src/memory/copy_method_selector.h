// SPDX-License-Identifier: Apache-2.0
//
// Selects the cheapest of several methods to do something, by samples of what they cost: each
// method is tried a few times, then the best is used, and at intervals another one is tried again.
// Threads may lose each other's updates: costs are estimates, and every choice is correct.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace understudy {

template <unsigned kMethods>
class CopyMethodSelector {
 public:
  // has(method) tells whether this machine has the method; it always has method 0.
  template <typename Has>
  unsigned choose(Has has) {
    const uint32_t turn = turns_.fetch_add(1, std::memory_order_relaxed);
    const unsigned another = turn % kMethods;
    // Costs change with other programs and other buffers: try others again at intervals.
    if ((turn < kTrials || turn % kRetry == 0) && has(another)) return another;
    unsigned best = 0;
    for (unsigned method = 1; method < kMethods; ++method) {
      if (has(method) && cost(method) < cost(best)) best = method;
    }
    return best;
  }

  // It took `ticks` to move `count` bytes with this method.
  void record_sample(unsigned method, uint64_t ticks, size_t count) {
    const uint64_t measured = std::min<uint64_t>(ticks * kScale / count, kUnknown);
    const uint64_t known = cost(method);
    uint64_t updated = std::min(measured, known);
    if (turns_.load(std::memory_order_relaxed) > kTrials) {
      // A very slow sample is due to another program, or to the first touch of a page.
      const uint64_t believed = std::min(measured, 2 * known);
      updated = (3 * known + believed) / 4;
    }
    savings_[method].store(static_cast<uint32_t>(kUnknown - updated), std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kTrials = 3 * kMethods;  // at first: each method three times
  static constexpr uint32_t kRetry = 257;            // shares no factor with the number of methods
  static_assert(kRetry % kMethods != 0);             // so that each method gets its turn
  static constexpr uint64_t kScale = 1024;           // a tick may move many bytes
  static constexpr uint32_t kUnknown = UINT32_MAX / 2;

  uint64_t cost(unsigned method) const {
    return kUnknown - savings_[method].load(std::memory_order_relaxed);
  }

  std::atomic<uint32_t> turns_{0};
  // How much less than kUnknown a method costs; 0 for one without a sample.
  std::array<std::atomic<uint32_t>, kMethods> savings_{};
};

}  // namespace understudy
