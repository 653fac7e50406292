// SPDX-License-Identifier: Apache-2.0
//
// Streams from outside: waiting for them, dropping their tasks, ending them.
#include <algorithm>
#include <cinttypes>
#include <utility>

#include "base/pause.h"
#include "stream/streams.h"
#include "stream/task_failure.h"

namespace understudy {

namespace {

Error aborted(const Stream& stream) {
  const bool with_device = stream.aborted_with_device.load();
  return Error::format(with_device ? ErrorCode::kDeviceAborted : ErrorCode::kStreamAborted,
                       "the tasks of stream %u were dropped%s", stream.index,
                       with_device ? " with those of its device" : "");
}

}  // namespace

// ---- Waiting ----

void Streams::let_go(Stream& stream, RunEnd end) {
  if (end == RunEnd::kParked) return;
  if (end == RunEnd::kForOther) {
    scheduler_.hand_over(stream, Scheduler::Successor::kWorker);
  } else if (stream.submitted.load() != stream.completed.load() || !scheduler_.release(stream)) {
    scheduler_.hand_over(stream, Scheduler::Successor::kAnyone);
  }
}

RunEnd Streams::run_for(const Waiting::Blocker& wanted, Deadline deadline) {
  // With a limit of time, a little at a time.
  constexpr unsigned kFew = 4;
  const bool limited = deadline != kNever;
  const RunLimits limits{.until = wanted.position,
                         .most_tasks = limited ? kFew : 0,
                         .may_call_users = false,
                         .may_take_long = !limited};
  RunEnd end = RunEnd::kTurnOver;
  do {
    end = runner_.run(*wanted.stream, limits);
  } while (end == RunEnd::kTurnOver && !has_passed(deadline));
  return end;
}

void Streams::help(Stream& stream, uint64_t position, Deadline deadline) {
  constexpr int kLongestChain = 8;
  Waiting::Blocker wanted{&stream, position};
  for (int link = 0; link < kLongestChain && !stream.is_done(position); ++link) {
    if (scheduler_.try_claim(*wanted.stream)) {
      const RunEnd end = run_for(wanted, deadline);
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
    if (outcome == Waiting::Outcome::kInterrupted) US_TRY(lasting_failure(reference));
  }
  return take_failure(reference);
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
    if (!SlotState::alive(state) || !matches(stream)) return;
    // What matched may have been another stream.
    const StreamReference reference{&stream, state};
    if (reference.valid()) found.push_back(reference);
  });
  return found;
}

std::vector<StreamReference> Streams::streams_of(uint64_t owner) const {
  return collect([&](const Stream& stream) { return stream.owner.load() == owner; });
}

Result<void> Streams::synchronize_owner(uint64_t owner, Deadline deadline) {
  struct Target {
    StreamReference stream;
    uint64_t position;
    uint32_t aborts;
  };
  std::vector<Target> targets;
  for (const StreamReference& found : streams_of(owner)) {
    const Stream& stream = *found.stream;
    if (stream.is_unattended.load()) continue;
    const uint32_t aborts = stream.aborts.load();
    targets.push_back({found, stream.submitted.load(), aborts});
  }
  Result<void> first;
  for (const Target& target : targets) {
    const Result<void> waited =
        finish_waiting(target.stream, target.position, target.aborts, deadline);
    // What became of a stream that was destroyed meanwhile is nothing to this caller.
    if (first.ok() && target.stream.valid()) first = waited;
  }
  return first;
}

void Streams::finish_owner(uint64_t owner) {
  for (const StreamReference& found : streams_of(owner)) {
    (void)wait_until(*found.stream, found.stream->submitted.load(), kNever);
  }
}

// ---- Dropping ----

std::optional<Streams::Dropping> Streams::begin_dropping(const StreamReference& reference,
                                                         AbortScope scope) {
  Stream& stream = *reference.stream;
  uint64_t position = 0;
  {
    BriefLock lock(stream.queue_mutex);
    if (!reference.valid()) return std::nullopt;
    position = stream.submitted.load();
    stream.aborted_with_device.store(scope == AbortScope::kDevice);
    stream.aborts.fetch_add(1);
    stream.drop_tasks_until(position);
  }
  reports_.forget(stream);
  waiting_.interrupt(stream);
  waiting_.wake(stream);
  return Dropping{&stream, position};
}

