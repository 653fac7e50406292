// SPDX-License-Identifier: Apache-2.0
//
// What went wrong, for people and for programs. Rules: ERR-01 to ERR-10.
#include <algorithm>
#include <vector>

#include "acl/acl.h"
#include "capi/call.h"
#include "stream/task_failure.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

// What a callback is told of a task that failed.
struct rtExceptionInfo {
  uint32_t task;
  uint32_t stream;
  uint32_t thread;
  uint32_t device;
  uint32_t code;
};

namespace {

Result<ThreadState*> thread_level(aclrtLastErrLevel level) {
  if (level == ACL_RT_THREAD_LEVEL) return &thread_state();
  return invalid_argument("level is %d and must be 0", static_cast<int>(level));
}

// Called when a task fails.
class ExceptionCallbacks {
 public:
  // Those who want to hear of it, in the order of their registration.
  std::vector<aclrtExceptionInfoCallback> all() const {
    MutexLock lock(mutex_);
    std::vector<aclrtExceptionInfoCallback> callbacks = callbacks_;
    if (single_ != nullptr) callbacks.push_back(single_);
    return callbacks;
  }
  void add(aclrtExceptionInfoCallback callback) {
    MutexLock lock(mutex_);
    callbacks_.push_back(callback);
    observe_locked();
  }
  bool remove(aclrtExceptionInfoCallback callback) {
    MutexLock lock(mutex_);
    const bool found = std::erase(callbacks_, callback) > 0;
    observe_locked();
    return found;
  }
  void set_single(aclrtExceptionInfoCallback callback) {
    MutexLock lock(mutex_);
    single_ = callback;
    observe_locked();
  }

 private:
  // Streams take a detour for failures that someone wants to hear of.
  void observe_locked() US_REQUIRES(mutex_) {
    set_failure_observer(callbacks_.empty() && single_ == nullptr ? nullptr : tell);
  }
  static void tell(const TaskFailure& failure);

  mutable Mutex mutex_{LockRank::kCallbacks};
  std::vector<aclrtExceptionInfoCallback> callbacks_ US_GUARDED_BY(mutex_);
  aclrtExceptionInfoCallback single_ US_GUARDED_BY(mutex_) = nullptr;
};

ExceptionCallbacks& exception_callbacks() {
  static auto* const callbacks = new ExceptionCallbacks;
  return *callbacks;
}

void ExceptionCallbacks::tell(const TaskFailure& failure) {
  rtExceptionInfo info{failure.task, failure.stream, failure.thread, failure.device,
                       static_cast<uint32_t>(published_code(failure.error->code()))};
  try {
    for (const aclrtExceptionInfoCallback callback : exception_callbacks().all()) callback(&info);
  } catch (...) {
    // There is nobody whom a callback's exception could be told.
  }
}

Result<void> require_callback(aclrtExceptionInfoCallback callback) {
  if (callback != nullptr) return {};
  return Error::format(ErrorCode::kRefused, "callback is NULL");
}

constexpr uint32_t kNoInformation = 0xFFFFFFFF;

}  // namespace

const char* aclGetRecentErrMsg(void) {
  try {
    ThreadState& thread = thread_state();
    Runtime* const runtime = Runtime::existing();
    thread.returned_text = runtime != nullptr ? runtime->take_error_texts() : thread.texts.take();
    return thread.returned_text.empty() ? nullptr : thread.returned_text.c_str();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  aclError last = ACL_SUCCESS;
  const aclError code = guarded(__func__, [&]() -> Result<void> {
    US_TRY_ASSIGN(const ThreadState* const thread, thread_level(level));
    last = thread->last_error;
    return {};
  });
  return code != ACL_SUCCESS ? code : last;
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  aclError last = ACL_SUCCESS;
  const aclError code = guarded(__func__, [&]() -> Result<void> {
    US_TRY_ASSIGN(ThreadState* const thread, thread_level(level));
    last = std::exchange(thread->last_error, ACL_SUCCESS);
    return {};
  });
  return code != ACL_SUCCESS ? code : last;
}

aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_callback(callback));
    exception_callbacks().add(callback);
    return {};
  });
}

aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_callback(callback));
    if (exception_callbacks().remove(callback)) return {};
    return Error::format(ErrorCode::kRefused, "callback was not registered");
  });
}

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) {
  return guarded(__func__, [&]() -> Result<void> {
    exception_callbacks().set_single(callback);
    return {};
  });
}

uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info != nullptr ? info->task : kNoInformation;
}
uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info != nullptr ? info->stream : kNoInformation;
}
uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info != nullptr ? info->thread : kNoInformation;
}
uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info != nullptr ? info->device : kNoInformation;
}
uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info != nullptr ? info->code : kNoInformation;
}
