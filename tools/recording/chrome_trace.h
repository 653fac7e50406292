// SPDX-License-Identifier: Apache-2.0
//
// A recording in the trace event format, which chrome://tracing and ui.perfetto.dev open: a track
// for each thread and each stream, a counter for the memory of each device, arrows from a call to
// the task that it queued and from a task to the one that waited for it.
#pragma once

#include <string>

#include "tools/recording/recording.h"

namespace understudy::command {

// JSON. May throw std::bad_alloc.
std::string chrome_trace(const Recording& recording);

}  // namespace understudy::command
