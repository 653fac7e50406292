// SPDX-License-Identifier: Apache-2.0
//
// What led to what: arrows from a call to the task that it queued, and from a task to the one that
// waited for it. They lead from an earlier slice to a later one.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/recording/recording.h"

namespace understudy::command {

struct TraceArrow {
  uint32_t from;  // a call, or the task that was awaited
  uint32_t to;    // a task; it has one arrow of each kind at the most
};

bool has_queue_arrow(const Recording& recording, uint32_t task);
bool has_wait_arrow(const Recording& recording, uint32_t task);
// By what they come from.
std::vector<TraceArrow> queue_arrows(const Recording& recording);
std::vector<TraceArrow> wait_arrows(const Recording& recording);

}  // namespace understudy::command
