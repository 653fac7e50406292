// SPDX-License-Identifier: Apache-2.0
#include "observe/device_choices.h"

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "observe/advice.h"
#include "observe/history.h"
#include "observe/leaks.h"
#include "observe/place_text.h"
#include "platform/fork_sentinel.h"
#include "platform/log.h"

namespace understudy {

namespace {

// Devices of any process, and so of any server, have fewer bits.
uint64_t bit_of(uint64_t device) { return device < 64 ? uint64_t{1} << device : 0; }

// What belongs to a device because the program named it, or has a context there.
bool is_made_on_device(const ObjectLife& life) {
  return life.device != kNoDevice &&
         (life.kind == ObjectKind::kBlock ||
          std::ranges::find(kEndedByReset, life.kind) != kEndedByReset.end());
}

}  // namespace

struct DeviceChoices::State {
  struct ContextChoice {
    uint64_t context;
    unsigned device;
    ProgramPlace place;
  };
  std::vector<ContextChoice> copy() US_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    return choices;
  }

  static constexpr size_t kMost = 64;  // any of them can be told; threads may come and go

  Mutex mutex{LockRank::kAdvice};
  std::vector<ContextChoice> choices US_GUARDED_BY(mutex);  // one per thread, the newest last
};

constinit std::atomic<uint64_t> DeviceChoices::set_devices_{0};
constinit std::atomic<DeviceChoices::State*> DeviceChoices::state_{nullptr};
// When the library is loaded: see CallGate.
const bool DeviceChoices::registered_ = (platform::call_in_fork_child(forget_in_fork_child), true);

// A thread of the parent may have been in the middle of changing what is there.
void DeviceChoices::forget_in_fork_child() {
  set_devices_.store(0, std::memory_order_relaxed);
  state_.store(nullptr, std::memory_order_relaxed);
}

DeviceChoices::State* DeviceChoices::state() {
  State* known = state_.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  auto fresh = std::make_unique<State>();
  return state_.compare_exchange_strong(known, fresh.get()) ? fresh.release() : known;
}

void DeviceChoices::note_set(unsigned device) noexcept {
  set_devices_.fetch_or(bit_of(device), std::memory_order_relaxed);
}

void DeviceChoices::note_context(uint64_t context, unsigned device) noexcept {
  try {
    const ProgramPlace here = History::here();
    State& state = *DeviceChoices::state();
    const MutexLock lock(state.mutex);
    std::erase_if(state.choices,
                  [&](const auto& choice) { return choice.place.thread == here.thread; });
    if (state.choices.size() == State::kMost) state.choices.erase(state.choices.begin());
    state.choices.push_back({context, device, here});
  } catch (const std::bad_alloc&) {
    return;  // it is not known where the thread got it
  }
}

void DeviceChoices::look_at(const ObjectLife& life) noexcept {
  if (!is_made_on_device(life)) return;
  const auto device = static_cast<uint64_t>(life.device);
  if ((set_devices_.load(std::memory_order_relaxed) & bit_of(device)) != 0) return;
  try {
    advise("device", life.begun,
           call_at(life.begun) + " makes " + described(life) +
               ", and the process has not set device " + std::to_string(device) +
               ": no reset will end it, and nothing of this process keeps the device; set device " +
               std::to_string(device) + " first");
  } catch (const std::bad_alloc&) {
    platform::say("no memory for advice");
  }
}

void DeviceChoices::tell_missing_context(
    const Error& error, const std::function<bool(uint64_t context)>& is_alive) noexcept {
  try {
    const ProgramPlace here = History::here();
    const auto choices = DeviceChoices::state()->copy();
    const auto other = std::find_if(choices.rbegin(), choices.rend(), [&](const auto& choice) {
      return choice.place.thread != here.thread && is_alive(choice.context);
    });
    if (other == choices.rend()) return;
    advise("context", here,
           call_at(here) + " fails: " + error.text() + "; thread " +
               std::to_string(other->place.thread) + " has device " +
               std::to_string(other->device) + " since " + call_at(other->place) +
               ", and each thread sets its own");
  } catch (const std::bad_alloc&) {
    platform::say("no memory for advice");
  }
}

}  // namespace understudy
