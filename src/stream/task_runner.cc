// SPDX-License-Identifier: Apache-2.0
#include "stream/task_runner.h"

#include <cinttypes>
#include <exception>
#include <new>

#include "base/forced_unwind.h"
#include "stream/event_tasks.h"
#include "stream/notify_tasks.h"
#include "stream/task_failure.h"
#include "stream/task_recording.h"
#include "stream/task_uses.h"
#include "stream/user_code.h"

namespace understudy {

namespace {

bool calls_user(TaskKind kind) { return kind == TaskKind::kHostFunction; }

// Before the task counts as done, so that what comes behind it is told so.
void note_done(const FrontTask& front, Order::Outcome outcome) {
  if (is_checked(kTaskChecks)) [[unlikely]]
    note_task_done(front, outcome);
}

// Faults of the memory that a task names are faults of the device; running out of it is not.
Error as_task_failure(const FrontTask& front, const Error& error) {
  const bool memory_fault =
      error.code() == ErrorCode::kInvalidParam || error.code() == ErrorCode::kNoPermission ||
      error.code() == ErrorCode::kNotSupported || error.code() == ErrorCode::kInvalidMemoryType;
  return Error::format(memory_fault ? ErrorCode::kCopyFault : error.code(),
                       "task %" PRIu64 " of stream %u failed: %s", front.position,
                       front.stream.index, error.text());
}

TaskFailure failure_of(const FrontTask& front, const Error& error) {
  return {front.stream.device.load(), front.stream.index, static_cast<uint32_t>(front.position),
          front.task.submitter, &error};
}

}  // namespace

RunEnd TaskRunner::run(Stream& stream, const RunLimits& limits) {
  unsigned tasks = 0;
  while (true) {
    const uint64_t done = stream.completed.load(std::memory_order_relaxed);
    if (done >= limits.until) return RunEnd::kReached;
    if (done == stream.submitted.load(std::memory_order_acquire)) return RunEnd::kEmpty;
    if (limits.most_tasks != 0 && tasks >= limits.most_tasks) return RunEnd::kTurnOver;
    const FrontTask front{stream, stream.queue.front(), done + 1};
    // A task that takes long is a turn of its own.
    tasks += takes_long(front.task) ? limits.most_tasks : 1;
    // A failure that an observer wants to hear of is reported even if the rest is dropped.
    if (stream.drops(front.position) && !stream.unreported) {
      drop(front);
      note_done(front, Order::Outcome::kFailed);
    } else {
      const TaskStep step = this->step(front, limits);
      if (step == TaskStep::kAgain) continue;
      if (step == TaskStep::kForOther) return RunEnd::kForOther;
      if (step == TaskStep::kParked) return RunEnd::kParked;
    }
    finish(front);
  }
}

void TaskRunner::finish(const FrontTask& front) {
  Stream& stream = front.stream;
  release_payload(front.task);
  stream.queue.pop();
  // A waiter in the wait graph was there before, or sees this; see watch_locked.
  stream.completed.store(front.position);
  wait_graph_.note_progress(stream);
}

void TaskRunner::drop(const FrontTask& front) {
  MemoryTasks::drop(front.task);
  if (front.task.kind == TaskKind::kWaitForRecord) end_wait(front.task.wait);
  // A report that was sent is up to the thread that takes it.
  if (front.task.kind == TaskKind::kReport && front.stream.reported != front.position) {
    reports_.note_dropped(front.task.user);
  }
}

TaskStep TaskRunner::step(const FrontTask& front, const RunLimits& limits) {
  Stream& stream = front.stream;
  if (stream.unreported) {
    if (!limits.may_call_users) return TaskStep::kForOther;
    const Error error = *stream.unreported;
    stream.unreported.reset();
    return fail(front, error, limits);
  }
  if ((!limits.may_call_users && calls_user(front.task.kind)) ||
      (!limits.may_take_long && takes_long(front.task))) {
    return TaskStep::kForOther;
  }
  TaskRecording recording(front);
  try {
    const Result<TaskStep> result = step_by_kind(front);
    if (result.ok()) [[likely]] {
      if (result.value() == TaskStep::kDone) {
        note_done(front, Order::Outcome::kDone);
        recording.note_done(front, false);
      }
      return result.value();
    }
    note_done(front, Order::Outcome::kFailed);
    recording.note_done(front, true);
    return fail_first(front, result.error(), limits);
  } catch (const std::bad_alloc&) {
    note_done(front, Order::Outcome::kFailed);
    recording.note_done(front, true);
    return fail_first(front, Error::format(ErrorCode::kOutOfMemory, "the host has no memory left"),
                      limits);
  }
}

Result<TaskStep> TaskRunner::step_by_kind(const FrontTask& front) {
  switch (front.task.kind) {
    case TaskKind::kRecord:
      if (is_order_checked()) [[unlikely]]
        Order::note_recorded(task_at(front.stream, front.position));
      reach_record(front.task.record.moment);
      return TaskStep::kDone;
    case TaskKind::kResetEvent:
      reset_event(front.task.moment);
      return TaskStep::kDone;
    case TaskKind::kChangeNotify:
      if (is_order_checked()) [[unlikely]]
        Order::note_notify_changed(task_at(front.stream, front.position),
                                   front.task.notify_change.notify->index);
      change_notify(*front.task.notify_change.notify, front.task.notify_change.change, wait_graph_);
      return TaskStep::kDone;
    case TaskKind::kWaitForNotify:
      return wait_tasks_.wait_for_notify(front);
    case TaskKind::kWaitForRecord:
      return wait_tasks_.wait_for_record(front);
    case TaskKind::kWaitForShared:
      return wait_tasks_.wait_for_shared(front);
    case TaskKind::kWaitForValue:
      return wait_tasks_.wait_for_value(front);
    case TaskKind::kHostFunction:
      return call_host_function(front);
    case TaskKind::kReport:
      return send_report(front);
    case TaskKind::kNothing:
      return TaskStep::kDone;
    default:
      US_TRY(memory_tasks_.perform(front));
      wait_graph_.note_write();
      return TaskStep::kDone;
  }
}

// ---- The owner lets go ----

void TaskRunner::let_go(Stream& stream, RunEnd end) {
  if (end == RunEnd::kParked) return;
  if (end == RunEnd::kForOther) {
    run_queue_.hand_over(stream, RunQueue::Successor::kWorker);
  } else if (stream.has_tasks() || !release(stream)) {
    run_queue_.hand_over(stream, RunQueue::Successor::kAnyone);
  }
}

bool TaskRunner::release(Stream& stream) {
  if (!RunQueue::release(stream)) return false;
  if (stream.is_orphan.load()) recycle(stream);
  return true;
}

void TaskRunner::recycle(Stream& stream) {
  if (!run_queue_.try_own(stream)) return;
  // What is left of its tasks is dropped.
  const RunEnd end = run(stream, {.may_call_users = false});
  if (end != RunEnd::kEmpty || !stream.is_orphan.exchange(false)) return let_go(stream, end);
  forget_failure({&stream, stream.state.load()});
  stream.mark_idle();
  stream.run_state.store(RunState::kIdle);
  registry_.recycle(stream);
}

// ---- Functions of the program ----

namespace {

// Marks the time in which a worker is in a function of the program.
class UserCode {
 public:
  UserCode(Stream& stream, RunQueue& run_queue) : stream_(stream), run_queue_(run_queue) {
    stream_.in_user_code.store(true);
    run_queue_.begin_user_code();
  }
  ~UserCode() {
    run_queue_.end_user_code();
    stream_.in_user_code.store(false);
  }
  UserCode(const UserCode&) = delete;
  UserCode& operator=(const UserCode&) = delete;

