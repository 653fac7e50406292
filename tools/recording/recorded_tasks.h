// SPDX-License-Identifier: Apache-2.0
//
// Tasks of streams: the record of a task that was queued and that of its run, which the thread of
// the stream wrote, brought together; and which task waited for which.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/recording/recording.h"

namespace understudy::command {

// A record of kQueued or kTask. The stream is a position in Recording::streams.
struct TaskRecord {
  RecordedTask task;  // ticks for times; kinds as the process counts them
  uint32_t awaited_stream = kNone;
  uint64_t awaited_position = 0;
};

// The tasks by their beginning, or the moment they were queued. Takes the records apart.
std::vector<RecordedTask> match_tasks(std::vector<TaskRecord> queued, std::vector<TaskRecord> run);

}  // namespace understudy::command
