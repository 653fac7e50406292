// SPDX-License-Identifier: Apache-2.0
#include "stream/task_recording.h"

#include <array>

namespace understudy {

namespace {

// In the order of TaskKind.
constexpr std::array kTaskNames = {
    "copy",
    "copy of rows",
    "batch of copies",
    "copy of captured bytes",
    "described copy",
    "indirect copy",
    "memory hint",
    "set",
    "set of words",
    "reduction",
    "write of a value",
    "wait for a value",
    "event record",
    "event wait",
    "event wait across processes",
    "event reset",
    "notify record",
    "notify wait",
    "free",
    "host function",
    "callback",
    "nothing",
};
static_assert(kTaskNames.size() == static_cast<size_t>(TaskKind::kNothing) + 1);

[[maybe_unused]] const bool named = (Recorder::name_task_kinds(kTaskNames), true);

uint64_t number_of(const Stream& stream) {
  return recorded_stream(stream.index, stream.state.load(std::memory_order_relaxed));
}

uint64_t bytes_of(const Task& task) {
  switch (task.kind) {
    case TaskKind::kCopy:
      return task.copy.count;
    case TaskKind::kCopyRows:
      return task.rows.width * task.rows.height;
    case TaskKind::kCopyList: {
      uint64_t sum = 0;
      for (const ListedCopy& each : *task.list) sum += each.copy.count;
      return sum;
    }
    case TaskKind::kCopyCaptured:
      return task.captured.source->size();
    case TaskKind::kCopyIndirect:
      return task.indirect.count;
    case TaskKind::kSet:
      return task.fill.count;
    case TaskKind::kSetWords:
      return task.fill.count * sizeof(uint32_t);
    case TaskKind::kReduce:
      return task.reduction.count;
    case TaskKind::kFree:
      return task.free.range.size;
    default:
      return 0;
  }
}

}  // namespace

void record_queued(const Stream& stream, uint64_t position, const Task& task) noexcept {
  Recorder::note_queued(static_cast<uint16_t>(task.kind), stream.device.load(), number_of(stream),
                        position);
}

void TaskRecording::begin(const FrontTask& front) noexcept {
  const Task& task = front.task;
  bytes_ = bytes_of(task);
  if (task.kind == TaskKind::kWaitForRecord && task.wait.stream != nullptr) {
    awaited_stream_ = number_of(*task.wait.stream);
    awaited_position_ = task.wait.position;
  }
  begun_ = Recorder::begin_task(outer_moment_);
}

void TaskRecording::end() const noexcept { Recorder::leave_task(outer_moment_); }

void TaskRecording::write(const FrontTask& front, bool has_failed) const noexcept {
  Recorder::end_task({.kind = static_cast<uint16_t>(front.task.kind),
                      .code = has_failed ? 1 : 0,
                      .begun = begun_,
                      .stream = number_of(front.stream),
                      .position = front.position,
                      .bytes = bytes_,
                      .awaited_stream = awaited_stream_,
                      .awaited_position = awaited_position_});
}

}  // namespace understudy
