// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/summary.h"

namespace understudy::command {

Summary summarize(const Recording& recording, size_t curve_points) {
  Summary summary;
  summary.calls = call_figures(recording);
  summary.memory = memory_figures(recording, curve_points);
  summary.fragmentation = fragmentation_figures(recording, summary.memory);
  summary.tasks = task_figures(recording);
  return summary;
}

}  // namespace understudy::command
