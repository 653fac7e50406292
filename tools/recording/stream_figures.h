// SPDX-License-Identifier: Apache-2.0
//
// The tasks of a recording in figures: by kind, and by stream.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/recording/recording.h"
#include "tools/recording/spread.h"

namespace understudy::command {

struct TaskKindFigures {
  uint16_t kind = 0;
  uint64_t tasks = 0;   // that were queued
  uint64_t failed = 0;  // of those that ran
  uint64_t bytes = 0;
  Spread durations;  // of those that ran

  // Bytes per second while they ran; 0 if they have none.
  double rate() const;
};

struct StreamFigures {
  uint32_t stream = 0;
  uint64_t tasks = 0;
  uint64_t unfinished = 0;  // that never ran
  uint64_t failed = 0;
  uint64_t begin = 0;  // of its first task's time in the queue
  uint64_t end = 0;
  uint64_t busy = 0;    // nanoseconds in which a task ran
  uint64_t waits = 0;   // tasks that wait for another stream
  uint64_t waited = 0;  // nanoseconds in which such a task stood in front
  uint64_t bytes = 0;
  uint64_t bytes_time = 0;  // nanoseconds of the tasks that have bytes
  Spread delays;            // between queue and beginning

  double busy_share() const;
  double rate() const;  // bytes per second while such tasks ran
};

struct TaskFigures {
  uint64_t tasks = 0;
  uint64_t failed = 0;
  std::vector<TaskKindFigures> kinds;  // those that took most time first
  std::vector<StreamFigures> streams;  // that had tasks, the busiest first
};

TaskFigures task_figures(const Recording& recording);

}  // namespace understudy::command
