// SPDX-License-Identifier: Apache-2.0
#include "stream/wait_tasks.h"

#include <algorithm>

#include "stream/event_tasks.h"
#include "stream/notify_tasks.h"
#include "stream/shared_event_link.h"
#include "stream/shared_notify_link.h"
#include "stream/task_uses.h"

namespace understudy {

namespace {

bool holds(ValueCondition condition, uint64_t memory, uint64_t value) {
  switch (condition) {
    case ValueCondition::kAtLeast:
      return static_cast<int64_t>(memory - value) >= 0;
    case ValueCondition::kEqual:
      return memory == value;
    case ValueCondition::kAnyBitSet:
      return (memory & value) != 0;
    case ValueCondition::kAnyBitOff:
      return ~(memory | value) != 0;
  }
  return true;
}

// When to look again at memory that may change without a call of this process: in growing steps,
// and the less often the more streams wait for some. Long steps end at common moments, so that many
// streams are woken at a time.
Deadline next_look(uint32_t looks, uint32_t streams) {
  constexpr std::chrono::microseconds kFirst(20);
  constexpr uint32_t kDoublings = 8;  // up to 5 ms
  constexpr std::chrono::microseconds kForEachStream(50);
  constexpr Clock::duration kTick = std::chrono::milliseconds(1);
  const Clock::duration step =
      std::max(kFirst * (1U << std::min(looks, kDoublings)), kForEachStream * streams);
  const Deadline moment = Clock::now() + step;
  return step < kTick ? moment : moment + (kTick - moment.time_since_epoch() % kTick);
}

// The same where a thread listens to other processes. One of them may die before it rings.
Deadline next_look_when_listening() { return Clock::now() + std::chrono::milliseconds(100); }

// When a wait that begins now is to end.
Deadline end_of_wait(uint32_t limit_seconds) {
  return limit_seconds == 0 ? kNever : deadline_after(std::chrono::seconds(limit_seconds));
}

Error no_notify_within(const NotifyWaitTask& wait) {
  const bool is_counting = wait.notify->family.load() == NotifyFamily::kCounting;
  return Error::format(is_counting ? ErrorCode::kWaitTimeout : ErrorCode::kTaskTimeout,
                       "notify %u was not %s within %u seconds", wait.notify->index,
                       is_counting ? "as wanted" : "recorded", wait.limit_seconds);
}

// What another process, the CPU or any copy may have brought about.
void note_waited_for_others(const FrontTask& front) {
  if (is_order_checked()) [[unlikely]]
    Order::note_waited_for_others(front.stream.index);
}

Error no_event_within(uint32_t seconds) {
  return Error::format(ErrorCode::kTaskTimeout, "no event came within %u seconds", seconds);
}

}  // namespace

Result<TaskStep> WaitTasks::wait_for_record(const FrontTask& front) {
  Stream& stream = front.stream;
  WaitTask& wait = front.task.wait;
  if (!wait.has_begun) {
    wait.has_begun = true;
    wait.deadline = end_of_wait(wait.limit_seconds);
  }
  if (wait.stream == nullptr && !bind(wait)) return TaskStep::kDone;
  const bool is_over = wait.stream != nullptr && wait.stream->is_done(wait.position);
  if (is_over || front.is_stopped()) {
    if (is_over && is_order_checked()) [[unlikely]]
      Order::note_waited(stream.index, task_at(*wait.stream, wait.position));
    end_wait(wait);
    return TaskStep::kDone;
  }
  if (has_passed(wait.deadline)) {
    end_wait(wait);
    return no_event_within(wait.limit_seconds);
  }
  const bool parked =
      wait.stream != nullptr
          ? wait_graph_.park_until_done(stream, *wait.stream, wait.position, wait.deadline)
          : wait_graph_.park_until_recorded(stream, wait.moment, wait.deadline);
  return parked ? TaskStep::kParked : TaskStep::kAgain;
}

Result<TaskStep> WaitTasks::wait_for_shared(const FrontTask& front) {
  SharedWaitTask& wait = front.task.shared_wait;
  if (!wait.has_begun) {
    wait.has_begun = true;
    wait.deadline = end_of_wait(wait.limit_seconds);
  }
  const RecordState state = wait.shared->state(wait.record);
  if (state == RecordState::kReached || front.is_stopped()) {
    note_waited_for_others(front);
    return TaskStep::kDone;
  }
  if (state != RecordState::kPending) return record_lost();
  if (has_passed(wait.deadline)) return no_event_within(wait.limit_seconds);
  const Deadline look = next_look(wait.looks++, wait_graph_.value_waiters());
  return wait_graph_.park_until_written(front.stream, std::min(look, wait.deadline))
             ? TaskStep::kParked
             : TaskStep::kAgain;
}

Result<TaskStep> WaitTasks::wait_for_notify(const FrontTask& front) {
  NotifyWaitTask& wait = front.task.notify_wait;
  if (!wait.has_begun) {
    wait.has_begun = true;
    wait.deadline = end_of_wait(wait.limit_seconds);
  }
  if (front.is_stopped()) return TaskStep::kDone;
  Notify& notify = *wait.notify;
  const NotifyLook look = look_at_notify(notify, wait.condition);
  if (look.is_over) {
    if (look.shared != nullptr) {
      note_waited_for_others(front);
    } else if (is_order_checked()) [[unlikely]] {
      Order::note_notify_waited(front.stream.index, notify.index);
    }
    return TaskStep::kDone;
  }
  if (has_passed(wait.deadline)) return no_notify_within(wait);
  bool is_parked = false;
  if (look.shared == nullptr) {
    is_parked = wait_graph_.park_until_changed(front.stream, notify.waits, notify.changes,
                                               look.seen, wait.deadline);
  } else {
    const Deadline again = look.shared->is_listening()
                               ? next_look_when_listening()
                               : next_look(wait.looks++, wait_graph_.value_waiters());
    is_parked = wait_graph_.park_until_rung(front.stream, look.shared->rings(), look.seen,
                                            std::min(again, wait.deadline));
  }
  return is_parked ? TaskStep::kParked : TaskStep::kAgain;
}

Result<TaskStep> WaitTasks::wait_for_value(const FrontTask& front) {
  ValueTask& value = front.task.value;
  uint64_t memory = 0;
  US_TRY(transfer_.copy(to_address(&memory), value.address, sizeof memory, front.task.device,
                        {.sides = Sides::kToHost, .is_look = true}));
  if (holds(value.condition, memory, value.value) || front.is_stopped()) {
    note_waited_for_others(front);
    return TaskStep::kDone;
  }
  const Deadline look = next_look(value.looks++, wait_graph_.value_waiters());
  return wait_graph_.park_until_written(front.stream, look) ? TaskStep::kParked : TaskStep::kAgain;
}

}  // namespace understudy
