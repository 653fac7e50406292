// SPDX-License-Identifier: Apache-2.0
//
// Runs the tasks of a stream, for the thread that owns it, and lets the stream go afterwards. What
// a task names is looked up when it runs; if it is gone, the task fails, and the stream remembers
// why.
#pragma once

#include <cstdint>

#include "memory/host_memory.h"
#include "memory/transfer.h"
#include "stream/memory_tasks.h"
#include "stream/reports.h"
#include "stream/run_queue.h"
#include "stream/stream.h"
#include "stream/stream_registry.h"
#include "stream/task.h"
#include "stream/wait_graph.h"
#include "stream/wait_tasks.h"

namespace understudy {

// How the run of a stream came to an end.
enum class RunEnd : uint8_t {
  kEmpty,     // no task is left
  kReached,   // it got as far as was asked for
  kTurnOver,  // others may want the thread
  kForOther,  // the task in front is for a worker
  kParked,    // the stream has no owner any more
};

struct RunLimits {
  uint64_t until = kNoPosition;  // the last task to run
  unsigned most_tasks = 0;       // 0: all
  // A thread that waits runs no function of the program, and with a limit of time nothing long.
  bool may_call_users = true;
  bool may_take_long = true;
};

class TaskRunner {
 public:
  TaskRunner(StreamRegistry& registry, RunQueue& run_queue, WaitGraph& wait_graph, Reports& reports,
             Transfer& transfer, HostMemory& host)
      : registry_(registry),
        run_queue_(run_queue),
        wait_graph_(wait_graph),
        reports_(reports),
        memory_tasks_(transfer, host),
        wait_tasks_(wait_graph, transfer) {}

  // REQUIRES: the caller owns the stream. It does no longer if kParked is returned.
  RunEnd run(Stream& stream, const RunLimits& limits);
  // The caller owns the stream, has run it, and lets others go on with what is left.
  void let_go(Stream& stream, RunEnd end);
  // The same for a stream without tasks. False if some came meanwhile: then the caller still owns
  // it.
  bool release(Stream& stream);
  // Gives the slot of a destroyed stream back, unless a thread owns it: that one will.
  void recycle(Stream& stream);

 private:
  // The task will not run.
  void drop(const FrontTask& front);
  // Takes the task from the queue: it has run, failed, or will not run.
  void finish(const FrontTask& front);
  TaskStep step(const FrontTask& front, const RunLimits& limits);
  Result<TaskStep> step_by_kind(const FrontTask& front);
  // Functions of the program.
  TaskStep call_host_function(const FrontTask& front);
  TaskStep send_report(const FrontTask& front);

  // When a task has failed; `fail` alone when it failed before and is told of by another thread.
  TaskStep fail_first(const FrontTask& front, const Error& cause, const RunLimits& limits);
  TaskStep fail(const FrontTask& front, const Error& error, const RunLimits& limits);
  void announce(const FrontTask& front, const Error& error);
  void keep_failure(Stream& stream, const Error& error);
  void stop_context(const Stream& failed, const Error& error);

  StreamRegistry& registry_;
  RunQueue& run_queue_;
  WaitGraph& wait_graph_;
  Reports& reports_;
  MemoryTasks memory_tasks_;
  WaitTasks wait_tasks_;
};

}  // namespace understudy
