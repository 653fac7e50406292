// SPDX-License-Identifier: Apache-2.0
//
// How a thread waits for a stream: it first runs the stream's tasks itself, if no worker does, or
// those of the stream that it waits for in turn; then it spins for a moment; then it sleeps. It
// runs no function of the program, and with a limit of time nothing long. Where a schedule decides
// what runs, it only sleeps. Any thread may call anything, without a lock.
#pragma once

#include <cstdint>

#include "base/deadline.h"
#include "stream/run_queue.h"
#include "stream/task_runner.h"
#include "stream/wait_graph.h"

namespace understudy {

class StreamWaiter {
 public:
  StreamWaiter(RunQueue& run_queue, WaitGraph& wait_graph, TaskRunner& runner)
      : run_queue_(run_queue), wait_graph_(wait_graph), runner_(runner) {}

  // Waits until a task is done. False at the deadline.
  bool wait_until(Stream& stream, uint64_t position, Deadline deadline);
  // The same, but returns as well when the stream was interrupted.
  WaitGraph::Outcome wait_once(Stream& stream, uint64_t position, Deadline deadline);

 private:
  // Runs what a stream needs to get to a position, as far as the caller may.
  void help(Stream& stream, uint64_t position, Deadline deadline);
  // Runs a stream that the caller owns up to a position, as far as the caller may.
  RunEnd run_owned(const WaitGraph::Blocker& wanted, Deadline deadline);

  RunQueue& run_queue_;
  WaitGraph& wait_graph_;
  TaskRunner& runner_;
};

}  // namespace understudy
