// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/spread.h"

#include <algorithm>
#include <numeric>

namespace understudy::command {

Spread spread_of(std::span<uint64_t> values) {
  Spread spread;
  spread.count = values.size();
  if (values.empty()) return spread;
  spread.total = std::accumulate(values.begin(), values.end(), uint64_t{0});
  const auto nearest_rank = [&](size_t percent) {
    const size_t rank = (values.size() * percent + 99) / 100;
    return values.begin() + static_cast<ptrdiff_t>(rank - 1);
  };
  const auto p99 = nearest_rank(99);
  std::nth_element(values.begin(), p99, values.end());
  spread.p99 = *p99;
  spread.longest = *std::max_element(p99, values.end());
  // What is behind the larger of the two no longer matters.
  const auto p50 = nearest_rank(50);
  std::nth_element(values.begin(), p50, p99 + 1);
  spread.p50 = *p50;
  return spread;
}

void GroupedValues::start() {
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  std::copy(begins_.begin(), begins_.end() - 1, ends_.begin());
  values_.resize(begins_.back());
}

}  // namespace understudy::command
