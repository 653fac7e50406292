// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/chrome_arrows.h"

#include <algorithm>

namespace understudy::command {

namespace {

void sort_by_origin(std::vector<TraceArrow>& arrows) {
  std::stable_sort(arrows.begin(), arrows.end(),
                   [](const auto& left, const auto& right) { return left.from < right.from; });
}

}  // namespace

bool has_queue_arrow(const Recording& recording, uint32_t task) {
  const RecordedTask& queued = recording.tasks[task];
  return queued.has_run && queued.queued_by != kNone &&
         recording.calls[queued.queued_by].begin <= queued.begin;
}

bool has_wait_arrow(const Recording& recording, uint32_t task) {
  const uint32_t awaited = recording.tasks[task].awaited_task;
  return recording.tasks[task].has_run && awaited != kNone && awaited < task &&
         recording.tasks[awaited].has_run;
}

std::vector<TraceArrow> queue_arrows(const Recording& recording) {
  std::vector<TraceArrow> arrows;
  for (uint32_t task = 0; task < recording.tasks.size(); ++task) {
    if (has_queue_arrow(recording, task)) arrows.push_back({recording.tasks[task].queued_by, task});
  }
  sort_by_origin(arrows);
  return arrows;
}

std::vector<TraceArrow> wait_arrows(const Recording& recording) {
  std::vector<TraceArrow> arrows;
  for (uint32_t task = 0; task < recording.tasks.size(); ++task) {
    if (has_wait_arrow(recording, task))
      arrows.push_back({recording.tasks[task].awaited_task, task});
  }
  sort_by_origin(arrows);
  return arrows;
}

}  // namespace understudy::command
