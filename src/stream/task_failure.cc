// SPDX-License-Identifier: Apache-2.0
#include "stream/task_failure.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace understudy {

namespace {

constexpr size_t kObserverKinds = static_cast<size_t>(ObserverKind::kCallbacks) + 1;
std::array<std::atomic<FailureObserver>, kObserverKinds> observers{};
std::atomic<FailureObserver> current_log{nullptr};

}  // namespace

void set_failure_observer(ObserverKind kind, FailureObserver observer) {
  observers[static_cast<size_t>(kind)].store(observer);
}

bool has_failure_observer() {
  return std::ranges::any_of(observers, [](const auto& each) { return each.load() != nullptr; });
}

void tell_failure_observers(const TaskFailure& failure) {
  for (const auto& each : observers) {
    if (const FailureObserver observer = each.load()) observer(failure);
  }
}

void set_failure_log(FailureObserver log) { current_log.store(log); }
void log_failure(const TaskFailure& failure) {
  const FailureObserver log = current_log.load(std::memory_order_acquire);
  if (log != nullptr && failure.error->code() != ErrorCode::kStreamAborted) log(failure);
}

namespace {

void note_locked(Stream& stream, const Error& error, FailureLife life)
    US_REQUIRES(stream.failure_mutex) {
  if (!stream.failure) stream.failure = error;
  if (life == FailureLife::kStays) stream.failure_stays = true;
  stream.has_failed.store(true, std::memory_order_release);
}

void forget_locked(Stream& stream) US_REQUIRES(stream.failure_mutex) {
  stream.failure.reset();
  stream.failure_stays = false;
  stream.has_failed.store(false, std::memory_order_relaxed);
}

}  // namespace

void note_failure(Stream& stream, const Error& error, FailureLife life) {
  MutexLock lock(stream.failure_mutex);
  note_locked(stream, error, life);
}

void note_failure(const StreamReference& reference, const Error& error, FailureLife life) {
  MutexLock lock(reference.stream->failure_mutex);
  if (reference.valid()) note_locked(*reference.stream, error, life);
}

Result<void> take_failure(const StreamReference& reference) {
  Stream& stream = *reference.stream;
  if (!stream.has_failed.load(std::memory_order_acquire)) [[likely]]
    return {};
  MutexLock lock(stream.failure_mutex);
  if (!reference.valid() || !stream.failure) return {};
  const Error error = *stream.failure;
  if (!stream.failure_stays) forget_locked(stream);
  return error;
}

Result<void> unreported_failure(const StreamReference& reference) {
  Stream& stream = *reference.stream;
  if (!stream.has_failed.load(std::memory_order_acquire)) return {};
  MutexLock lock(stream.failure_mutex);
  if (!reference.valid() || !stream.failure) return {};
  return *stream.failure;
}

Result<void> lasting_failure(const StreamReference& reference) {
  Stream& stream = *reference.stream;
  if (!stream.has_failed.load(std::memory_order_acquire)) [[likely]]
    return {};
  MutexLock lock(stream.failure_mutex);
  if (!reference.valid() || !stream.failure || !stream.failure_stays) return {};
  return *stream.failure;
}

void forget_failure(const StreamReference& reference) {
  MutexLock lock(reference.stream->failure_mutex);
  if (reference.valid()) forget_locked(*reference.stream);
}

}  // namespace understudy
