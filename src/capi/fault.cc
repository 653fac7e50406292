// SPDX-License-Identifier: Apache-2.0
//
// Device faults, their repair, and time limits of tasks. A software device is healthy.
// Rules: ERR-11 to ERR-16.
#include <atomic>
#include <cstring>

#include "acl/acl_rt.h"
#include "capi/call.h"
#include "runtime/named_callbacks.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

using AbortCallbacks = NamedCallbacks<aclrtDeviceTaskAbortCallback>;

AbortCallbacks& abort_callbacks() {
  static auto* const callbacks = new AbortCallbacks;
  return *callbacks;
}

Result<void> announce(int32_t device, aclrtDeviceTaskAbortStage stage, uint32_t timeout) {
  for (const AbortCallbacks::Entry& entry : abort_callbacks().all()) {
    if (const int32_t code = entry.function(device, stage, timeout, entry.arguments); code != 0) {
      return Error::format(ErrorCode::kInternal, "callback %s returned %d", entry.name.c_str(),
                           code);
    }
  }
  return {};
}

Result<void> check_device(int32_t device_id) {
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  US_TRY(runtime->devices().check(device_id, "deviceId"));
  return {};
}

// How long an operator may run. Nothing runs that long here, but programs read back what they set.
constexpr uint64_t kMicrosecondsPerSecond = 1'000'000;
constexpr uint64_t kMicrosecondsPerMillisecond = 1'000;
std::atomic<uint64_t> execute_timeout{0};  // microseconds; 0: no limit
constexpr uint64_t kTimeoutStep = kMicrosecondsPerMillisecond;

}  // namespace

aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned device, runtime->devices().check(deviceId, "deviceId"));
    US_TRY(announce(deviceId, ACL_RT_DEVICE_TASK_ABORT_PRE, timeout));
    const Deadline deadline =
        timeout == 0 ? kNever : deadline_after(std::chrono::milliseconds(timeout));
    US_TRY(runtime->streams().abort_device(device, deadline));
    return announce(deviceId, ACL_RT_DEVICE_TASK_ABORT_POST, timeout);
  });
}

aclError aclrtSetDeviceTaskAbortCallback(const char* regName, aclrtDeviceTaskAbortCallback callback,
                                         void* args) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(regName, "regName"));
    if (callback == nullptr) return abort_callbacks().remove(regName);
    return abort_callbacks().add(regName, callback, args);
  });
}

aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray, size_t arraySize,
                            size_t* retSize) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(memUceInfoArray, "memUceInfoArray"));
    US_TRY(require_size(arraySize, "arraySize"));
    US_TRY(require_pointer(retSize, "retSize"));
    US_TRY(check_device(deviceId));
    *retSize = 0;
    return {};
  });
}

aclError aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray, size_t arraySize) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(memUceInfoArray, "memUceInfoArray"));
    if (arraySize > MAX_MEM_UCE_INFO_ARRAY_SIZE) {
      return invalid_argument("arraySize is %zu and at most %d", arraySize,
                              MAX_MEM_UCE_INFO_ARRAY_SIZE);
    }
    for (size_t i = 0; i < arraySize; ++i) {
      for (const size_t word : memUceInfoArray[i].reserved) {
        if (word != 0) return invalid_argument("memUceInfoArray[%zu].reserved is not 0", i);
      }
    }
    return check_device(deviceId);
  });
}

aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo* errorInfo) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(errorInfo, "errorInfo"));
    US_TRY(check_device(deviceId));
    memset(errorInfo, 0, sizeof *errorInfo);
    errorInfo->errorType = ACL_RT_NO_ERROR;
    return {};
  });
}

aclError aclrtRepairError(int32_t deviceId, const aclrtErrorInfo* errorInfo) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(errorInfo, "errorInfo"));
    return check_device(deviceId);
  });
}

aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
  return guarded(__func__, [&]() -> Result<void> {
    execute_timeout.store(timeout * kMicrosecondsPerSecond, std::memory_order_relaxed);
    return {};
  });
}

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(actualTimeout, "actualTimeout"));
    execute_timeout.store(timeout, std::memory_order_relaxed);
    *actualTimeout = timeout;
    return {};
  });
}

aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout) {
  return guarded(__func__, [&]() -> Result<void> {
    execute_timeout.store(timeout * kMicrosecondsPerMillisecond, std::memory_order_relaxed);
    return {};
  });
}

aclError aclrtGetOpTimeOutInterval(uint64_t* interval) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(interval, "interval"));
    *interval = kTimeoutStep;
    return {};
  });
}

aclError aclrtGetOpExecuteTimeout(uint32_t* const timeoutMs) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(timeoutMs, "timeoutMs"));
    *timeoutMs = static_cast<uint32_t>(execute_timeout.load(std::memory_order_relaxed) /
                                       kMicrosecondsPerMillisecond);
    return {};
  });
}

aclError aclrtGetThreadLastTaskId(uint32_t* taskId) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(taskId, "taskId"));
    *taskId = last_task_of_thread();
    return {};
  });
}
