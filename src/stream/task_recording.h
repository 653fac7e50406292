// SPDX-License-Identifier: Apache-2.0
//
// Tasks in a recording of the process (observe/recorder.h): when each was queued, began and ended.
// Where nothing is recorded, each of these is one test of a word.
#pragma once

#include <cstdint>

#include "observe/recorder.h"
#include "stream/front_task.h"
#include "stream/stream.h"
#include "stream/task.h"

namespace understudy {

void record_queued(const Stream& stream, uint64_t position, const Task& task) noexcept;

// A task that its thread looks at, in the scope of this: it runs, or is found to have to wait.
class TaskRecording {
 public:
  explicit TaskRecording(const FrontTask& front) noexcept {
    if (is_recorded()) [[unlikely]]
      begin(front);
  }
  ~TaskRecording() {
    if (begun_ != 0) [[unlikely]]
      end();
  }
  TaskRecording(const TaskRecording&) = delete;
  TaskRecording& operator=(const TaskRecording&) = delete;

  // It has run, or failed. Before it counts as done: its stream may end behind that.
  void note_done(const FrontTask& front, bool has_failed) noexcept {
    if (begun_ != 0) [[unlikely]]
      write(front, has_failed);
  }

 private:
  void begin(const FrontTask& front) noexcept;
  void end() const noexcept;
  void write(const FrontTask& front, bool has_failed) const noexcept;

  uint64_t begun_ = 0;  // 0: it is not recorded
  uint64_t outer_moment_ = 0;
  // Looked up before it runs: what it waits for may be gone then.
  uint64_t bytes_ = 0;
  uint64_t awaited_stream_ = 0;
  uint64_t awaited_position_ = 0;
};

}  // namespace understudy
