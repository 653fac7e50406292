// SPDX-License-Identifier: Apache-2.0
//
// What a worker thread does: it takes a stream from the run queue and runs its tasks until there
// are none, or others want the thread; helps with large copies; and wakes parked streams whose time
// has come. The run queue starts and ends the threads.
//
// A template, so that its decisions are tested without real tasks.
#pragma once

#include "base/forced_unwind.h"
#include "stream/run_queue.h"
#include "stream/task_runner.h"
#include "stream/wait_graph.h"

namespace understudy {

template <typename Runner, typename Parked>
class BasicWorkers {
 public:
  BasicWorkers(RunQueue& run_queue, Parked& parked, Runner& runner)
      : run_queue_(run_queue), parked_(parked), runner_(runner) {}

  // What a worker thread runs; its argument is this object, which it does not touch any more once
  // the run queue has told it to end.
  US_CATCHES_FORCED_UNWIND static void work(void* workers) {
    auto& self = *static_cast<BasicWorkers*>(workers);
    auto seen = RunQueue::Seen::kNothing;
    while (true) {
      const Work work = self.run_queue_.next(seen);
      switch (work.kind) {
        case Work::Kind::kStream:
          try {
            seen = self.serve(*work.stream);
          } catch (const ForcedUnwind&) {  // a function of the program ended the thread
            self.run_queue_.leave(*work.stream);
            throw;
          }
          break;
        case Work::Kind::kItem:
          work.item->work(work.item->argument);
          self.run_queue_.finish(*work.item);
          seen = RunQueue::Seen::kSome;
          break;
        case Work::Kind::kAlarm:
          self.parked_.wake_due();
          break;
        case Work::Kind::kEnd:
          return;
      }
    }
  }

 private:
  // One task, where a schedule decides what runs next.
  RunQueue::Seen serve_once(Stream& stream) {
    const RunEnd end = runner_.run(stream, RunLimits{.most_tasks = 1});
    const bool is_gone =
        end == RunEnd::kParked || (end == RunEnd::kEmpty && runner_.release(stream));
    if (!is_gone) run_queue_.hand_over(stream, RunQueue::Successor::kAnyone);
    run_queue_.end_turn();
    return RunQueue::Seen::kSome;
  }

  RunQueue::Seen serve(Stream& stream) {
    if (run_queue_.is_scheduled()) [[unlikely]]
      return serve_once(stream);
    constexpr unsigned kTurn = 64;
    while (true) {
      const RunEnd end = runner_.run(stream, RunLimits{.most_tasks = kTurn});
      if (has_passed(run_queue_.alarm())) parked_.wake_due();
      switch (end) {
        case RunEnd::kParked:
          return RunQueue::Seen::kSome;
        case RunEnd::kEmpty:
          if (!run_queue_.linger(stream) && runner_.release(stream)) {
            return RunQueue::Seen::kNothing;
          }
          run_queue_.call_if_needed();  // others relied on this worker, which has work again
          break;
        case RunEnd::kReached:
        case RunEnd::kForOther:
        case RunEnd::kTurnOver:
          if (!run_queue_.has_work()) break;
          run_queue_.hand_over(stream, RunQueue::Successor::kAnyone);
          return RunQueue::Seen::kSome;
      }
    }
  }

  RunQueue& run_queue_;
  Parked& parked_;
  Runner& runner_;
};

using Workers = BasicWorkers<TaskRunner, WaitGraph>;

}  // namespace understudy
