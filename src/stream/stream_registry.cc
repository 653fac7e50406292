// SPDX-License-Identifier: Apache-2.0
#include "stream/stream_registry.h"

#include <algorithm>

#include "base/scope_exit.h"

namespace understudy {

Result<StreamReference> StreamRegistry::create(const StreamDescription& description) {
  std::atomic<uint32_t>& created = created_[description.device];
  const unsigned limit = settings_.product.most_streams;
  if (created.fetch_add(1) >= limit) {
    created.fetch_sub(1);
    return Error::format(ErrorCode::kOutOfStreams, "stream limit (%u) of device %u reached", limit,
                         description.device);
  }
  ScopeExit undo([&] { created.fetch_sub(1); });
  US_TRY_ASSIGN(Stream* const taken, streams_.take());
  undo.dismiss();
  Stream& stream = *taken;
  // With the lock: a thread that finds the stream alive there finds it complete.
  MutexLock lock(mutex_);
  stream.owner.store(description.owner);
  stream.device.store(description.device);
  stream.priority.store(std::min(description.priority, kPriorities - 1));
  stream.flags.store(description.flags);
  stream.is_default.store(description.is_default);
  stream.is_unattended.store(description.is_unattended);
  stream.holds_tasks.store(description.holds_tasks);
  stream.overflow_mode.store(description.overflow_mode);
  settings_locked(stream) = {};
  stream.stops_on_failure.store(stopping_owners_.contains(description.owner));
  begin_figures(stream);
  const uint32_t state = stream.state.load() + 1;
  stream.state.store(state, std::memory_order_release);
  return StreamReference{&stream, state};
}

Result<StreamReference> StreamRegistry::find(uint64_t handle) const {
  if (Stream* const stream = streams_.find_live(handle)) {
    return StreamReference{stream, SlotState::of_live(handle)};
  }
  return not_a_live_stream(handle);
}

unsigned StreamRegistry::available(unsigned device) const {
  const unsigned limit = settings_.product.most_streams;
  // A call that will be refused may be counted for a moment.
  return limit - std::min(limit, created_[device].load());
}

uint64_t StreamRegistry::count_created() const {
  uint64_t count = 0;
  for_each([&](const StreamReference& stream) { count += stream.is_default() ? 0 : 1; });
  return count;
}

std::vector<StreamReference> StreamRegistry::streams_of(uint64_t owner) const {
  std::vector<StreamReference> found;
  for_each_of(owner, [&](const StreamReference& stream) { found.push_back(stream); });
  return found;
}

std::vector<StreamReference> StreamRegistry::streams_on(unsigned device) const {
  std::vector<StreamReference> found;
  for_each_on(device, [&](const StreamReference& stream) { found.push_back(stream); });
  return found;
}

void StreamRegistry::begin_figures(Stream& stream) const {
  if (figures_ == nullptr) return;
  figures_->add_stream();
  if (std::atomic<uint8_t>* const mark = figures_->busy_mark(stream.index)) {
    // Once: a slot keeps its number.
    if (stream.busy_mark != mark) stream.busy_mark = mark;
  }
}

void StreamRegistry::note_closed(const Stream& stream) {
  if (figures_ != nullptr) figures_->remove_stream();
  created_[stream.device.load()].fetch_sub(1);
}

void StreamRegistry::recycle(Stream& stream) { streams_.recycle(stream); }

// ---- Settings ----

Result<void> StreamRegistry::set_failure_mode(const StreamReference& reference, FailureMode mode) {
  MutexLock lock(mutex_);
  if (!reference.valid()) return not_a_live_stream(reference.handle());
  const uint64_t owner = reference.stream->owner.load();
  const bool stops = stopping_owners_.contains(owner);
  if (mode == FailureMode::kContinue) {
    if (!stops) return {};
    return Error::format(ErrorCode::kNotSupported,
                         "the context of stream %u stops on failures and stays so", reference.id());
  }
  stopping_owners_.insert(owner);
  streams_.for_each([&](Stream& stream) {
    if (stream.owner.load() == owner) stream.stops_on_failure.store(true);
  });
  return {};
}

void StreamRegistry::forget_owner(uint64_t owner) {
  MutexLock lock(mutex_);
  stopping_owners_.erase(owner);
}

void StreamRegistry::set_priority(const StreamReference& reference, uint32_t priority) {
  MutexLock lock(mutex_);
  if (reference.valid()) reference.stream->priority.store(std::min(priority, kPriorities - 1));
}

StreamSettings StreamRegistry::settings_of(const StreamReference& reference) {
  MutexLock lock(mutex_);
  return settings_locked(*reference.stream);
}

}  // namespace understudy