bool Streams::finish_dropping(const Dropping& dropping, Deadline deadline) {
  Stream& stream = *dropping.stream;
  // Functions of the program cannot be stopped.
  while (!stream.is_done(dropping.position) && !stream.in_user_code.load()) {
    if (has_passed(deadline)) return false;
    const Deadline soon = deadline_after(std::chrono::milliseconds(1));
    (void)wait_once(stream, dropping.position, std::min(soon, deadline));
  }
  return true;
}

void Streams::abort(const StreamReference& reference) {
  const std::optional<Dropping> dropping = begin_dropping(reference, AbortScope::kStream);
  if (!dropping) return;
  (void)finish_dropping(*dropping);
  forget_failure(reference);
}

Result<void> Streams::abort_device(unsigned device, Deadline deadline) {
  const std::vector<StreamReference> found =
      collect([&](const Stream& stream) { return stream.device.load() == device; });
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

void Streams::stop_front(const StreamReference& reference) {
  Stream& stream = *reference.stream;
  {
    BriefLock lock(stream.queue_mutex);
    const uint64_t done = stream.completed.load();
    if (!reference.valid() || done == stream.submitted.load()) return;
    stream.stop_at.store(done + 1);
  }
  waiting_.wake(stream);
}

// ---- Ending ----

Result<void> Streams::check_not_default(const Stream& stream) {
  if (!stream.is_default.load()) return {};
  return Error::format(ErrorCode::kRefused, "stream %u is the default stream of its context",
                       stream.index);
}

Result<std::optional<StreamReference>> Streams::close(const StreamReference& reference,
                                                      CloseIf condition) {
  Stream& stream = *reference.stream;
  BriefLock lock(stream.queue_mutex);
  if (!reference.valid()) return not_a_live_stream(reference.handle());
  const bool empty = stream.submitted.load() == stream.completed.load();
  if (!empty && condition == CloseIf::kEmpty) return std::optional<StreamReference>();
  stream.state.store(reference.state + 1);
  return std::optional(StreamReference{&stream, reference.state + 1});
}

void Streams::retire(Stream& stream) {
  reports_.end(stream);
  if (!stream.is_default.load()) created_[stream.device.load()].fetch_sub(1);
  stream.is_orphan.store(true);
  recycle(stream);
}

void Streams::retire_at_once(const StreamReference& closed) {
  if (const auto dropping = begin_dropping(closed, AbortScope::kStream)) {
    (void)finish_dropping(*dropping);
  }
  retire(*closed.stream);
}

void Streams::recycle(Stream& stream) {
  if (!scheduler_.try_own(stream)) return;  // its owner will come here
  // What is left of its tasks is dropped.
  const RunEnd end = runner_.run(stream, {.may_call_users = false});
  if (end != RunEnd::kEmpty || !stream.is_orphan.exchange(false)) return let_go(stream, end);
  const uint32_t state = stream.state.load();
  forget_failure({&stream, state});
  stream.run_state.store(RunState::kIdle);
  if (!SlotState::is_used_up(state)) pool_.give_back(stream.index);
}

Result<void> Streams::destroy(const StreamReference& reference) {
  Stream& stream = *reference.stream;
  US_TRY(check_not_default(stream));
  while (true) {
    (void)wait_until(stream, stream.submitted.load(), kNever);
    US_TRY_ASSIGN(const auto closed, close(reference, CloseIf::kEmpty));
    if (closed) break;
  }
  retire(stream);
  return {};
}

Result<void> Streams::destroy_at_once(const StreamReference& reference) {
  US_TRY(check_not_default(*reference.stream));
  US_TRY_ASSIGN(const auto closed, close(reference, CloseIf::kAnyway));
  retire_at_once(*closed);
  return {};
}

void Streams::end_owner(uint64_t owner) {
  std::vector<StreamReference> ended;
  for (const StreamReference& found : streams_of(owner)) {
    // Another thread may destroy it just now.
    const auto closed = close(found, CloseIf::kAnyway);
    if (closed.ok()) ended.push_back(*closed.value());
  }
  // All of them first: they may wait for each other.
  for (const StreamReference& each : ended) (void)begin_dropping(each, AbortScope::kStream);
  for (const StreamReference& each : ended) retire_at_once(each);
  MutexLock lock(mutex_);
  stopping_owners_.erase(owner);
}

}  // namespace understudy