 private:
  const UserCodeMark mark_;
  Stream& stream_;
  RunQueue& run_queue_;
};

// For failures that the program's callbacks are not told of.
void note_and_log(const FrontTask& front, const Error& error) {
  log_failure(failure_of(front, error));
  note_failure(front.stream, error, FailureLife::kUntilTaken);
}

void note_thrown(const FrontTask& front, const char* what) {
  note_and_log(front,
               Error::format(ErrorCode::kInternal,
                             "task %" PRIu64 " of stream %u is a host function that threw: %s",
                             front.position, front.stream.index, what));
}

Error thread_ended_by_user(const FrontTask& front) {
  return Error::format(ErrorCode::kInternal,
                       "task %" PRIu64 " of stream %u is a host function that ended its thread",
                       front.position, front.stream.index);
}

}  // namespace

US_CATCHES_FORCED_UNWIND TaskStep TaskRunner::call_host_function(const FrontTask& front) {
  const UserFunction user = front.task.user;
  const OrderedFunction ordered(front.stream, front.position, Order::AfterFunction::kWaits);
  try {
    const UserCode user_code(front.stream, run_queue_);
    user.function(user.argument);
  } catch (const ForcedUnwind&) {
    // The worker ends here, and another one goes on behind the task.
    note_and_log(front, thread_ended_by_user(front));
    finish(front);
    throw;
  } catch (const std::exception& exception) {
    note_thrown(front, exception.what());
  } catch (...) {
    note_thrown(front, "a value that is no std::exception");
  }
  return TaskStep::kDone;
}

TaskStep TaskRunner::send_report(const FrontTask& front) {
  Stream& stream = front.stream;
  const UserFunction& callback = front.task.user;
  if (stream.reported != front.position) {
    stream.reported = front.position;
    if (!reports_.send(stream, front.position, callback)) {
      reports_.note_dropped(callback);
      note_and_log(front, Error::format(ErrorCode::kNoCallbackThread,
                                        "task %" PRIu64 " of stream %u is a callback and no thread "
                                        "is subscribed to the stream",
                                        front.position, stream.index));
      return TaskStep::kDone;
    }
  }
  if (!callback.blocks || stream.answered.load() >= front.position || front.is_stopped()) {
    return TaskStep::kDone;
  }
  return wait_graph_.park_until_answered(stream) ? TaskStep::kParked : TaskStep::kAgain;
}

// ---- Failures ----

TaskStep TaskRunner::fail_first(const FrontTask& front, const Error& cause,
                                const RunLimits& limits) {
  const Error error = as_task_failure(front, cause);
  log_failure(failure_of(front, error));
  return fail(front, error, limits);
}

US_CATCHES_FORCED_UNWIND TaskStep TaskRunner::fail(const FrontTask& front, const Error& error,
                                                   const RunLimits& limits) {
  Stream& stream = front.stream;
  if (error.code() == ErrorCode::kStreamAborted) {  // as the program wanted
    if (front.is_stopped()) note_failure(stream, error, FailureLife::kUntilTaken);
    return TaskStep::kDone;
  }
  // Observers hear of it before a synchronisation can return it.
  if (has_failure_observer()) {
    if (!limits.may_call_users) {
      stream.unreported = error;
      return TaskStep::kForOther;
    }
    try {
      announce(front, error);
    } catch (const ForcedUnwind&) {  // the worker ends, and another one goes on behind the task
      keep_failure(stream, error);
      finish(front);
      throw;
    }
  }
  keep_failure(stream, error);
  return TaskStep::kDone;
}

void TaskRunner::keep_failure(Stream& stream, const Error& error) {
  if (stream.stops_on_failure.load()) {
    stop_context(stream, error);
  } else {
    note_failure(stream, error, FailureLife::kUntilTaken);
  }
}

void TaskRunner::announce(const FrontTask& front, const Error& error) {
  if (!has_failure_observer()) return;
  const UserCode user_code(front.stream, run_queue_);
  tell_failure_observers(failure_of(front, error));
}

void TaskRunner::stop_context(const Stream& failed, const Error& error) {
  const uint64_t owner = failed.owner.load();
  // All of them before a waiting thread hears of it: first the failure, then the tasks that were
  // queued, so that a task which comes now is refused or dropped.
  registry_.for_each_of(owner, [&](const StreamReference& each) {
    note_failure(each, error, FailureLife::kStays);
    BriefLock lock(each.stream->queue_mutex);
    if (each.valid()) each.stream->drop_queued_locked();
  });
  registry_.for_each_of(owner, [&](const StreamReference& each) {
    wait_graph_.wake(*each.stream);
    wait_graph_.interrupt(*each.stream);
  });
}

}  // namespace understudy
