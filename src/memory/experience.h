// SPDX-License-Identifier: Apache-2.0
//
// Which of several ways to do something is the cheapest, learnt by doing it: each way is tried a
// few times, then the best is used, and now and then another one gets its chance again. Threads may
// lose each other's updates: it is an estimate, and every choice is right.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace understudy {

template <unsigned kWays>
class Experience {
 public:
  // has(way) tells whether there is such a way on this machine; there is always way 0.
  template <typename Has>
  unsigned choose(Has has) {
    const uint32_t turn = turns_.fetch_add(1, std::memory_order_relaxed);
    const unsigned another = turn % kWays;
    // Circumstances change, other programs and other buffers: sometimes look again.
    if ((turn < kTrials || turn % kRetry == 0) && has(another)) return another;
    unsigned best = 0;
    for (unsigned way = 1; way < kWays; ++way) {
      if (has(way) && cost(way) < cost(best)) best = way;
    }
    return best;
  }

  // It took `ticks` to move `count` bytes in this way.
  void learn(unsigned way, uint64_t ticks, size_t count) {
    const uint64_t measured = std::min<uint64_t>(ticks * kScale / count, kUnknown);
    const uint64_t known = cost(way);
    uint64_t updated = std::min(measured, known);
    if (turns_.load(std::memory_order_relaxed) > kTrials) {
      // Very bad news are a neighbour's doing, or the first touch of a page.
      const uint64_t believed = std::min(measured, 2 * known);
      updated = (3 * known + believed) / 4;
    }
    savings_[way].store(static_cast<uint32_t>(kUnknown - updated), std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kTrials = 3 * kWays;  // at first: each way three times
  static constexpr uint32_t kRetry = 257;         // shares no factor with the number of ways
  static_assert(kRetry % kWays != 0);             // so that each way gets its turn
  static constexpr uint64_t kScale = 1024;        // a tick may move many bytes
  static constexpr uint32_t kUnknown = UINT32_MAX / 2;

  uint64_t cost(unsigned way) const {
    return kUnknown - savings_[way].load(std::memory_order_relaxed);
  }

  std::atomic<uint32_t> turns_{0};
  // How much less than kUnknown a way costs: nothing is known of one that saves nothing.
  std::array<std::atomic<uint32_t>, kWays> savings_{};
};

}  // namespace understudy
