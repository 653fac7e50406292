// SPDX-License-Identifier: Apache-2.0
#include "stream/streams.h"

#include <algorithm>
#include <cinttypes>
#include <utility>
#include <vector>

#include "base/scope_exit.h"
#include "platform/thread.h"
#include "stream/task_failure.h"
#include "stream/task_recording.h"
#include "stream/task_uses.h"

namespace understudy {

namespace {

thread_local uint32_t last_task [[gnu::tls_model("initial-exec")]] = 0;

Error aborted(const Stream& stream) {
  const bool with_device = stream.aborted_with_device.load();
  return Error::format(with_device ? ErrorCode::kDeviceAborted : ErrorCode::kStreamAborted,
                       "the tasks of stream %u were dropped%s", stream.index,
                       with_device ? " with those of its device" : "");
}

}  // namespace

uint32_t last_task_of_thread() { return last_task; }

Streams::Streams(const Settings& settings, Transfer& transfer, HostMemory& host,
                 const OwnFigures* figures)
    : registry_(settings, figures),
      run_queue_({Workers::work, &workers_}, settings.schedule),
      wait_graph_(run_queue_),
      reports_(wait_graph_),
      runner_(registry_, run_queue_, wait_graph_, reports_, transfer, host),
      workers_(run_queue_, wait_graph_, runner_),
      waiter_(run_queue_, wait_graph_, runner_),
      helpers_(run_queue_),
      copy_engine_(transfer.copy_engine()) {
  copy_engine_.set_helper_pool(&helpers_);
}

Streams::~Streams() {
  copy_engine_.set_helper_pool(nullptr);
  // Before what they use.
  run_queue_.end();
}

// ---- Tasks ----

Result<uint64_t> Streams::submit(const StreamReference& reference, const Task& task) {
  if (Result<void> prepared = prepare(reference); !prepared.ok()) [[unlikely]] {
    Task refused = task;
    release_payload(refused);
    return prepared.error();
  }
  return submit_prepared(reference, task);
}

Result<void> Streams::prepare(const StreamReference& reference) {
  US_TRY(run_queue_.start(*reference.stream));
  US_TRY(lasting_failure(reference));
  if (has_room(*reference.stream)) [[likely]]
    return {};
  return wait_for_room(reference);
}

Result<uint64_t> Streams::submit_prepared(const StreamReference& reference, Task task) {
  if (reference.holds_tasks()) [[unlikely]]
    return hold(reference, task);
  ScopeExit release([&] { release_payload(task); });
  Stream& stream = *reference.stream;
  task.submitter = platform::kernel_thread_id();
  stream.queue.prepare(stream.submitted.load(std::memory_order_relaxed));
  ProgramPlace place;
  if (is_checked(kTaskChecks)) [[unlikely]]
    place = History::here();
  uint64_t position = 0;
  {
    BriefLock lock(stream.queue_mutex);
    if (stream.state.load(std::memory_order_relaxed) != reference.state) {
      return not_a_live_stream(reference.handle());
    }
    // It may have been stopped since; what comes after that is refused, what came before dropped.
    US_TRY(lasting_failure(reference));
    if (is_checked(kTaskChecks)) [[unlikely]]
      note_queued_task(stream, stream.submitted.load(std::memory_order_relaxed) + 1, task, place);
    position = stream.push_locked(task);
    // Before it can run and end.
    if (is_recorded()) [[unlikely]]
      record_queued(stream, position, task);
  }
  release.dismiss();
  if (!reference.is_default()) last_task = static_cast<uint32_t>(position);
  run_queue_.offer_tasks(stream);
  return position;
}

Result<uint64_t> Streams::hold(const StreamReference& reference, Task task) {
  ScopeExit release([&] { release_payload(task); });
  if (!reference.valid()) return not_a_live_stream(reference.handle());
  if (task.kind == TaskKind::kReport) reports_.note_dropped(task.user);
  return reference.stream->submitted.load();
}

bool Streams::has_room(Stream& stream) {
  // The figure of the owner is in a cache line that it writes to all the time.
  const uint64_t submitted = stream.submitted.load(std::memory_order_relaxed);
  if (submitted - stream.known_completed.load(std::memory_order_relaxed) < kCrowded) [[likely]]
    return true;
  const uint64_t completed = stream.completed.load();
  stream.known_completed.store(completed, std::memory_order_relaxed);
  return submitted - completed < kCrowded;
}

Result<void> Streams::wait_for_room(const StreamReference& reference) {
  Stream& stream = *reference.stream;
  const uint64_t submitted = stream.submitted.load();
  const uint64_t half_empty = submitted - kCrowded / 2;
  // Where the stream stands, waiting for it may be waiting for the caller.
  const auto stands = [&] {
    return stream.run_state.load() == RunState::kParked || stream.in_user_code.load();
  };
  while (!stream.is_done(half_empty) && !stands()) {
    (void)waiter_.wait_once(stream, half_empty, deadline_after(std::chrono::milliseconds(1)));
    US_TRY(lasting_failure(reference));
  }
  // Others may have added tasks since, and all of them may be done.
  const uint64_t completed = stream.completed.load();
  if (completed >= submitted || submitted - completed < kMostQueued) return {};
  return Error::format(ErrorCode::kQueueFull, "task limit (%" PRIu64 ") of stream %u reached",
                       kMostQueued, stream.index);
}

// ---- Waiting ----

Result<void> Streams::synchronize(const StreamReference& reference, Deadline deadline) {
  if (reference.stream->is_unattended.load(std::memory_order_relaxed)) return {};
  Result<void> waited = wait_for(everything_queued(reference), deadline);
  if (observer_ != nullptr) observer_->on_synchronized(reference.device());
  return waited;
}

Result<void> Streams::drain(const StreamReference& reference) {
  return wait_for(everything_queued(reference), kNever);
}

Streams::Target Streams::everything_queued(const StreamReference& reference) {
  // In this order: an abort that comes in between is noticed.
  const uint32_t aborts = reference.stream->aborts.load();
  return {reference, reference.stream->submitted.load(), aborts};
}

Result<void> Streams::wait_for(const Target& target, Deadline deadline) {
  Stream& stream = *target.stream.stream;
  note_wait_for_task(stream, target.position, deadline);
  while (!stream.is_done(target.position)) {
    const WaitGraph::Outcome outcome = waiter_.wait_once(stream, target.position, deadline);
    if (stream.aborts.load() != target.aborts) {
      note_known_task(stream, target.position);  // what has not run will not
      return aborted(stream);
    }
    if (outcome == WaitGraph::Outcome::kTimeOver) {
      return Error::format(ErrorCode::kStreamTimeout,
                           "stream %u has done %" PRIu64 " of %" PRIu64 " tasks at the time limit",
                           stream.index, stream.completed.load(), target.position);
    }
    if (outcome == WaitGraph::Outcome::kInterrupted) {
      if (Result<void> failed = lasting_failure(target.stream); !failed.ok()) {
        note_known_task(stream, target.position);  // what has not run will not
        return failed;
      }
    }
  }
  note_known_task(stream, target.position);
  return take_failure(target.stream);
}

Result<void> Streams::synchronize_owner(uint64_t owner, Deadline deadline) {
  std::vector<Target> targets;
  for (const StreamReference& found : registry_.streams_of(owner)) {
    if (!found.stream->is_unattended.load()) targets.push_back(everything_queued(found));
  }
  Result<void> first;
  for (const Target& target : targets) {
    const Result<void> waited = wait_for(target, deadline);
    // What became of a stream that was destroyed meanwhile does not concern this caller.
    if (first.ok() && target.stream.valid()) first = waited;
  }
  if (observer_ != nullptr && !targets.empty()) {
    observer_->on_synchronized(targets.front().stream.device());
  }
  return first;
}

void Streams::finish_owner(uint64_t owner) {
  registry_.for_each_of(owner, [&](const StreamReference& found) { finish(*found.stream); });
}

void Streams::finish_device(unsigned device) {
  registry_.for_each_on(device, [&](const StreamReference& found) { finish(*found.stream); });
}

Result<void> Streams::finish_all(bool (*gives_up)()) {
  constexpr std::chrono::milliseconds kBetweenLooks(50);
  Result<void> first;
  registry_.for_each([&](const StreamReference& found) {
    Stream& stream = *found.stream;
    if (!first.ok() || stream.is_unattended.load()) return;
    while (!stream.is_done(stream.submitted.load())) {
      if (waiter_.wait_until(stream, stream.submitted.load(), deadline_after(kBetweenLooks))) break;
      if (gives_up()) {
        first = Error::format(ErrorCode::kStreamTimeout,
                              "a function that a stream has called waits for the process to be "
                              "unlocked, and stream %u cannot get on",
                              stream.index);
        return;
      }
    }
    note_known_task(stream, stream.submitted.load());
    first = unreported_failure(found);
  });
  return first;
}

void Streams::run_for_query() {
  wait_graph_.note_write();  // as for a thread that waits
  run_queue_.run_for_query();
}

bool Streams::is_complete(const StreamReference& reference) {
  let_run_for_query();
  const Stream& stream = *reference.stream;
  if (stream.is_unattended.load()) return true;
  const uint64_t position = stream.submitted.load();
  if (!stream.is_done(position)) return false;
  note_known_task(stream, position);
  return true;
}

void Streams::on_ring() {
  if (run_queue_.is_scheduled()) [[unlikely]]
    return wait_graph_.note_ring();
  constexpr unsigned kFew = 16;
  Stream* const stream = wait_graph_.claim_rung();
  if (stream == nullptr) return;
  const RunEnd end =
      runner_.run(*stream, {.most_tasks = kFew, .may_call_users = false, .may_take_long = false});
  runner_.let_go(*stream, end);
}

// ---- Dropping ----

void Streams::abort(const StreamReference& reference) {
  const std::optional<Dropping> dropping = begin_dropping(reference, AbortScope::kStream);
  if (!dropping) return;
  (void)finish_dropping(*dropping);
  forget_failure(reference);
}

Result<void> Streams::abort_device(unsigned device, Deadline deadline) {
  const std::vector<StreamReference> found = registry_.streams_on(device);
  // All of them first: they may wait for each other.
  std::vector<Dropping> droppings;
  for (const StreamReference& each : found) {
    if (const auto dropping = begin_dropping(each, AbortScope::kDevice)) {
      droppings.push_back(*dropping);
    }
  }
  bool in_time = true;
  for (const Dropping& each : droppings) in_time &= finish_dropping(each, deadline);
  for (const StreamReference& each : found) forget_failure(each);
  if (in_time) return {};
  return Error::format(ErrorCode::kStreamTimeout,
                       "a task of device %u still runs at the time limit; the others are dropped",
                       device);
}

std::optional<Streams::Dropping> Streams::begin_dropping(const StreamReference& reference,
                                                         AbortScope scope) {
  Stream& stream = *reference.stream;
  uint64_t position = 0;
  {
    BriefLock lock(stream.queue_mutex);
    if (!reference.valid()) return std::nullopt;
    stream.aborted_with_device.store(scope == AbortScope::kDevice);
    stream.aborts.fetch_add(1);
    position = stream.drop_queued_locked();
  }
  reports_.forget(stream, position);
  wait_graph_.interrupt(stream);
  wait_graph_.wake(stream);
  return Dropping{&stream, position};
}

bool Streams::finish_dropping(const Dropping& dropping, Deadline deadline) {
  Stream& stream = *dropping.stream;
  // Functions of the program cannot be stopped.
  while (!stream.is_done(dropping.position) && !stream.in_user_code.load()) {
    if (has_passed(deadline)) return false;
    const Deadline soon = deadline_after(std::chrono::milliseconds(1));
    (void)waiter_.wait_once(stream, dropping.position, std::min(soon, deadline));
  }
  // What has not run will not. A worker that was at a callback may have sent it meanwhile.
  note_known_task(stream, dropping.position);
  reports_.forget(stream, dropping.position);
  return true;
}

void Streams::stop_front(const StreamReference& reference) {
  Stream& stream = *reference.stream;
  {
    BriefLock lock(stream.queue_mutex);
    const uint64_t done = stream.completed.load();
    if (!reference.valid() || done == stream.submitted.load()) return;
    stream.stop_at.store(done + 1);
  }
  wait_graph_.wake(stream);
}

// ---- Ending ----

Result<void> Streams::destroy(const StreamReference& reference) {
  Stream& stream = *reference.stream;
  US_TRY(check_not_default(reference));
  while (true) {
    finish(stream);
    US_TRY_ASSIGN(const auto closed, close(reference, CloseIf::kEmpty));
    if (closed) break;
  }
  retire(stream);
  return {};
}

Result<void> Streams::destroy_at_once(const StreamReference& reference) {
  US_TRY(check_not_default(reference));
  US_TRY_ASSIGN(const auto closed, close(reference, CloseIf::kAnyway));
  retire_at_once(*closed);
  return {};
}

class Streams::ClosedStreams {
 public:
  explicit ClosedStreams(Streams& streams) : streams_(streams) {}

