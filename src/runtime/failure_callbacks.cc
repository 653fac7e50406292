// SPDX-License-Identifier: Apache-2.0
#include "runtime/failure_callbacks.h"

#include <algorithm>

namespace understudy {

void FailureCallbacks::add(AnyFunction function, FailureObserver tell) {
  MutexLock lock(mutex_);
  if (std::ranges::find(functions_, function) == functions_.end()) functions_.push_back(function);
  observe_locked(tell);
}

void FailureCallbacks::remove(AnyFunction function, FailureObserver tell) {
  MutexLock lock(mutex_);
  std::erase(functions_, function);
  observe_locked(tell);
}

void FailureCallbacks::set_single(AnyFunction function, FailureObserver tell) {
  MutexLock lock(mutex_);
  single_ = function;
  observe_locked(tell);
}

std::vector<AnyFunction> FailureCallbacks::all() const {
  MutexLock lock(mutex_);
  std::vector<AnyFunction> functions = functions_;
  if (single_ != nullptr) functions.push_back(single_);
  return functions;
}

void FailureCallbacks::observe_locked(FailureObserver tell) {
  set_failure_observer(ObserverKind::kCallbacks,
                       functions_.empty() && single_ == nullptr ? nullptr : tell);
}

}  // namespace understudy
