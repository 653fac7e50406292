// SPDX-License-Identifier: Apache-2.0
//
// What went wrong, for people and for programs. Rules: ERR-01 to ERR-10, ERR-17.
#include <utility>

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

// Called when a task fails, by a thread of the library.
US_CATCHES_FORCED_UNWIND void tell(const TaskFailure& failure) {
  rtExceptionInfo info{failure.task, failure.stream, failure.thread, failure.device,
                       static_cast<uint32_t>(published_code(failure.error->code()))};
  Runtime* const runtime = Runtime::existing();
  if (runtime == nullptr) return;
  try {
    for (const AnyFunction function : runtime->choices().failure_callbacks.all()) {
      reinterpret_cast<aclrtExceptionInfoCallback>(function)(&info);
    }
  } catch (const ForcedUnwind&) {
    throw;  // it ended its thread
  } catch (...) {
    // A callback's exception has no caller that it could be reported to.
  }
}

Result<void> require_callback(aclrtExceptionInfoCallback callback) {
  if (callback != nullptr) return {};
  return Error::format(ErrorCode::kInvalidParam, "callback is NULL");
}

constexpr uint32_t kNoInformation = 0xFFFFFFFF;

}  // namespace

const char* aclGetRecentErrMsg(void) {
  return watched_unfailing(US_CALL(), []() -> const char* {
    try {
      ThreadState& thread = thread_state();
      thread.returned_text = Runtime::take_error_texts();
      return thread.returned_text.empty() ? nullptr : thread.returned_text.c_str();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  });
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  aclError last = ACL_SUCCESS;
  const aclError code = guarded(US_CALL(level), [&]() -> Result<void> {
    US_TRY_ASSIGN(const ThreadState* const thread, thread_level(level));
    last = thread->last_error;
    return {};
  });
  return code != ACL_SUCCESS ? code : last;
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  aclError last = ACL_SUCCESS;
  const aclError code = guarded(US_CALL(level), [&]() -> Result<void> {
    US_TRY_ASSIGN(ThreadState* const thread, thread_level(level));
    last = std::exchange(thread->last_error, ACL_SUCCESS);
    return {};
  });
  return code != ACL_SUCCESS ? code : last;
}

aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback) {
  return guarded(US_CALL(callback), [&]() -> Result<void> {
    US_TRY(require_callback(callback));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    runtime->choices().failure_callbacks.add(reinterpret_cast<AnyFunction>(callback), tell);
    return {};
  });
}

aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback) {
  return guarded(US_CALL(callback), [&]() -> Result<void> {
    US_TRY(require_callback(callback));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    runtime->choices().failure_callbacks.remove(reinterpret_cast<AnyFunction>(callback), tell);
    return {};
  });
}

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) {
  return guarded(US_CALL(callback), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    runtime->choices().failure_callbacks.set_single(reinterpret_cast<AnyFunction>(callback), tell);
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
