// SPDX-License-Identifier: Apache-2.0
#include "stream/task_runner.h"

#include <algorithm>
#include <cinttypes>
#include <exception>
#include <new>

#include "base/size_text.h"
#include "stream/event_tasks.h"
#include "stream/task_failure.h"

namespace understudy {

namespace {

// What a thread with a limit of time may still do itself.
constexpr uint64_t kShortCopy = kMiB;

bool calls_user(TaskKind kind) { return kind == TaskKind::kHostFunction; }

bool takes_long(const Task& task) {
  switch (task.kind) {
    case TaskKind::kCopy:
      return task.copy.count > kShortCopy;
    case TaskKind::kCopyRows:
      return task.rows.width * task.rows.height > kShortCopy;
    case TaskKind::kCopyCaptured:
      return task.captured.source->size() > kShortCopy;
    case TaskKind::kCopyList:
      return true;
    case TaskKind::kSet:
      return task.fill.count > kShortCopy;
    case TaskKind::kSetWords:
      return task.fill.count > kShortCopy / sizeof(uint32_t);
    default:
      return false;
  }
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

// Tells a transfer that its task is dropped or stopped.
class TaskStopper final : public Stopper {
 public:
  TaskStopper(const Stream& stream, uint64_t position) : stream_(stream), position_(position) {}
  bool wants_stop() const override { return stream_.drops(position_) || stream_.stops(position_); }

 private:
  const Stream& stream_;
  const uint64_t position_;
};

}  // namespace

RunEnd TaskRunner::run(Stream& stream, const RunLimits& limits) {
  unsigned tasks = 0;
  while (true) {
    const uint64_t done = stream.completed.load(std::memory_order_relaxed);
    if (done >= limits.until) return RunEnd::kReached;
    if (done == stream.submitted.load(std::memory_order_acquire)) return RunEnd::kEmpty;
    if (limits.most_tasks != 0 && tasks >= limits.most_tasks) return RunEnd::kTurnOver;
    const Front front{stream, stream.queue.front(), done + 1};
    // A task that takes long is a turn of its own.
    tasks += takes_long(front.task) ? limits.most_tasks : 1;
    // A failure that someone wants to hear of is told even if the rest is dropped.
    if (stream.drops(front.position) && !stream.untold) {
      drop(front);
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

void TaskRunner::drop(const Front& front) {
  if (front.task.kind == TaskKind::kWaitForRecord) end_wait(front.task.wait);
  // One that was sent is the affair of whoever takes it.
  if (front.task.kind == TaskKind::kReport && front.stream.reported != front.position) {
    reports_.note_dropped(front.task.user);
  }
}

TaskRunner::Step TaskRunner::step(const Front& front, const RunLimits& limits) {
  Stream& stream = front.stream;
  if (stream.untold) {
    if (!limits.may_call_users) return Step::kForOther;
    const Error error = *stream.untold;
    stream.untold.reset();
    return fail(front, error, limits);
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
      reach_record(front.task.record.moment);
      return Step::kDone;
    case TaskKind::kResetEvent:
      reset_event(front.task.moment);
      return Step::kDone;
    case TaskKind::kWaitForRecord:
      return wait_for_record(front);
    case TaskKind::kWaitForShared:
      return wait_for_shared(front);
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
  const TaskStopper stopper(front.stream, front.position);
  const auto conduct = [&](Sides sides) { return Conduct{sides, &stopper}; };
  switch (task.kind) {
    case TaskKind::kCopy:
      return copy(task.copy, task.device, conduct(task.sides));
    case TaskKind::kCopyRows:
      return copy_rows(task.rows, task.device, conduct(task.sides));
    case TaskKind::kCopyList:
      for (const ListedCopy& each : *task.list) {
        US_TRY(copy(each.copy, task.device, conduct(each.sides)));
      }
      return {};
    case TaskKind::kCopyCaptured:
      return transfer_.copy(task.captured.to, to_address(task.captured.source->data()),
                            task.captured.source->size(), task.device, conduct(Sides::kFromHost));
    case TaskKind::kSet:
      return transfer_.set(task.fill.to, static_cast<uint8_t>(task.fill.value), task.fill.count,
                           task.device, conduct(Sides::kDevices));
    case TaskKind::kSetWords:
      return transfer_.set_words(task.fill.to, task.fill.value, task.fill.count, task.device,
                                 conduct(Sides::kDevices));
    case TaskKind::kWriteValue:
      return transfer_.copy(task.value.address, to_address(&task.value.value),
                            sizeof task.value.value, task.device, conduct(Sides::kFromHost));
    default:
      return {};
  }
}

Result<void> TaskRunner::keep_host_side(VirtualRange range, HazardPin& pin) {
  if (host_.pin(range, pin)) return {};
  return Error::format(ErrorCode::kRefused, "%s at %p are not page-locked host memory any more",
                       SizeText(range.size).c_str(), to_pointer(range.base));
}

Result<void> TaskRunner::copy(const Copy& copy, unsigned device, const Conduct& conduct) {
  if (conduct.sides == Sides::kDevices) {
    return transfer_.copy(copy.to, copy.from, copy.count, device, conduct);
  }
  HazardPin pin;
  const VirtualAddress host = conduct.sides == Sides::kFromHost ? copy.from : copy.to;
  US_TRY(keep_host_side({host, copy.count}, pin));
  return transfer_.copy(copy.to, copy.from, copy.count, device, conduct);
}

Result<void> TaskRunner::copy_rows(const PlaneCopy& rows, unsigned device, const Conduct& conduct) {
  if (conduct.sides == Sides::kDevices) return transfer_.copy_rows(rows, device, conduct);
  const bool from_host = conduct.sides == Sides::kFromHost;
  const uint64_t pitch = from_host ? rows.from_pitch : rows.to_pitch;
  uint64_t extent = 0;
  if (__builtin_mul_overflow(pitch, rows.height - 1, &extent) ||
      __builtin_add_overflow(extent, rows.width, &extent)) {
    return Error::format(ErrorCode::kRefused, "the rows run past the end of all addresses");
  }
  HazardPin pin;
  US_TRY(keep_host_side({from_host ? rows.from : rows.to, extent}, pin));
  return transfer_.copy_rows(rows, device, conduct);
}

// ---- Functions of the program ----

namespace {

// Marks the time in which a worker is in a function of the program.
class UserCode {
 public:
  UserCode(Stream& stream, Scheduler& scheduler) : stream_(stream), scheduler_(scheduler) {
    stream_.in_user_code.store(true);
    scheduler_.begin_user_code();
  }
  ~UserCode() {
    scheduler_.end_user_code();
    stream_.in_user_code.store(false);
  }
  UserCode(const UserCode&) = delete;
  UserCode& operator=(const UserCode&) = delete;

 private:
  Stream& stream_;
  Scheduler& scheduler_;
};

Error thrown_by_user(const Stream& stream, uint64_t position, const char* what) {
  return Error::format(ErrorCode::kInternal,
                       "task %" PRIu64 " of stream %u is a host function that threw: %s", position,
                       stream.index, what);
}

}  // namespace

TaskRunner::Step TaskRunner::call_host_function(const Front& front) {
  Stream& stream = front.stream;
  const UserCode user_code(stream, scheduler_);
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
      reports_.note_dropped(callback);
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
      stream.stops(front.position)) {
    return Step::kDone;
  }
  return waiting_.park_until_answered(stream) ? Step::kParked : Step::kAgain;
}

// ---- Failures ----

TaskRunner::Step TaskRunner::fail(const Front& front, const Error& error, const RunLimits& limits) {
  Stream& stream = front.stream;
  if (error.code() == ErrorCode::kStreamAborted) {  // as the program wanted
    if (stream.stops(front.position)) note_failure(stream, error, FailureLife::kUntilTaken);
    return Step::kDone;
  }
  // Those who want to hear of it do so before anyone can learn it from the stream.
  if (failure_observer() != nullptr) {
    if (!limits.may_call_users) {
      stream.untold = error;
      return Step::kForOther;
    }
    announce(front, error);
  }
  if (stream.stops_on_failure.load()) {
    stop_context(stream, error);
  } else {
    note_failure(stream, error, FailureLife::kUntilTaken);
  }
  return Step::kDone;
}

void TaskRunner::announce(const Front& front, const Error& error) {
  const FailureObserver observer = failure_observer();
  if (observer == nullptr) return;
  const UserCode user_code(front.stream, scheduler_);
  observer({front.stream.device.load(), front.stream.index, static_cast<uint32_t>(front.position),
            front.task.submitter, &error});
}

void TaskRunner::stop_context(Stream& failed, const Error& error) {
  const uint64_t owner = failed.owner.load();
  const auto for_each_of_context = [&](auto visit) {
    streams_.for_each([&](Stream& stream) {
      const uint32_t state = stream.state.load(std::memory_order_acquire);
      if (SlotState::alive(state) && stream.owner.load() == owner) visit(stream, state);
    });
  };
  // All of them before anyone hears of it: first the failure, then the tasks that were queued, so
  // that a task which comes now is refused or dropped.
  for_each_of_context([&](Stream& stream, uint32_t state) {
    note_failure({&stream, state}, error, FailureLife::kStays);
    BriefLock lock(stream.queue_mutex);
    if (stream.state.load() == state) stream.drop_tasks_until(stream.submitted.load());
  });
  for_each_of_context([&](Stream& stream, uint32_t) {
    waiting_.wake(stream);
    waiting_.interrupt(stream);
  });
}

}  // namespace understudy
