// SPDX-License-Identifier: Apache-2.0
//
// Waits that cannot end: a stream waits for a notify, and nothing that is queued can set it,
// because no task does, or only tasks that wait for this one in turn. Events cannot do that: a wait
// for one is over, or comes behind a record that was queued before it.
//
// Silent in doubt: a queued function of the program, or a wait for what others may bring about, may
// change anything.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "observe/ordered_stream.h"
#include "observe/queued_task.h"
#include "observe/stream_clock.h"

namespace understudy {

// What is known of a notify.
struct OrderedNotify {
  StreamClock clock;  // of the tasks that changed it
  bool may_be_set = false;
  bool may_be_set_by_others = false;
};

struct EndlessWait {
  StreamTask task;
  uint32_t notify = 0;
  ProgramPlace place;  // that queued it
};

// One search. May throw std::bad_alloc.
class EndlessWaitSearch {
 public:
  EndlessWaitSearch(const std::map<uint32_t, OrderedStream>& streams,
                    const std::map<uint32_t, OrderedNotify>& notifies)
      : streams_(streams), notifies_(notifies) {}

  // The wait that keeps the task, or one before it on its stream, from ever being done.
  std::optional<EndlessWait> find(StreamTask task);

 private:
  bool ends(StreamTask task);
  // Whether some queued task that can run sets the notify for which `wait` waits.
  bool is_set_in_time(StreamTask wait, uint32_t notify);

  const std::map<uint32_t, OrderedStream>& streams_;
  const std::map<uint32_t, OrderedNotify>& notifies_;
  std::map<uint32_t, uint64_t> known_to_end_;  // stream: position
  std::vector<StreamTask> on_the_way_;         // waits that are assumed not to end
  std::optional<EndlessWait> last_;            // wait that was found not to end
};

}  // namespace understudy
