// SPDX-License-Identifier: Apache-2.0
#include "stream/task_failure.h"

#include <atomic>

namespace understudy {

namespace {

std::atomic<FailureObserver> current_observer{nullptr};

}  // namespace

void set_failure_observer(FailureObserver observer) { current_observer.store(observer); }
FailureObserver failure_observer() { return current_observer.load(std::memory_order_acquire); }

void note_failure(Stream& stream, const Error& error, FailureLife life) {
  MutexLock lock(stream.failure_mutex);
  if (!stream.failure) stream.failure = error;
  if (life == FailureLife::kStays) stream.failure_stays = true;
  stream.has_failed.store(true, std::memory_order_release);
}

Result<void> take_failure(Stream& stream) {
  if (!stream.has_failed.load(std::memory_order_acquire)) [[likely]]
    return {};
  MutexLock lock(stream.failure_mutex);
  if (!stream.failure) return {};
  const Error error = *stream.failure;
  if (!stream.failure_stays) {
    stream.failure.reset();
    stream.has_failed.store(false, std::memory_order_relaxed);
  }
  return error;
}

Result<void> lasting_failure(Stream& stream) {
  if (!stream.has_failed.load(std::memory_order_acquire)) [[likely]]
    return {};
  MutexLock lock(stream.failure_mutex);
  if (!stream.failure || !stream.failure_stays) return {};
  return *stream.failure;
}

void forget_failure(Stream& stream) {
  MutexLock lock(stream.failure_mutex);
  stream.failure.reset();
  stream.failure_stays = false;
  stream.has_failed.store(false, std::memory_order_relaxed);
}

}  // namespace understudy
