// SPDX-License-Identifier: Apache-2.0
//
// Runs the tasks of a stream, for the thread that owns it. What a task names is looked up now, and
// kept while its bytes move; if it is gone, the task fails, and the stream remembers why.
#pragma once

#include <cstdint>

#include "memory/host_memory.h"
#include "memory/transfer.h"
#include "stream/reports.h"
#include "stream/scheduler.h"
#include "stream/stream.h"
#include "stream/task.h"
#include "stream/waiting.h"

namespace understudy {

struct RunLimits {
  uint64_t until = kNoPosition;  // the last task to run
  unsigned most_tasks = 0;       // 0: all
  // A thread that waits runs no function of the program, and with a limit of time nothing long.
  bool may_call_users = true;
  bool may_take_long = true;
};

class TaskRunner {
 public:
  TaskRunner(StreamPool& streams, Transfer& transfer, HostMemory& host, Waiting& waiting,
             Scheduler& scheduler, Reports& reports)
      : streams_(streams),
        transfer_(transfer),
        host_(host),
        waiting_(waiting),
        scheduler_(scheduler),
        reports_(reports) {}

  // REQUIRES: the caller owns the stream. It does no longer if kParked is returned.
  RunEnd run(Stream& stream, const RunLimits& limits);

 private:
  // What came of looking at the task in front.
  enum class Step : uint8_t { kDone, kAgain, kForOther, kParked };
  struct Front {
    Stream& stream;
    Task& task;
    uint64_t position;
  };

  // The task will not run.
  void drop(const Front& front);
  Step step(const Front& front, const RunLimits& limits);
  Result<Step> step_by_kind(const Front& front);
  // Tasks that move bytes: they run to their end.
  Result<void> perform(const Front& front);
  Result<void> copy(const Copy& copy, unsigned device, const Conduct& conduct);
  Result<void> copy_rows(const PlaneCopy& rows, unsigned device, const Conduct& conduct);
  Result<void> keep_host_side(VirtualRange range, HazardPin& pin);
  // Tasks that wait.
  Result<Step> wait_for_record(const Front& front);
  Result<Step> wait_for_shared(const Front& front);
  Result<Step> wait_for_value(const Front& front);
  // Functions of the program.
  Step call_host_function(const Front& front);
  Step send_report(const Front& front);

  Step fail(const Front& front, const Error& error, const RunLimits& limits);
  void announce(const Front& front, const Error& error);
  void stop_context(Stream& failed, const Error& error);

  StreamPool& streams_;
  Transfer& transfer_;
  HostMemory& host_;
  Waiting& waiting_;
  Scheduler& scheduler_;
  Reports& reports_;
};

}  // namespace understudy
