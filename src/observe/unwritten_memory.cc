// SPDX-License-Identifier: Apache-2.0
#include "observe/unwritten_memory.h"

#include <memory>
#include <new>

#include "base/mutex.h"
#include "platform/fork_sentinel.h"

namespace understudy {

struct UnwrittenMemory::State {
  Mutex mutex{LockRank::kUnwrittenMemory};
  UnwrittenLines lines US_GUARDED_BY(mutex);
};

constinit std::atomic<UnwrittenMemory::State*> UnwrittenMemory::state_{nullptr};
// When the library is loaded: see CallGate.
const bool UnwrittenMemory::registered_ =
    (platform::call_in_fork_child(forget_in_fork_child), true);

// A thread of the parent may have been in the middle of changing what is there.
void UnwrittenMemory::forget_in_fork_child() { state_.store(nullptr, std::memory_order_relaxed); }

UnwrittenMemory::State* UnwrittenMemory::state() noexcept {
  State* known = state_.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  auto fresh = std::unique_ptr<State>(new (std::nothrow) State);
  if (fresh == nullptr) return nullptr;
  return state_.compare_exchange_strong(known, fresh.get()) ? fresh.release() : known;
}

void UnwrittenMemory::begin(VirtualRange host) noexcept {
  State* const state = UnwrittenMemory::state();
  if (state == nullptr) return;
  const MutexLock lock(state->mutex);
  state->lines.begin(host);
}

void UnwrittenMemory::forget(VirtualRange host) noexcept {
  State* const state = UnwrittenMemory::state();
  if (state == nullptr) return;
  const MutexLock lock(state->mutex);
  state->lines.forget(host);
}

void UnwrittenMemory::renew(VirtualRange host) noexcept {
  State* const state = UnwrittenMemory::state();
  if (state == nullptr) return;
  const MutexLock lock(state->mutex);
  state->lines.renew(host);
}

void UnwrittenMemory::write(VirtualRange host) noexcept {
  State* const state = UnwrittenMemory::state();
  if (state == nullptr) return;
  const MutexLock lock(state->mutex);
  state->lines.write(host);
}

std::optional<UnwrittenLines::Part> UnwrittenMemory::find(VirtualRange host) noexcept {
  State* const state = UnwrittenMemory::state();
  if (state == nullptr) return std::nullopt;
  const MutexLock lock(state->mutex);
  return state->lines.find(host);
}

}  // namespace understudy
