// SPDX-License-Identifier: Apache-2.0
//
// Disorder in sentences, with the order that is missing.
#pragma once

#include "observe/access_map.h"
#include "observe/object_life.h"

namespace understudy {

// The second of two uses of the same bytes: by a task, or by a call.
struct LaterUse {
  MemoryUse what;
  ProgramPlace place;
  bool is_task = false;
  uint32_t stream = 0;          // of a task
  const char* ended = "frees";  // what an end does to memory
};

// Adds a finding. May throw std::bad_alloc.
void tell_disorder(const TaskAccess& first, const LaterUse& second);

}  // namespace understudy
