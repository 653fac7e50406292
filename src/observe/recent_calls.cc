// SPDX-License-Identifier: Apache-2.0
#include "observe/recent_calls.h"

#include <array>
#include <atomic>

#include "platform/thread.h"

namespace understudy {

namespace {

constexpr uint64_t kCalls = 20;

// The number of the call stands in it before and after the rest is written: a reader that finds
// another one has met a writer.
struct Slot {
  std::atomic<uint64_t> begun{0};
  std::atomic<const char*> function{nullptr};
  std::atomic<int32_t> code{0};
  std::atomic<uint32_t> thread{0};
  std::atomic<uint64_t> done{0};
};

constinit std::array<Slot, 2 * kCalls> slots{};
constinit std::atomic<uint64_t> calls{0};

}  // namespace

void note_call(const char* function, int32_t code) noexcept {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const uint64_t number = calls.fetch_add(1, kRelaxed) + 1;
  Slot& slot = slots[number % slots.size()];
  slot.begun.store(number, kRelaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.function.store(function, kRelaxed);
  slot.code.store(code, kRelaxed);
  slot.thread.store(platform::kernel_thread_id(), kRelaxed);
  slot.done.store(number, std::memory_order_release);
}

std::vector<RecentCall> recent_calls() {
  std::vector<RecentCall> found;
  const uint64_t last = calls.load();
  for (uint64_t number = last > kCalls ? last - kCalls + 1 : 1; number <= last; ++number) {
    const Slot& slot = slots[number % slots.size()];
    if (slot.done.load(std::memory_order_acquire) != number) continue;
    const RecentCall call{slot.function.load(std::memory_order_relaxed),
                          slot.code.load(std::memory_order_relaxed),
                          slot.thread.load(std::memory_order_relaxed)};
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot.begun.load(std::memory_order_relaxed) == number) found.push_back(call);
  }
  return found;
}

}  // namespace understudy
