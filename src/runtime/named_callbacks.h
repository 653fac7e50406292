// SPDX-License-Identifier: Apache-2.0
//
// Callbacks that a program registers under a name, and unregisters under it. Called in the order
// of their registration, without a lock, so that they may register others.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace understudy {

// A function of the program whose type only the caller knows.
using AnyFunction = void (*)();

template <typename Function>
class NamedCallbacks {
 public:
  Result<void> add(const char* name, Function function, void* arguments) {
    MutexLock lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.name == name) {
        return Error::format(ErrorCode::kInvalidParam, "a callback is registered as %s already",
                             name);
      }
    }
    const uint64_t number = last_number_.load(std::memory_order_relaxed) + 1;
    entries_.push_back({name, {number, function, arguments}});
    last_number_.store(number, std::memory_order_relaxed);
    return {};
  }

  Result<void> remove(const char* name) {
    MutexLock lock(mutex_);
    if (std::erase_if(entries_, [&](const Entry& entry) { return entry.name == name; }) == 0) {
      return Error::format(ErrorCode::kInvalidParam, "no callback is registered as %s", name);
    }
    return {};
  }

  // One callback, with its place in the order of registration, from 1.
  struct Callback {
    uint64_t number;
    Function function;
    void* arguments;
  };
  // The next one that is registered now. Allocates nothing, so that it cannot fail half way.
  std::optional<Callback> next_after(uint64_t number) const {
    // Programs that register none take no lock.
    if (number >= last_number_.load(std::memory_order_relaxed)) [[likely]]
      return std::nullopt;
    MutexLock lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.callback.number > number) return entry.callback;
    }
    return std::nullopt;
  }
  // Calls visit(callback) for each, also for those that are added meanwhile.
  template <typename Visit>
  void for_each(Visit visit) const {
    for (auto next = next_after(0); next; next = next_after(next->number)) visit(*next);
  }
  // Empty if it was removed.
  std::string name_of(const Callback& callback) const {
    MutexLock lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.callback.number == callback.number) return entry.name;
    }
    return {};
  }

 private:
  struct Entry {
    std::string name;
    Callback callback;
  };

  mutable Mutex mutex_{LockRank::kCallbacks};
  std::vector<Entry> entries_ US_GUARDED_BY(mutex_);
  std::atomic<uint64_t> last_number_{0};  // changed under the lock
};

}  // namespace understudy
