// SPDX-License-Identifier: Apache-2.0
#include "runtime/error_listener.h"

#include "base/pause.h"
#include "platform/fork_sentinel.h"

namespace understudy {

namespace {

thread_local constinit bool in_listener [[gnu::tls_model("initial-exec")]] = false;

}  // namespace

constinit std::atomic<bool> ErrorListener::is_set_{false};
constinit std::atomic<uint32_t> ErrorListener::uses_{0};
constinit std::atomic<bool> ErrorListener::is_being_set_{false};
constinit AnyFunction ErrorListener::function_ = nullptr;
constinit void* ErrorListener::user_data_ = nullptr;
// When the library is loaded, as for every other handler of fork.
const bool ErrorListener::registered_ = (platform::call_in_fork_child(begin_anew_in_child), true);

Result<void> ErrorListener::set(AnyFunction function, void* user_data, FailureObserver tell) {
  if (in_listener) {
    return Error::format(ErrorCode::kInvalidParam, "a listener cannot replace the listener");
  }
  while (is_being_set_.exchange(true, std::memory_order_acquire)) nap();
  is_set_.store(false);
  while (uses_.load() != 0) nap();
  function_ = function;
  user_data_ = user_data;
  is_set_.store(function != nullptr);
  set_failure_observer(ObserverKind::kErrorListener, function != nullptr ? tell : nullptr);
  is_being_set_.store(false, std::memory_order_release);
  return {};
}

ErrorListener::Use::Use() {
  if (!is_set_.load(std::memory_order_relaxed) || in_listener) return;
  uses_.fetch_add(1);
  if (!is_set_.load()) {
    uses_.fetch_sub(1);
    return;
  }
  is_counted_ = true;
  in_listener = true;
}

ErrorListener::Use::~Use() {
  if (!is_counted_) return;
  in_listener = false;
  uses_.fetch_sub(1);
}

// The thread that forked may be in the listener, and returns from it here as well.
void ErrorListener::begin_anew_in_child() {
  is_set_.store(false);
  uses_.store(in_listener ? 1 : 0);
  is_being_set_.store(false);
}

}  // namespace understudy
