// SPDX-License-Identifier: Apache-2.0
//
// Disorder, and waits that cannot end, in sentences with what is missing.
#pragma once

#include "observe/access_map.h"
#include "observe/endless_wait.h"
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

// Each adds a finding. May throw std::bad_alloc.
void tell_disorder(const TaskAccess& first, const LaterUse& second);
// The program waits at a place for a stream that cannot get on.
void tell_endless_wait(const EndlessWait& wait, const ProgramPlace& waiting);

}  // namespace understudy
