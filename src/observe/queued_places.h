// SPDX-License-Identifier: Apache-2.0
//
// Where the program queued the tasks that streams have yet to do, for checks that tell of a task
// when it runs, on a thread that knows nothing of that. A fork child begins with none. Any thread
// may call anything, also with locks. For want of memory a place is not known.
#pragma once

#include <atomic>

#include "observe/access_map.h"
#include "observe/object_life.h"

namespace understudy {

class QueuedPlaces {
 public:
  QueuedPlaces() = delete;

  // Before the task can run. REQUIRES: tasks of a stream come in the order of their positions.
  static void add(StreamTask task, const ProgramPlace& place) noexcept;
  // The task is over, as those before it are.
  static void remove(StreamTask task) noexcept;
  // Nothing of a task that is not queued.
  static ProgramPlace find(StreamTask task) noexcept;

 private:
  struct State;
  // Null for want of memory.
  static State* state() noexcept;
  static void forget_in_fork_child();

  static std::atomic<State*> state_;
  static const bool registered_;
};

}  // namespace understudy
