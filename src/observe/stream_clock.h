// SPDX-License-Identifier: Apache-2.0
//
// How far each stream is known to be: a vector clock whose components are positions of tasks. What
// has a clock comes behind task p of stream s if the clock has reached p on s. A plain value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace understudy {

class StreamClock {
 public:
  uint64_t reached(uint32_t stream) const {
    return stream < reached_.size() ? reached_[stream] : 0;
  }
  // The functions below may throw std::bad_alloc, and change nothing then.
  void advance(uint32_t stream, uint64_t position) {
    if (stream >= reached_.size()) reached_.resize(stream + 1);
    reached_[stream] = std::max(reached_[stream], position);
  }
  void join(const StreamClock& other) {
    if (other.reached_.size() > reached_.size()) reached_.resize(other.reached_.size());
    for (size_t i = 0; i < other.reached_.size(); ++i) {
      reached_[i] = std::max(reached_[i], other.reached_[i]);
    }
  }
  // The same, but not beyond a position on one stream.
  StreamClock limited(uint32_t stream, uint64_t position) const {
    StreamClock copy = *this;
    if (stream < copy.reached_.size()) {
      copy.reached_[stream] = std::min(copy.reached_[stream], position);
    }
    return copy;
  }
  bool has_reached(const StreamClock& other) const {
    for (uint32_t i = 0; i < other.reached_.size(); ++i) {
      if (other.reached_[i] > reached(i)) return false;
    }
    return true;
  }

 private:
  std::vector<uint64_t> reached_;
};

// A clock as it was at one moment; never null.
using ClockSnapshot = std::shared_ptr<const StreamClock>;

}  // namespace understudy
