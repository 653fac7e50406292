// SPDX-License-Identifier: Apache-2.0
//
// All figures of a recording, for `understudy trace` and `understudy diff`. Plain values that name
// entries of the recording by their positions.
#pragma once

#include <vector>

#include "tools/recording/call_figures.h"
#include "tools/recording/fragmentation.h"
#include "tools/recording/memory_figures.h"
#include "tools/recording/recording.h"
#include "tools/recording/stream_figures.h"

namespace understudy::command {

struct Summary {
  CallFigures calls;
  MemoryFigures memory;
  std::vector<ProcessFragmentation> fragmentation;
  TaskFigures tasks;
};

// With so many points in the curves of memory over time.
Summary summarize(const Recording& recording, size_t curve_points);

}  // namespace understudy::command
