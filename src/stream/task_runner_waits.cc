// SPDX-License-Identifier: Apache-2.0
//
// Tasks that wait: for a record of an event, here or in another process, and for values in memory.
#include <algorithm>

#include "stream/event_tasks.h"
#include "stream/shared_event_link.h"
#include "stream/task_runner.h"

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

Error no_event_within(uint32_t seconds) {
  return Error::format(ErrorCode::kTaskTimeout, "no event came within %u seconds", seconds);
}

}  // namespace

Result<TaskRunner::Step> TaskRunner::wait_for_record(const Front& front) {
  Stream& stream = front.stream;
  WaitTask& wait = front.task.wait;
  if (!wait.has_begun) {
    wait.has_begun = true;
    wait.deadline =
        wait.limit_seconds == 0 ? kNever : deadline_after(std::chrono::seconds(wait.limit_seconds));
  }
  if (wait.stream == nullptr && !bind(wait)) return Step::kDone;
  const bool is_over = wait.stream != nullptr && wait.stream->is_done(wait.position);
  if (is_over || stream.stops(front.position)) {
    end_wait(wait);
    return Step::kDone;
  }
  if (has_passed(wait.deadline)) {
    end_wait(wait);
    return no_event_within(wait.limit_seconds);
  }
  const bool parked =
      wait.stream != nullptr
          ? waiting_.park_until_done(stream, *wait.stream, wait.position, wait.deadline)
          : waiting_.park_until_recorded(stream, wait.moment, wait.deadline);
  return parked ? Step::kParked : Step::kAgain;
}

Result<TaskRunner::Step> TaskRunner::wait_for_shared(const Front& front) {
  SharedWaitTask& wait = front.task.shared_wait;
  if (!wait.has_begun) {
    wait.has_begun = true;
    wait.deadline =
        wait.limit_seconds == 0 ? kNever : deadline_after(std::chrono::seconds(wait.limit_seconds));
  }
  const RecordState state = wait.shared->state(wait.record);
  if (state == RecordState::kReached || front.stream.stops(front.position)) return Step::kDone;
  if (state != RecordState::kPending) return record_lost();
  if (has_passed(wait.deadline)) return no_event_within(wait.limit_seconds);
  const Deadline look = next_look(wait.looks++, waiting_.value_waiters());
  return waiting_.park_until_written(front.stream, std::min(look, wait.deadline)) ? Step::kParked
                                                                                  : Step::kAgain;
}

Result<TaskRunner::Step> TaskRunner::wait_for_value(const Front& front) {
  ValueTask& value = front.task.value;
  uint64_t memory = 0;
  US_TRY(transfer_.copy(to_address(&memory), value.address, sizeof memory, front.task.device,
                        {Sides::kToHost}));
  if (holds(value.condition, memory, value.value) || front.stream.stops(front.position)) {
    return Step::kDone;
  }
  const Deadline look = next_look(value.looks++, waiting_.value_waiters());
  return waiting_.park_until_written(front.stream, look) ? Step::kParked : Step::kAgain;
}

}  // namespace understudy
