// SPDX-License-Identifier: Apache-2.0
//
// The task in front of a stream, as its owner looks at it.
#pragma once

#include <cstdint>

#include "stream/stream.h"
#include "stream/task.h"

namespace understudy {

struct FrontTask {
  Stream& stream;
  Task& task;
  uint64_t position;

  // Whether the program wants the task to end early.
  bool is_stopped() const { return stream.stops(position); }
};

// What came of looking at it.
enum class TaskStep : uint8_t {
  kDone,
  kAgain,     // look at it once more
  kForOther,  // it is for a worker
  kParked,    // the stream is parked, and has no owner any more
};

}  // namespace understudy
