// SPDX-License-Identifier: Apache-2.0
//
// How lengths of time spread: their sum, and what half of them, and all but one in a hundred, stay
// within. Exact, by nearest rank.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace understudy::command {

struct Spread {
  uint64_t count = 0;
  uint64_t total = 0;
  uint64_t p50 = 0;
  uint64_t p99 = 0;
  uint64_t longest = 0;

  uint64_t mean() const { return count == 0 ? 0 : total / count; }
};

// Puts the values into another order.
Spread spread_of(std::span<uint64_t> values);

// Values of several groups in one block of memory. First it is told of each value to come, then
// the values.
class GroupedValues {
 public:
  explicit GroupedValues(size_t groups) : begins_(groups + 1), ends_(groups) {}

  void expect(size_t group) { ++begins_[group + 1]; }
  void start();
  // REQUIRES: it was expected.
  void add(size_t group, uint64_t value) { values_[ends_[group]++] = value; }

  Spread spread(size_t group) {
    return spread_of(std::span(values_).subspan(begins_[group], ends_[group] - begins_[group]));
  }

 private:
  std::vector<size_t> begins_;
  std::vector<size_t> ends_;
  std::vector<uint64_t> values_;
};

}  // namespace understudy::command
