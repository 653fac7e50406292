// SPDX-License-Identifier: Apache-2.0
//
// Which uses of memory come behind which, as order.h explains it: the clocks of the streams, what
// the program knows to be done, and what was used. Finds pairs that conflict and are in no order.
//
// The caller serializes calls. Functions may throw std::bad_alloc, and may have made a part of
// their change then: no more of them are to be called.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "observe/access_map.h"
#include "observe/endless_wait.h"
#include "observe/ordered_stream.h"
#include "observe/queued_task.h"
#include "observe/stream_clock.h"

namespace understudy {

// Two uses of the same bytes that are in no order, the second by a task.
struct TaskDisorder {
  TaskAccess first;
  TaskAccess second;
};

class OrderRelation {
 public:
  void add_task(uint32_t stream, QueuedTask task);
  void put_behind(uint32_t stream, uint64_t last_queued, StreamTask behind);
  void put_behind_all(uint32_t stream, uint64_t last_queued);
  // Memory ends behind the task at the end's position, which may be done.
  void add_end(uint32_t stream, QueuedTask end, std::vector<TaskDisorder>& found);
  // It is done, or will never run.
  void know(StreamTask task);
  void know_all();
  // What conflicts with a use by a call, among what is queued and what is done.
  std::optional<TaskAccess> find_conflict(const MemoryUse& what) const;
  void forget(VirtualRange range) { accesses_.forget(range); }
  // What keeps the task from ever being done, if the program does nothing more.
  std::optional<EndlessWait> find_endless_wait(StreamTask task) const;

  void record(StreamTask record);
  void wait(uint32_t stream, StreamTask record);
  void wait_for_others(uint32_t stream);
  void change_notify(StreamTask task, uint32_t notify);
  // Other processes may set it from now on.
  void share_notify(uint32_t notify) { notifies_[notify].may_be_set_by_others = true; }
  void wait_for_notify(uint32_t stream, uint32_t notify);
  // The program may look at what the task does.
  void tell(StreamTask task);
  void begin_function(StreamTask task);
  void end_function();
  // The stream goes on behind what the program knows.
  void go_on(uint32_t stream);
  // The task uses ranges; each conflict with an earlier use is added to `found`.
  void use(StreamTask task, std::span<const MemoryUse> uses, const ProgramPlace& place,
           std::vector<TaskDisorder>& found);
  // A queued task ends the memory that it uses, which has no past then.
  void end_memory(StreamTask task, std::vector<TaskDisorder>& found);
  // It leaves the queue; nothing if it is not there.
  std::optional<QueuedTask> end_task(StreamTask task);
  // Memory that ends behind the task, which has left the queue, ends.
  void make_ends(StreamTask task, std::vector<TaskDisorder>& found);
  // Where the task was queued, while it is.
  ProgramPlace place_of(StreamTask task) const;

 private:
  void know(const StreamClock& clock);
  // Whether a queued task can run without another call of the program. What it waits for is
  // followed for some steps, and every task on the way is looked at once.
  using Positions = std::map<uint32_t, uint64_t>;  // of streams
  bool runs_by_itself(StreamTask task) const;
  bool runs_by_itself(StreamTask task, unsigned steps, Positions& looked_at) const;
  // Where all streams are. A task that has begun may have shown what it does.
  StreamClock everything() const;
  // Tasks that were queued before the end of their memory was, and that it does not wait for. They
  // do not use it any more, so that each is told once.
  void find_overtaken(uint32_t stream, const QueuedTask& end, std::vector<TaskDisorder>& found);
  std::optional<TaskAccess> find_queued(const MemoryUse& what) const;

  ClockSnapshot known_ = std::make_shared<const StreamClock>();
  std::map<uint32_t, OrderedStream> streams_;
  std::map<uint32_t, OrderedNotify> notifies_;
  AccessMap accesses_;
  unsigned functions_running_ = 0;
  uint64_t calls_ = 0;
};

}  // namespace understudy
