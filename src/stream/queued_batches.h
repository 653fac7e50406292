// SPDX-License-Identifier: Apache-2.0
//
// In which order tasks of different streams were queued, as batches: tasks of one stream that were
// queued in a row. Without memory for more, tasks count as queued with those before them. Not
// synchronised: the run queue guards it, and with it the schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "stream/stream.h"

namespace understudy {

class QueuedBatches {
 public:
  // A task is about to be queued.
  void add(const Stream& stream) noexcept;
  // Whether another stream has a task that was queued before all that this one has. Forgets what
  // is done.
  bool overtakes(const Stream& stream) noexcept;
  // Whether the first task that a stream has was queued before the first one of another.
  bool is_before(const Stream& stream, const Stream& other) const;

 private:
  struct Batch {
    const Stream* stream;
    uint64_t last;  // position of its last task

    bool is_over() const { return stream->is_done(last) || !stream->has_tasks(); }
  };

  static constexpr size_t kFewBatches = 64;

  // A stream that waits keeps its batch at the front, and what is done stays behind it.
  void forget_done() noexcept;

  std::deque<Batch> batches_;
  size_t most_ = kFewBatches;  // before what is done is looked for
};

}  // namespace understudy
