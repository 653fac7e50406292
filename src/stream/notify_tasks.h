// SPDX-License-Identifier: Apache-2.0
//
// What tasks do to notifies when they run. The task is a user of its notify.
#pragma once

#include <cstdint>

#include "stream/notify.h"
#include "stream/wait_graph.h"

namespace understudy {

// Changes the number, and lets streams and processes that wait for it look again.
void change_notify(Notify& notify, NotifyChange change, WaitGraph& wait_graph);

// What came of looking at a notify.
struct NotifyLook {
  bool is_over = false;                // the condition holds, and was acted on
  SharedNotifyLink* shared = nullptr;  // that was looked at, if processes share it
  uint32_t seen = 0;                   // how often it, or this process, was told of changes before
};
NotifyLook look_at_notify(Notify& notify, const NotifyCondition& condition);

}  // namespace understudy
