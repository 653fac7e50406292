// SPDX-License-Identifier: Apache-2.0
#include "stream/streams.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "base/pause.h"
#include "base/scope_exit.h"
#include "platform/thread.h"
#include "stream/task_failure.h"

namespace understudy {

namespace {

thread_local uint32_t last_task [[gnu::tls_model("initial-exec")]] = 0;

Error not_a_stream(uint64_t handle) {
  return Error::format(ErrorCode::kInvalidHandle, "0x%" PRIx64 " is not a live stream", handle);
}

Error was_destroyed(const StreamReference& reference) {
  return not_a_stream(Streams::handle_of(reference));
}

Error aborted(const Stream& stream) {
  const bool with_device = stream.aborted_with_device.load();
  return Error::format(with_device ? ErrorCode::kDeviceAborted : ErrorCode::kStreamAborted,
                       "the tasks of stream %u were dropped%s", stream.index,
                       with_device ? " with those of its device" : "");
}

}  // namespace

uint32_t last_task_of_thread() { return last_task; }

Streams::Streams(const Settings& settings, Transfer& transfer, HostMemory& host)
    : settings_(settings),
      scheduler_(*this),
      waiting_(scheduler_),
      reports_(waiting_),
      runner_(pool_, transfer, host, waiting_, scheduler_, reports_) {}

// ---- Beginning ----

Result<StreamReference> Streams::create(const StreamDescription& description) {
  std::atomic<uint32_t>& created = created_[description.device];
  const unsigned limit = settings_.product.most_streams;
  if (!description.is_default && created.fetch_add(1) >= limit) {
    created.fetch_sub(1);
    return Error::format(ErrorCode::kOutOfStreams, "device %u has %u streams, which is all it can",
                         description.device, limit);
  }
  ScopeExit undo([&] {
    if (!description.is_default) created.fetch_sub(1);
  });
  const std::optional<uint32_t> index = pool_.take();
  if (!index) return out_of_numbers("stream");
  undo.dismiss();
  Stream& stream = pool_.at(*index);
  stream.index = *index;
  stream.owner.store(description.owner);
  stream.device.store(description.device);
  stream.priority.store(std::min(description.priority, kPriorities - 1));
  stream.flags.store(description.flags);
  stream.is_default.store(description.is_default);
  stream.is_unattended.store(description.is_unattended);
  MutexLock lock(mutex_);
  stream.settings = {};
  stream.stops_on_failure.store(stopping_owners_.contains(description.owner));
  const uint32_t state = stream.state.load() + 1;
  stream.state.store(state, std::memory_order_release);
  return StreamReference{&stream, state};
}

Result<StreamReference> Streams::find(uint64_t handle) {
  const HandleParts parts = HandleParts::split(handle);
  if (parts.tag == HandleTag::kStream && pool_.exists(parts.index)) {
    Stream& stream = pool_.at(parts.index);
    const uint32_t state = stream.state.load(std::memory_order_acquire);
    if (Stream::alive(state) && Stream::generation(state) == parts.generation) {
      return StreamReference{&stream, state};
    }
  }
  return not_a_stream(handle);
}

uint64_t Streams::handle_of(const StreamReference& stream) {
  return HandleParts{HandleTag::kStream, Stream::generation(stream.state), stream.stream->index}
      .pack();
}

unsigned Streams::available(unsigned device) const {
  return settings_.product.most_streams - created_[device].load();
}

// ---- Tasks ----

bool Streams::has_room(Stream& stream) {
  // The figure of the owner is in a cache line that it writes to all the time.
  const uint64_t submitted = stream.submitted.load(std::memory_order_relaxed);
  if (submitted - stream.known_completed.load(std::memory_order_relaxed) < kCrowded) [[likely]]
    return true;
  const uint64_t completed = stream.completed.load();
  stream.known_completed.store(completed, std::memory_order_relaxed);
  return submitted - completed < kCrowded;
}

Result<void> Streams::prepare(const StreamReference& reference) {
  US_TRY(scheduler_.start());
  Stream& stream = *reference.stream;
  US_TRY(lasting_failure(stream));
  if (has_room(stream)) [[likely]]
    return {};
  return wait_for_room(stream);
}

Result<uint64_t> Streams::submit_prepared(const StreamReference& reference, Task task) {
  ScopeExit release([&] { release_payload(task); });
  Stream& stream = *reference.stream;
  task.submitter = platform::kernel_thread_id();
  uint64_t position = 0;
  {
    BriefLock lock(stream.queue_mutex);
    if (stream.state.load(std::memory_order_relaxed) != reference.state) {
      return was_destroyed(reference);
    }
    stream.queue.push(task);
    position = stream.submitted.load(std::memory_order_relaxed) + 1;
    stream.submitted.store(position);
  }
  release.dismiss();
  last_task = static_cast<uint32_t>(position);
  scheduler_.offer(stream);
  return position;
}

Result<uint64_t> Streams::submit(const StreamReference& reference, const Task& task) {
  if (Result<void> prepared = prepare(reference); !prepared.ok()) [[unlikely]] {
    Task refused = task;
    release_payload(refused);
    return prepared.error();
  }
  return submit_prepared(reference, task);
}

Result<void> Streams::wait_for_room(Stream& stream) {
  const uint64_t submitted = stream.submitted.load();
  const uint64_t half_empty = submitted - kCrowded / 2;
  while (!stream.is_done(half_empty) && stream.run_state.load() != RunState::kParked) {
    (void)wait_once(stream, half_empty, deadline_after(std::chrono::milliseconds(1)));
  }
  if (submitted - stream.completed.load() < kMostQueued) return {};
  return Error::format(ErrorCode::kQueueFull, "stream %u has %" PRIu64 " tasks queued",
                       stream.index, kMostQueued);
}

RunEnd Streams::run(Stream& stream) {
  constexpr unsigned kTurn = 64;
  return runner_.run(stream, {.most_tasks = kTurn});
}

// ---- Waiting ----

void Streams::let_go(Stream& stream, RunEnd end) {
  if (end == RunEnd::kParked) return;
  if (end == RunEnd::kForOther) {
    scheduler_.hand_over(stream, Scheduler::Successor::kWorker);
  } else if (stream.submitted.load() != stream.completed.load() || !scheduler_.release(stream)) {
    scheduler_.hand_over(stream, Scheduler::Successor::kAnyone);
  }
}

void Streams::help(Stream& stream, uint64_t position, Deadline deadline) {
  constexpr int kLongestChain = 8;
  Waiting::Blocker wanted{&stream, position};
  for (int link = 0; link < kLongestChain && !stream.is_done(position); ++link) {
    if (scheduler_.try_claim(*wanted.stream)) {
      const RunEnd end = runner_.run(
          *wanted.stream,
          {.until = wanted.position, .may_call_users = false, .may_take_long = deadline == kNever});
      let_go(*wanted.stream, end);
      if (end == RunEnd::kForOther || has_passed(deadline)) return;
    }
    // What was wanted may be done, or it waits for something: start from there.
    if (wanted.stream->is_done(wanted.position)) wanted = {&stream, position};
    if (const auto blocker = waiting_.blocker_of(*wanted.stream)) wanted = *blocker;
  }
}

Waiting::Outcome Streams::wait_once(Stream& stream, uint64_t position, Deadline deadline) {
  help(stream, position, deadline);
  if (scheduler_.patience() != Clock::duration::zero()) {
    const Deadline until = std::min(Clock::now() + scheduler_.patience(), deadline);
    do {
      for (int i = 0; i < 16 && !stream.is_done(position); ++i) pause_briefly();
      if (stream.is_done(position)) return Waiting::Outcome::kReached;
      if (stream.run_state.load(std::memory_order_relaxed) == RunState::kReady) {
        help(stream, position, deadline);
      }
    } while (Clock::now() < until);
  }
  return waiting_.wait(stream, position, deadline);
}

bool Streams::wait_until(Stream& stream, uint64_t position, Deadline deadline) {
  while (!stream.is_done(position)) {
    if (wait_once(stream, position, deadline) == Waiting::Outcome::kTimeOver) return false;
  }
  return true;
}

Result<void> Streams::finish_waiting(const StreamReference& reference, uint64_t position,
                                     uint32_t aborts, Deadline deadline) {
  Stream& stream = *reference.stream;
  while (!stream.is_done(position)) {
    const Waiting::Outcome outcome = wait_once(stream, position, deadline);
    if (stream.aborts.load() != aborts) return aborted(stream);
    if (outcome == Waiting::Outcome::kTimeOver) {
      return Error::format(ErrorCode::kStreamTimeout,
                           "stream %u has done %" PRIu64 " of %" PRIu64 " tasks at the time limit",
                           stream.index, stream.completed.load(), position);
    }
    if (outcome == Waiting::Outcome::kInterrupted) US_TRY(lasting_failure(stream));
  }
  return take_failure(stream);
}

Result<void> Streams::synchronize(const StreamReference& reference, Deadline deadline) {
  const Stream& stream = *reference.stream;
  if (stream.is_unattended.load(std::memory_order_relaxed)) return {};
  const uint32_t aborts = stream.aborts.load();
  return finish_waiting(reference, stream.submitted.load(), aborts, deadline);
}

Result<void> Streams::drain(const StreamReference& reference) {
  const uint32_t aborts = reference.stream->aborts.load();
  return finish_waiting(reference, reference.stream->submitted.load(), aborts, kNever);
}

bool Streams::is_complete(const StreamReference& reference) {
  const Stream& stream = *reference.stream;
  return stream.is_unattended.load() || stream.is_done(stream.submitted.load());
}

template <typename Matches>
std::vector<StreamReference> Streams::collect(Matches matches) const {
  std::vector<StreamReference> found;
  pool_.for_each([&](Stream& stream) {
    const uint32_t state = stream.state.load(std::memory_order_acquire);
    if (Stream::alive(state) && matches(stream)) found.push_back({&stream, state});
  });
  return found;
}

Result<void> Streams::synchronize_owner(uint64_t owner, Deadline deadline) {
  struct Target {
    StreamReference stream;
    uint64_t position;
    uint32_t aborts;
  };
  std::vector<Target> targets;
  for (const StreamReference& found :
       collect([&](const Stream& stream) { return stream.owner.load() == owner; })) {
    const Stream& stream = *found.stream;
    if (stream.is_unattended.load()) continue;
    const uint32_t aborts = stream.aborts.load();
    targets.push_back({found, stream.submitted.load(), aborts});
  }
  Result<void> first;
  for (const Target& target : targets) {
    const Result<void> waited =
        finish_waiting(target.stream, target.position, target.aborts, deadline);
    if (first.ok()) first = waited;
  }
  return first;
}

// ---- Dropping ----

uint64_t Streams::begin_dropping(Stream& stream, AbortScope scope) {
  stream.aborted_with_device.store(scope == AbortScope::kDevice);
  stream.aborts.fetch_add(1);
  const uint64_t position = stream.submitted.load();
  stream.drop_tasks_until(position);
  reports_.forget(stream);
  waiting_.wake(stream);
  waiting_.interrupt(stream);
  return position;
}

void Streams::finish_dropping(Stream& stream, uint64_t position) {
  while (!stream.is_done(position) && !stream.in_user_code.load()) {
    (void)wait_once(stream, position, deadline_after(std::chrono::milliseconds(1)));
  }
}

void Streams::abort(const StreamReference& reference) {
  Stream& stream = *reference.stream;
  finish_dropping(stream, begin_dropping(stream, AbortScope::kStream));
  forget_failure(stream);
}

void Streams::abort_device(unsigned device) {
  const std::vector<StreamReference> found =
      collect([&](const Stream& stream) { return stream.device.load() == device; });
  // All of them first: they may wait for each other.
  std::vector<uint64_t> positions;
  for (const StreamReference& each : found) {
    positions.push_back(begin_dropping(*each.stream, AbortScope::kDevice));
  }
  for (size_t i = 0; i < found.size(); ++i) {
    finish_dropping(*found[i].stream, positions[i]);
    forget_failure(*found[i].stream);
  }
}

void Streams::stop_front(const StreamReference& reference) {
  Stream& stream = *reference.stream;
  const uint64_t done = stream.completed.load();
  if (done == stream.submitted.load()) return;
  stream.stop_at.store(done + 1);
  waiting_.wake(stream);
}

// ---- Ending ----

Result<bool> Streams::close(const StreamReference& reference, CloseIf condition) {
  Stream& stream = *reference.stream;
  BriefLock lock(stream.queue_mutex);
  if (stream.state.load() != reference.state) return was_destroyed(reference);
  const bool empty = stream.submitted.load() == stream.completed.load();
  if (!empty && condition == CloseIf::kEmpty) return false;
  stream.state.store(reference.state + 1);
  return true;
}

void Streams::retire(Stream& stream) {
  reports_.end(stream);
  if (!stream.is_default.load()) created_[stream.device.load()].fetch_sub(1);
  stream.is_orphan.store(true);
  recycle(stream);
}

void Streams::recycle(Stream& stream) {
  if (!scheduler_.try_own(stream)) return;  // its owner will come here
  // What is left of its tasks is dropped.
  const RunEnd end = runner_.run(stream, {.may_call_users = false});
  if (end != RunEnd::kEmpty) return let_go(stream, end);
  if (!stream.is_orphan.exchange(false)) return let_go(stream, end);
  forget_failure(stream);
  stream.run_state.store(RunState::kIdle);
  // A slot whose generations are used up is not used again: an ancient handle would fit it.
  if (Stream::generation(stream.state.load()) != 0) pool_.give_back(stream.index);
}

Result<void> Streams::destroy(const StreamReference& reference) {
  Stream& stream = *reference.stream;
  if (stream.is_default.load()) {
    return Error::format(ErrorCode::kRefused, "stream %u is the default stream of its context",
                         stream.index);
  }
  while (true) {
    (void)wait_until(stream, stream.submitted.load(), kNever);
    US_TRY_ASSIGN(const bool closed, close(reference, CloseIf::kEmpty));
    if (closed) break;
  }
  retire(stream);
  return {};
}

Result<void> Streams::destroy_at_once(const StreamReference& reference) {
  Stream& stream = *reference.stream;
  if (stream.is_default.load()) {
    return Error::format(ErrorCode::kRefused, "stream %u is the default stream of its context",
                         stream.index);
  }
  US_TRY(close(reference, CloseIf::kAnyway));
  finish_dropping(stream, begin_dropping(stream, AbortScope::kStream));
  retire(stream);
  return {};
}

void Streams::end_owner(uint64_t owner) {
  std::vector<StreamReference> closed;
  for (const StreamReference& found :
       collect([&](const Stream& stream) { return stream.owner.load() == owner; })) {
    // Another thread may destroy it just now.
    if (close(found, CloseIf::kAnyway).ok()) closed.push_back(found);
  }
  std::vector<uint64_t> positions;
  for (const StreamReference& each : closed) {
    positions.push_back(begin_dropping(*each.stream, AbortScope::kStream));
  }
  for (size_t i = 0; i < closed.size(); ++i) {
    finish_dropping(*closed[i].stream, positions[i]);
    retire(*closed[i].stream);
  }
  MutexLock lock(mutex_);
  stopping_owners_.erase(owner);
}

// ---- Settings ----

Result<void> Streams::set_failure_mode(const StreamReference& reference, FailureMode mode) {
  const uint64_t owner = reference.stream->owner.load();
  MutexLock lock(mutex_);
  const bool stops = stopping_owners_.contains(owner);
  if (mode == FailureMode::kContinue) {
    if (!stops) return {};
    return Error::format(ErrorCode::kNotSupported,
                         "the context of stream %u stops on failures and stays so",
                         reference.stream->index);
  }
  stopping_owners_.insert(owner);
  pool_.for_each([&](Stream& stream) {
    if (stream.owner.load() == owner) stream.stops_on_failure.store(true);
  });
  return {};
}

StreamSettings Streams::settings_of(const StreamReference& reference) {
  MutexLock lock(mutex_);
  return reference.stream->settings;
}

}  // namespace understudy
