// SPDX-License-Identifier: Apache-2.0
//
// Tasks that wait: for a record of an event, here or in another process, for a notify, and for
// values in memory.
// Each looks whether its wait is over, and else parks the stream. The owner of the stream calls.
#pragma once

#include "base/result.h"
#include "memory/transfer.h"
#include "stream/front_task.h"
#include "stream/wait_graph.h"

namespace understudy {

class WaitTasks {
 public:
  WaitTasks(WaitGraph& wait_graph, Transfer& transfer)
      : wait_graph_(wait_graph), transfer_(transfer) {}

  Result<TaskStep> wait_for_record(const FrontTask& front);
  Result<TaskStep> wait_for_shared(const FrontTask& front);
  Result<TaskStep> wait_for_notify(const FrontTask& front);
  Result<TaskStep> wait_for_value(const FrontTask& front);

 private:
  WaitGraph& wait_graph_;
  Transfer& transfer_;
};

}  // namespace understudy
