// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/stream_figures.h"

#include <algorithm>

namespace understudy::command {

namespace {

double per_second(uint64_t bytes, uint64_t nanoseconds) {
  if (nanoseconds == 0) return 0;
  return static_cast<double>(bytes) * 1e9 / static_cast<double>(nanoseconds);
}

std::vector<TaskKindFigures> figures_of_kinds(const Recording& recording) {
  std::vector<TaskKindFigures> all(recording.task_kinds.size());
  GroupedValues durations(all.size());
  for (const RecordedTask& task : recording.tasks) {
    TaskKindFigures& kind = all[task.kind];
    ++kind.tasks;
    kind.bytes += task.bytes;
    if (!task.has_run) continue;
    durations.expect(task.kind);
    if (task.code != 0) ++kind.failed;
  }
  durations.start();
  for (const RecordedTask& task : recording.tasks) {
    if (task.has_run) durations.add(task.kind, task.duration);
  }
  std::vector<TaskKindFigures> present;
  for (size_t kind = 0; kind < all.size(); ++kind) {
    if (all[kind].tasks == 0) continue;
    all[kind].kind = static_cast<uint16_t>(kind);
    all[kind].durations = durations.spread(kind);
    present.push_back(all[kind]);
  }
  std::stable_sort(present.begin(), present.end(), [](const auto& left, const auto& right) {
    return left.durations.total > right.durations.total;
  });
  return present;
}

// Tasks of a stream run one behind the other, in the order in which they are here.
void count_task(StreamFigures& stream, const RecordedTask& task, uint64_t& previous_end) {
  if (stream.tasks == 0 || task.queued < stream.begin) stream.begin = task.queued;
  ++stream.tasks;
  stream.end = std::max({stream.end, task.queued, task.begin + task.duration});
  if (!task.has_run) {
    ++stream.unfinished;
    return;
  }
  if (task.code != 0) ++stream.failed;
  stream.bytes += task.bytes;
  if (task.bytes != 0) stream.bytes_time += task.duration;
  const uint64_t in_front = std::max(task.queued, previous_end);
  if (task.awaited_task != kNone) {
    ++stream.waits;
    if (task.begin > in_front) stream.waited += task.begin - in_front;
  }
  const uint64_t end = task.begin + task.duration;
  const uint64_t counted = std::max(task.begin, previous_end);
  if (end > counted) stream.busy += end - counted;
  previous_end = std::max(previous_end, end);
}

std::vector<StreamFigures> figures_of_streams(const Recording& recording) {
  std::vector<StreamFigures> all(recording.streams.size());
  std::vector<uint64_t> ends(all.size());
  GroupedValues delays(all.size());
  for (const RecordedTask& task : recording.tasks) {
    count_task(all[task.stream], task, ends[task.stream]);
    if (task.has_run) delays.expect(task.stream);
  }
  delays.start();
  for (const RecordedTask& task : recording.tasks) {
    if (task.has_run) delays.add(task.stream, task.begin - std::min(task.queued, task.begin));
  }
  std::vector<StreamFigures> present;
  for (uint32_t stream = 0; stream < all.size(); ++stream) {
    if (all[stream].tasks == 0) continue;
    all[stream].stream = stream;
    all[stream].delays = delays.spread(stream);
    present.push_back(all[stream]);
  }
  std::stable_sort(present.begin(), present.end(),
                   [](const auto& left, const auto& right) { return left.busy > right.busy; });
  return present;
}

}  // namespace

double TaskKindFigures::rate() const { return per_second(bytes, durations.total); }

double StreamFigures::busy_share() const {
  return end > begin ? static_cast<double>(busy) / static_cast<double>(end - begin) : 0;
}
double StreamFigures::rate() const { return per_second(bytes, bytes_time); }

TaskFigures task_figures(const Recording& recording) {
  TaskFigures figures;
  figures.tasks = recording.tasks.size();
  figures.kinds = figures_of_kinds(recording);
  figures.streams = figures_of_streams(recording);
  for (const TaskKindFigures& kind : figures.kinds) figures.failed += kind.failed;
  return figures;
}

}  // namespace understudy::command
