// SPDX-License-Identifier: Apache-2.0
//
// Functions of the program that are told of every task that fails, in the order of their
// registration, and one more by an older call, which has a single place. Any thread may call
// anything; functions are called without a lock.
#pragma once

#include <vector>

#include "base/mutex.h"
#include "runtime/named_callbacks.h"
#include "stream/task_failure.h"

namespace understudy {

class FailureCallbacks {
 public:
  // `tell` calls a failed task's functions. Streams take a detour for it only while there is one.
  // A function that is registered already stays where it is.
  void add(AnyFunction function, FailureObserver tell);
  // One that is not registered may be removed too. Does not wait for a call of it to return.
  void remove(AnyFunction function, FailureObserver tell);
  // Null for none.
  void set_single(AnyFunction function, FailureObserver tell);

  std::vector<AnyFunction> all() const;

 private:
  void observe_locked(FailureObserver tell) US_REQUIRES(mutex_);

  mutable Mutex mutex_{LockRank::kCallbacks};
  std::vector<AnyFunction> functions_ US_GUARDED_BY(mutex_);
  AnyFunction single_ US_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace understudy