  void close(const StreamReference& reference) {
    const auto closed = streams_.close(reference, CloseIf::kAnyway);
    if (!closed.ok()) return;  // another thread destroys it just now
    Stream& stream = *closed.value()->stream;
    stream.next_closed = std::exchange(first_, &stream);
  }
  void end() {
    for (Stream* each = first_; each != nullptr; each = each->next_closed) {
      (void)streams_.begin_dropping(closed(*each), AbortScope::kStream);
    }
    while (first_ != nullptr) {
      Stream& stream = *std::exchange(first_, first_->next_closed);
      streams_.retire_at_once(closed(stream));
    }
  }

 private:
  // Only the thread that closed a stream lets its slot begin anew.
  static StreamReference closed(Stream& stream) { return {&stream, stream.state.load()}; }

  Streams& streams_;
  Stream* first_ = nullptr;
};

void Streams::end_owner(uint64_t owner) {
  ClosedStreams closed(*this);
  registry_.for_each_of(owner, [&](const StreamReference& found) { closed.close(found); });
  closed.end();
  forget_owner(owner);
}

void Streams::end_device(unsigned device) {
  ClosedStreams closed(*this);
  registry_.for_each_on(device, [&](const StreamReference& found) { closed.close(found); });
  closed.end();
}

Result<void> Streams::check_not_default(const StreamReference& reference) {
  if (!reference.is_default()) return {};
  return Error::format(ErrorCode::kInvalidParam, "stream %u is the default stream of its context",
                       reference.id());
}

Result<std::optional<StreamReference>> Streams::close(const StreamReference& reference,
                                                      CloseIf condition) {
  Stream& stream = *reference.stream;
  BriefLock lock(stream.queue_mutex);
  if (!reference.valid()) return not_a_live_stream(reference.handle());
  if (stream.has_tasks() && condition == CloseIf::kEmpty) return std::optional<StreamReference>();
  stream.state.store(reference.state + 1);
  return std::optional(StreamReference{&stream, reference.state + 1});
}

void Streams::retire(Stream& stream) {
  reports_.end(stream);
  registry_.note_closed(stream);
  // Also what other threads queued while it was being ended.
  note_known_task(stream, stream.submitted.load());
  stream.is_orphan.store(true);
  runner_.recycle(stream);
}

void Streams::retire_at_once(const StreamReference& closed) {
  if (const auto dropping = begin_dropping(closed, AbortScope::kStream)) {
    (void)finish_dropping(*dropping);
  }
  retire(*closed.stream);
}

}  // namespace understudy
