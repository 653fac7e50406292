// SPDX-License-Identifier: Apache-2.0
//
// A task that a stream has yet to do, as the check `order` knows it. A plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "observe/access_map.h"
#include "observe/object_life.h"
#include "observe/stream_clock.h"

namespace understudy {

// What keeps a queued task, and those behind it, from running.
struct QueuedGate {
  enum class Kind : uint8_t {
    kNone,
    kRecord,  // a task of another stream
    kNotify,  // a flag that only tasks of this process set
    kOpen,    // something that the program may still do, or that its own code decides
  };
  Kind kind = Kind::kNone;
  StreamTask record;
  uint32_t notify = 0;
};

struct QueuedTask {
  uint64_t position = 0;
  uint64_t order = 0;    // of the call that queued it, among all such calls
  ClockSnapshot behind;  // what it comes behind, besides the tasks before it
  std::vector<MemoryUse> uses;
  QueuedGate gate;
  std::optional<uint32_t> changed_notify;  // by this task
  ProgramPlace place;
};

}  // namespace understudy
