// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/recorded_tasks.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace understudy::command {

namespace {

std::pair<uint32_t, uint64_t> task_place(const TaskRecord& record) {
  return {record.task.stream, record.task.position};
}

void sort_by_place(std::vector<TaskRecord>& records) {
  std::stable_sort(records.begin(), records.end(), [](const auto& left, const auto& right) {
    return task_place(left) < task_place(right);
  });
}

// All tasks by stream and position; those that ran know who queued them.
std::vector<TaskRecord> merge_records(std::vector<TaskRecord> queued, std::vector<TaskRecord> run) {
  sort_by_place(queued);
  sort_by_place(run);
  std::vector<TaskRecord> all;
  all.reserve(std::max(queued.size(), run.size()));
  size_t next = 0;
  for (TaskRecord& record : run) {
    while (next < queued.size() && task_place(queued[next]) < task_place(record)) {
      all.push_back(queued[next++]);
    }
    if (next < queued.size() && task_place(queued[next]) == task_place(record)) {
      record.task.queued = std::min(queued[next].task.queued, record.task.begin);
      record.task.queued_by = queued[next++].task.queued_by;
    }
    all.push_back(record);
  }
  all.insert(all.end(), queued.begin() + static_cast<ptrdiff_t>(next), queued.end());
  return all;
}

}  // namespace

std::vector<RecordedTask> match_tasks(std::vector<TaskRecord> queued, std::vector<TaskRecord> run) {
  const std::vector<TaskRecord> all = merge_records(std::move(queued), std::move(run));
  std::vector<uint32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t left, uint32_t right) {
    return all[left].task.begin < all[right].task.begin;
  });
  std::vector<uint32_t> places(all.size());
  for (uint32_t place = 0; place < order.size(); ++place) places[order[place]] = place;

  std::vector<RecordedTask> tasks;
  tasks.reserve(all.size());
  for (const uint32_t index : order) {
    RecordedTask task = all[index].task;
    if (all[index].awaited_stream != kNone) {
      const std::pair wanted(all[index].awaited_stream, all[index].awaited_position);
      const auto found = std::lower_bound(
          all.begin(), all.end(), wanted,
          [](const TaskRecord& record, const auto& place) { return task_place(record) < place; });
      if (found != all.end() && task_place(*found) == wanted) {
        task.awaited_task = places[static_cast<size_t>(found - all.begin())];
      }
    }
    tasks.push_back(task);
  }
  return tasks;
}

}  // namespace understudy::command
