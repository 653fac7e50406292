// SPDX-License-Identifier: Apache-2.0
#include "observe/queued_places.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <new>

#include "base/mutex.h"
#include "platform/fork_sentinel.h"

namespace understudy {

struct QueuedPlaces::State {
  struct PlacedTask {
    uint64_t position;
    ProgramPlace place;
  };

  Mutex mutex{LockRank::kQueuedPlaces};
  std::map<uint32_t, std::deque<PlacedTask>> streams US_GUARDED_BY(mutex);  // by position
};

constinit std::atomic<QueuedPlaces::State*> QueuedPlaces::state_{nullptr};
// When the library is loaded: see CallGate.
const bool QueuedPlaces::registered_ = (platform::call_in_fork_child(forget_in_fork_child), true);

// A thread of the parent may have been in the middle of changing what is there.
void QueuedPlaces::forget_in_fork_child() { state_.store(nullptr, std::memory_order_relaxed); }

QueuedPlaces::State* QueuedPlaces::state() noexcept {
  State* known = state_.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  auto fresh = std::unique_ptr<State>(new (std::nothrow) State);
  if (fresh == nullptr) return nullptr;
  return state_.compare_exchange_strong(known, fresh.get()) ? fresh.release() : known;
}

void QueuedPlaces::add(StreamTask task, const ProgramPlace& place) noexcept {
  State* const state = QueuedPlaces::state();
  if (state == nullptr) return;
  const MutexLock lock(state->mutex);
  try {
    state->streams[task.stream].push_back({task.position, place});
  } catch (const std::bad_alloc&) {
    return;
  }
}

void QueuedPlaces::remove(StreamTask task) noexcept {
  State* const state = QueuedPlaces::state();
  if (state == nullptr) return;
  const MutexLock lock(state->mutex);
  const auto found = state->streams.find(task.stream);
  if (found == state->streams.end()) return;
  std::deque<State::PlacedTask>& queued = found->second;
  while (!queued.empty() && queued.front().position <= task.position) queued.pop_front();
}

ProgramPlace QueuedPlaces::find(StreamTask task) noexcept {
  State* const state = QueuedPlaces::state();
  if (state == nullptr) return {};
  const MutexLock lock(state->mutex);
  const auto stream = state->streams.find(task.stream);
  if (stream == state->streams.end()) return {};
  const auto queued =
      std::ranges::lower_bound(stream->second, task.position, {}, &State::PlacedTask::position);
  return queued != stream->second.end() && queued->position == task.position ? queued->place
                                                                             : ProgramPlace{};
}

}  // namespace understudy
