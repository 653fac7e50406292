// SPDX-License-Identifier: Apache-2.0
#include "stream/streams.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "base/scope_exit.h"
#include "memory/copy_engine.h"
#include "platform/thread.h"
#include "stream/task_failure.h"

namespace understudy {

namespace {

thread_local uint32_t last_task [[gnu::tls_model("initial-exec")]] = 0;

}  // namespace

uint32_t last_task_of_thread() { return last_task; }

Streams::Streams(const Settings& settings, Transfer& transfer, HostMemory& host)
    : settings_(settings),
      scheduler_(*this),
      waiting_(scheduler_),
      reports_(waiting_),
      runner_(pool_, transfer, host, waiting_, scheduler_, reports_) {}

Streams::~Streams() {
  if (helps_) set_copy_helpers(nullptr);
  scheduler_.end();
}

void Streams::help_with_copies() {
  helps_ = true;
  set_copy_helpers(&scheduler_);
}

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
  // Under the lock: whoever finds the stream alive there finds it complete.
  MutexLock lock(mutex_);
  // Once: whoever holds a stale handle may look at it.
  if (stream.index != *index) stream.index = *index;
  stream.owner.store(description.owner);
  stream.device.store(description.device);
  stream.priority.store(std::min(description.priority, kPriorities - 1));
  stream.flags.store(description.flags);
  stream.is_default.store(description.is_default);
  stream.is_unattended.store(description.is_unattended);
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
    if (SlotState::alive(state) && SlotState::generation(state) == parts.generation) {
      return StreamReference{&stream, state};
    }
  }
  return not_a_live_stream(handle);
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
  US_TRY(lasting_failure(reference));
  if (has_room(*reference.stream)) [[likely]]
    return {};
  return wait_for_room(reference);
}

Result<uint64_t> Streams::submit_prepared(const StreamReference& reference, Task task) {
  ScopeExit release([&] { release_payload(task); });
  Stream& stream = *reference.stream;
  task.submitter = platform::kernel_thread_id();
  stream.queue.prepare(stream.submitted.load(std::memory_order_relaxed));
  uint64_t position = 0;
  {
    BriefLock lock(stream.queue_mutex);
    if (stream.state.load(std::memory_order_relaxed) != reference.state) {
      return not_a_live_stream(reference.handle());
    }
    // It may have been stopped since; what comes after that is refused, what came before dropped.
    US_TRY(lasting_failure(reference));
    stream.queue.push(task);
    position = stream.submitted.load(std::memory_order_relaxed) + 1;
    stream.submitted.store(position);
  }
  release.dismiss();
  last_task = static_cast<uint32_t>(position);
  scheduler_.offer_tasks(stream);
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

Result<void> Streams::wait_for_room(const StreamReference& reference) {
  Stream& stream = *reference.stream;
  const uint64_t submitted = stream.submitted.load();
  const uint64_t half_empty = submitted - kCrowded / 2;
  // Where the stream stands, waiting for it may be waiting for the caller.
  const auto stands = [&] {
    return stream.run_state.load() == RunState::kParked || stream.in_user_code.load();
  };
  while (!stream.is_done(half_empty) && !stands()) {
    (void)wait_once(stream, half_empty, deadline_after(std::chrono::milliseconds(1)));
    US_TRY(lasting_failure(reference));
  }
  // Others may have added tasks since, and all of them may be done.
  const uint64_t completed = stream.completed.load();
  if (completed >= submitted || submitted - completed < kMostQueued) return {};
  return Error::format(ErrorCode::kQueueFull, "stream %u has %" PRIu64 " tasks queued",
                       stream.index, kMostQueued);
}

RunEnd Streams::run(Stream& stream) {
  constexpr unsigned kTurn = 64;
  return runner_.run(stream, {.most_tasks = kTurn});
}

// ---- Settings ----

Result<void> Streams::set_failure_mode(const StreamReference& reference, FailureMode mode) {
  MutexLock lock(mutex_);
  if (!reference.valid()) return not_a_live_stream(reference.handle());
  const uint64_t owner = reference.stream->owner.load();
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

void Streams::set_priority(const StreamReference& reference, uint32_t priority) {
  MutexLock lock(mutex_);
  if (reference.valid()) reference.stream->priority.store(std::min(priority, kPriorities - 1));
}

StreamSettings Streams::settings_of(const StreamReference& reference) {
  MutexLock lock(mutex_);
  return reference.stream->settings;
}

}  // namespace understudy
