// SPDX-License-Identifier: Apache-2.0
#include "stream/event_tasks.h"

#include "stream/event.h"
#include "stream/shared_event_link.h"

namespace understudy {

namespace {

// One task less that waits for a record which was yet to come.
void leave_unbound_locked(Event& event) US_REQUIRES(event.mutex) {
  if (--event.unbound_tasks == 0) event.awaited_records.clear();
}

}  // namespace

void release_shared_event(Task& task) {
  if (task.kind == TaskKind::kWaitForShared) {
    task.shared_wait.shared->drop_user();
  } else if (task.record.shared != nullptr) {
    // Reached, or dropped, which ends it as well: threads and streams that wait for it go on.
    task.record.shared->reach(task.record.shared_record);
    task.record.shared->drop_user();
  }
}

void reach_record(const EventMoment& moment) {
  Event& event = *moment.event;
  if (!event.has_time.load(std::memory_order_relaxed)) return;
  MutexLock lock(event.mutex);
  if (event.state.load() != moment.state || event.sequence.load() != moment.sequence) return;
  event.time = Clock::now();
  event.time_sequence = moment.sequence;
}

void reset_event(const EventMoment& moment) {
  Event& event = *moment.event;
  MutexLock lock(event.mutex);
  if (event.state.load() == moment.state && event.sequence.load() == moment.sequence) {
    event.record.reset();
  }
}

bool bind(WaitTask& wait) {
  Event& event = *wait.moment.event;
  MutexLock lock(event.mutex);
  if (event.state.load() != wait.moment.state) return false;
  for (const NumberedRecord& each : event.awaited_records) {
    if (each.sequence <= wait.moment.sequence) continue;
    wait.stream = each.record.stream;
    wait.position = each.record.position;
    leave_unbound_locked(event);
    return true;
  }
  return true;
}

void end_wait(const WaitTask& wait) {
  const bool is_unbound = wait.stream == nullptr;
  if (!wait.is_counted && !is_unbound) return;
  Event& event = *wait.moment.event;
  MutexLock lock(event.mutex);
  if (event.state.load() != wait.moment.state) return;
  if (wait.is_counted) --event.queued_waits;
  if (is_unbound) leave_unbound_locked(event);
}

}  // namespace understudy
