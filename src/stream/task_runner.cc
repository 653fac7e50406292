// SPDX-License-Identifier: Apache-2.0
#include "stream/task_runner.h"

#include <algorithm>
#include <cinttypes>
#include <exception>
#include <new>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "stream/task_failure.h"

namespace understudy {

namespace {

// What a thread with a limit of time may still do itself.
constexpr uint64_t kShortCopy = kMiB;
// A longer copy is done in slices, so that it can be stopped.
constexpr uint64_t kSlice = 64 * kMiB;

bool calls_user(TaskKind kind) { return kind == TaskKind::kHostFunction; }

bool takes_long(const Task& task) {
  switch (task.kind) {
    case TaskKind::kCopy:
      return task.copy.count > kShortCopy;
    case TaskKind::kCopyRows:
      return task.rows.width * task.rows.height > kShortCopy;
    case TaskKind::kCopyCaptured:
      return task.captured.count > kShortCopy;
    case TaskKind::kCopyList:
      return true;
    case TaskKind::kSet:
    case TaskKind::kSetWords:
      return task.fill.count > kShortCopy;
    default:
      return false;
  }
}

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

// Memory that changes without a task of this process is looked at in growing steps.
Clock::duration time_to_next_look(uint32_t looks) {
  constexpr auto kFirst = std::chrono::microseconds(20);
  constexpr uint32_t kDoublings = 6;  // up to 1.28 ms
  return kFirst * (1U << std::min(looks, kDoublings));
}

// Faults of the memory that a task names are faults of the device; running out of it is not.
Error as_task_failure(const Stream& stream, uint64_t position, const Error& error) {
  const bool memory_fault =
      error.code() == ErrorCode::kRefused || error.code() == ErrorCode::kNoPermission ||
      error.code() == ErrorCode::kNotSupported || error.code() == ErrorCode::kInvalidMemoryType;
  return Error::format(memory_fault ? ErrorCode::kCopyFault : error.code(),
                       "task %" PRIu64 " of stream %u failed: %s", position, stream.index,
                       error.text());
}

bool is_dropped(const Stream& stream, uint64_t position) {
  return position <= stream.drop_until.load(std::memory_order_acquire);
}
bool is_stopped(const Stream& stream, uint64_t position) {
  return position == stream.stop_at.load(std::memory_order_acquire);
}

void end_wait(const WaitTask& wait) {
  if (!wait.is_counted) return;
  Event& event = *wait.moment.event;
  MutexLock lock(event.mutex);
  if (event.state.load() == wait.moment.state) event.queued_waits.fetch_sub(1);
}

}  // namespace

RunEnd TaskRunner::run(Stream& stream, const RunLimits& limits) {
  for (unsigned tasks = 0;; ++tasks) {
    const uint64_t done = stream.completed.load(std::memory_order_relaxed);
    if (done >= limits.until) return RunEnd::kReached;
    if (done == stream.submitted.load(std::memory_order_acquire)) return RunEnd::kEmpty;
    if (tasks == limits.most_tasks && limits.most_tasks != 0) return RunEnd::kTurnOver;
    const Front front{stream, stream.queue.front(), done + 1};
    // A failure that someone wants to hear of is told even if the rest is dropped.
    if (is_dropped(stream, front.position) && !stream.unannounced) {
      if (front.task.kind == TaskKind::kWaitForRecord) end_wait(front.task.wait);
    } else {
      const Step step = this->step(front, limits);
      if (step == Step::kAgain) continue;
      if (step == Step::kForOther) return RunEnd::kForOther;
      if (step == Step::kParked) return RunEnd::kParked;
    }
    release_payload(front.task);
    stream.queue.pop();
    // Whoever waits in a list was there before, or sees this; see Waiting.
    stream.completed.store(front.position);
    waiting_.note_progress(stream);
  }
}

TaskRunner::Step TaskRunner::step(const Front& front, const RunLimits& limits) {
  Stream& stream = front.stream;
  if (stream.unannounced) {
    if (!limits.may_call_users) return Step::kForOther;
    announce(front, *stream.unannounced);
    stream.unannounced.reset();
    return Step::kDone;
  }
  if ((!limits.may_call_users && calls_user(front.task.kind)) ||
      (!limits.may_take_long && takes_long(front.task))) {
    return Step::kForOther;
  }
  try {
    const Result<Step> result = step_by_kind(front);
    if (result.ok()) [[likely]]
      return result.value();
    return fail(front, as_task_failure(stream, front.position, result.error()), limits);
  } catch (const std::bad_alloc&) {
    const Error error = Error::format(ErrorCode::kOutOfMemory, "the host has no memory left");
    return fail(front, as_task_failure(stream, front.position, error), limits);
  }
}

Result<TaskRunner::Step> TaskRunner::step_by_kind(const Front& front) {
  switch (front.task.kind) {
    case TaskKind::kRecord:
      reach_record(front.task.moment);
      return Step::kDone;
    case TaskKind::kResetEvent:
      reset_event(front.task.moment);
      return Step::kDone;
    case TaskKind::kWaitForRecord:
      return wait_for_record(front);
    case TaskKind::kWaitForValue:
      return wait_for_value(front);
    case TaskKind::kHostFunction:
      return call_host_function(front);
    case TaskKind::kReport:
      return send_report(front);
    default:
      US_TRY(perform(front));
      waiting_.note_write();
      return Step::kDone;
  }
}

// ---- Bytes ----

Result<void> TaskRunner::perform(const Front& front) {
  const Task& task = front.task;
  switch (task.kind) {
    case TaskKind::kCopy:
      return copy(front, task.copy, task.host_side);
    case TaskKind::kCopyRows:
      return copy_rows(task);
    case TaskKind::kCopyList:
      for (const ListedCopy& each : *task.list) US_TRY(copy(front, each.copy, each.host_side));
      return {};
    case TaskKind::kCopyCaptured:
      return transfer_.copy(task.captured.to, to_address(task.captured.bytes), task.captured.count,
                            task.device, Timing::kQueued);
    case TaskKind::kSet:
      return transfer_.set(task.fill.to, static_cast<uint8_t>(task.fill.value), task.fill.count,
                           task.device);
    case TaskKind::kSetWords:
      return transfer_.set_words(task.fill.to, task.fill.value, task.fill.count, task.device);
    case TaskKind::kWriteValue:
      return transfer_.copy(task.value.address, to_address(&task.value.value),
                            sizeof task.value.value, task.device, Timing::kQueued);
    default:
      return {};
  }
}

Result<void> TaskRunner::keep_host_side(VirtualRange range, HazardPin& pin) {
  if (host_.pin(range, pin)) return {};
  return Error::format(ErrorCode::kRefused, "%s at %p are not page-locked host memory any more",
                       SizeText(range.size).c_str(), to_pointer(range.base));
}

Result<void> TaskRunner::copy(const Front& front, const Copy& copy, HostSide host_side) {
  if (host_side == HostSide::kNone) return copy_in_slices(front, copy);
  HazardPin pin;
  const VirtualAddress host = host_side == HostSide::kSource ? copy.from : copy.to;
  US_TRY(keep_host_side({host, copy.count}, pin));
  return copy_in_slices(front, copy);
}

Result<void> TaskRunner::copy_in_slices(const Front& front, const Copy& copy) {
  const unsigned device = front.task.device;
  const bool overlaps = copy.to - copy.from < copy.count || copy.from - copy.to < copy.count;
  if (copy.count <= kSlice || overlaps) {
    return transfer_.copy(copy.to, copy.from, copy.count, device, Timing::kQueued);
  }
  US_TRY(transfer_.check_copy(copy.to, copy.from, copy.count, device, Timing::kQueued));
  for (uint64_t done = 0; done < copy.count; done += kSlice) {
    if (is_dropped(front.stream, front.position)) return {};
    if (is_stopped(front.stream, front.position)) {
      return Error::format(ErrorCode::kStreamAborted, "stopped after %s of %s",
                           SizeText(done).c_str(), SizeText(copy.count).c_str());
    }
    US_TRY(transfer_.copy(copy.to + done, copy.from + done, std::min(kSlice, copy.count - done),
                          device, Timing::kQueued));
  }
  return {};
}

Result<void> TaskRunner::copy_rows(const Task& task) {
  const PlaneCopy& rows = task.rows;
  HazardPin pin;
  if (task.host_side != HostSide::kNone) {
    const bool source = task.host_side == HostSide::kSource;
    const uint64_t pitch = source ? rows.from_pitch : rows.to_pitch;
    uint64_t extent = 0;
    if (__builtin_mul_overflow(pitch, rows.height - 1, &extent) ||
        __builtin_add_overflow(extent, rows.width, &extent)) {
      return Error::format(ErrorCode::kRefused, "the rows run past the end of all addresses");
    }
    US_TRY(keep_host_side({source ? rows.from : rows.to, extent}, pin));
  }
  return transfer_.copy_rows(rows, task.device, Timing::kQueued);
}

// ---- Events ----

void TaskRunner::reach_record(const EventMoment& moment) {
  Event& event = *moment.event;
  if (!event.has_time.load(std::memory_order_relaxed)) return;
  MutexLock lock(event.mutex);
  if (event.state.load() != moment.state || event.sequence.load() != moment.sequence) return;
  event.time = Clock::now();
  event.time_sequence = moment.sequence;
}

void TaskRunner::reset_event(const EventMoment& moment) {
  Event& event = *moment.event;
  MutexLock lock(event.mutex);
  if (event.state.load() == moment.state && event.sequence.load() == moment.sequence) {
    event.record.reset();
  }
}

namespace {

// What a wait for a record that was yet to come waits for now; nothing if the event has ended.
// The record is null as long as there is none.
std::optional<Record> record_after(const EventMoment& moment) {
  Event& event = *moment.event;
  MutexLock lock(event.mutex);
  if (event.state.load() != moment.state) return std::nullopt;
  if (event.sequence.load() == moment.sequence) return Record{};
  return event.record;
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
  if (wait.stream == nullptr) {
    const std::optional<Record> record = record_after(wait.moment);
    if (!record) {
      end_wait(wait);
      return Step::kDone;
    }
    wait.stream = record->stream;
    wait.position = record->position;
  }
  const bool is_over = wait.stream != nullptr && wait.stream->is_done(wait.position);
  if (is_over || is_stopped(stream, front.position)) {
    end_wait(wait);
    return Step::kDone;
  }
  if (has_passed(wait.deadline)) {
    end_wait(wait);
    return Error::format(ErrorCode::kTaskTimeout, "no event came within %u seconds",
                         wait.limit_seconds);
  }
  const bool parked =
      wait.stream != nullptr
          ? waiting_.park_until_done(stream, *wait.stream, wait.position, wait.deadline)
          : waiting_.park_until_recorded(stream, wait.moment, wait.deadline);
  return parked ? Step::kParked : Step::kAgain;
}

Result<TaskRunner::Step> TaskRunner::wait_for_value(const Front& front) {
  ValueTask& value = front.task.value;
  uint64_t memory = 0;
  US_TRY(transfer_.copy(to_address(&memory), value.address, sizeof memory, front.task.device,
                        Timing::kQueued));
  if (holds(value.condition, memory, value.value) || is_stopped(front.stream, front.position)) {
    return Step::kDone;
  }
  const Deadline next_look = Clock::now() + time_to_next_look(value.looks++);
  return waiting_.park_until_written(front.stream, next_look) ? Step::kParked : Step::kAgain;
}

// ---- Functions of the program ----

namespace {

Error thrown_by_user(const Stream& stream, uint64_t position, const char* what) {
  return Error::format(ErrorCode::kInternal,
                       "task %" PRIu64 " of stream %u is a host function that threw: %s", position,
                       stream.index, what);
}

}  // namespace

TaskRunner::Step TaskRunner::call_host_function(const Front& front) {
  Stream& stream = front.stream;
  stream.in_user_code.store(true);
  scheduler_.begin_user_code();
  ScopeExit leave([&] {
    scheduler_.end_user_code();
    stream.in_user_code.store(false);
  });
  const UserFunction user = front.task.user;
  try {
    user.function(user.argument);
  } catch (const std::exception& exception) {
    note_failure(stream, thrown_by_user(stream, front.position, exception.what()),
                 FailureLife::kUntilTaken);
  } catch (...) {
    note_failure(stream, thrown_by_user(stream, front.position, "no exception"),
                 FailureLife::kUntilTaken);
  }
  return Step::kDone;
}

TaskRunner::Step TaskRunner::send_report(const Front& front) {
  Stream& stream = front.stream;
  const UserFunction& callback = front.task.user;
  if (stream.reported != front.position) {
    stream.reported = front.position;
    if (!reports_.send(stream, front.position, callback)) {
      note_failure(stream,
                   Error::format(ErrorCode::kNoCallbackThread,
                                 "task %" PRIu64 " of stream %u is a callback and no thread is "
                                 "subscribed to the stream",
                                 front.position, stream.index),
                   FailureLife::kUntilTaken);
      return Step::kDone;
    }
  }
  if (!callback.blocks || stream.answered.load() >= front.position ||
      is_stopped(stream, front.position)) {
    return Step::kDone;
  }
  return waiting_.park_until_answered(stream) ? Step::kParked : Step::kAgain;
}

// ---- Failures ----

TaskRunner::Step TaskRunner::fail(const Front& front, const Error& error, const RunLimits& limits) {
  Stream& stream = front.stream;
  if (stream.stops_on_failure.load()) {
    stop_context(stream, error);
  } else {
    note_failure(stream, error, FailureLife::kUntilTaken);
  }
  if (failure_observer() == nullptr) return Step::kDone;
  if (!limits.may_call_users) {
    // The task stays in front, done but for that, until a worker comes.
    stream.unannounced = error;
    return Step::kForOther;
  }
  announce(front, error);
  return Step::kDone;
}

void TaskRunner::announce(const Front& front, const Error& error) {
  const FailureObserver observer = failure_observer();
  if (observer == nullptr) return;
  front.stream.in_user_code.store(true);
  scheduler_.begin_user_code();
  observer({front.stream.device.load(), front.stream.index, static_cast<uint32_t>(front.position),
            front.task.submitter, &error});
  scheduler_.end_user_code();
  front.stream.in_user_code.store(false);
}

void TaskRunner::stop_context(Stream& failed, const Error& error) {
  const uint64_t owner = failed.owner.load();
  streams_.for_each([&](Stream& stream) {
    if (!Stream::alive(stream.state.load()) || stream.owner.load() != owner) return;
    note_failure(stream, error, FailureLife::kStays);
    stream.drop_tasks_until(stream.submitted.load());
    waiting_.wake(stream);
    waiting_.interrupt(stream);
  });
}

}  // namespace understudy
