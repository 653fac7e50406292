// SPDX-License-Identifier: Apache-2.0
//
// Nanoseconds since the recording began, from ticks. How long a tick is follows from the moments
// that were read on both clocks, best from two that are far apart.
#pragma once

#include <cstdint>

#include "tools/recording/chunk_file.h"

namespace understudy::command {

class RecordingClock {
 public:
  explicit RecordingClock(const FileFacts& facts);

  // Another moment on both clocks; one that makes no sense is ignored.
  void add(RecordedClock pair);
  // Whether the header's own moments made sense, or an added one did.
  bool is_known() const { return rate_ > 0; }

  // Whether a moment may be one of the recording. Damaged records have others.
  bool is_plausible(uint64_t ticks) const {
    return ticks >= first_.ticks - slack_before_ && ticks <= latest_.ticks + slack_behind_;
  }
  uint64_t nanoseconds(uint64_t ticks) const {
    if (ticks <= first_.ticks) return 0;
    return static_cast<uint64_t>(static_cast<double>(ticks - first_.ticks) * rate_);
  }
  // No moment is known: a tick counts as a nanosecond from the first record on.
  void begin_at(uint64_t ticks);

 private:
  void set_rate(RecordedClock end);

  RecordedClock first_;
  RecordedClock latest_;
  double rate_ = 0;  // nanoseconds per tick
  uint64_t slack_before_ = 0;
  uint64_t slack_behind_ = 0;
};

}  // namespace understudy::command
