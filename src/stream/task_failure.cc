// SPDX-License-Identifier: Apache-2.0
#include "stream/task_failure.h"

#include <atomic>

namespace understudy {

namespace {

std::atomic<FailureObserver> current_observer{nullptr};

}  // namespace

void set_failure_observer(FailureObserver observer) { current_observer.store(observer); }
FailureObserver failure_observer() { return current_observer.load(std::memory_order_acquire); }

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
