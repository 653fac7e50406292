// SPDX-License-Identifier: Apache-2.0
//
// Callbacks that a program registers under a name, and unregisters under it. Called in the order
// of their registration, without a lock, so that they may register others.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace understudy {

template <typename Function>
class NamedCallbacks {
 public:
  struct Entry {
    std::string name;
    Function function;
    void* arguments;
  };

  Result<void> add(const char* name, Function function, void* arguments) {
    MutexLock lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.name == name) {
        return Error::format(ErrorCode::kRefused, "a callback is registered as %s already", name);
      }
    }
    entries_.push_back({name, function, arguments});
    return {};
  }

  Result<void> remove(const char* name) {
    MutexLock lock(mutex_);
    if (std::erase_if(entries_, [&](const Entry& entry) { return entry.name == name; }) == 0) {
      return Error::format(ErrorCode::kRefused, "no callback is registered as %s", name);
    }
    return {};
  }

  std::vector<Entry> all() const {
    MutexLock lock(mutex_);
    return entries_;
  }

 private:
  mutable Mutex mutex_{LockRank::kCallbacks};
  std::vector<Entry> entries_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
