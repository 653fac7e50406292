// SPDX-License-Identifier: Apache-2.0
//
// Device faults, their repair, and time limits of tasks. A software device is healthy.
// Rules: ERR-11 to ERR-16, ERR-18 to ERR-20.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "acl/acl_rt.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

Result<void> announce(Runtime& runtime, int32_t device, aclrtDeviceTaskAbortStage stage,
                      uint32_t timeout) {
  const auto& callbacks = runtime.choices().abort_callbacks;
  for (auto next = callbacks.next_after(0); next; next = callbacks.next_after(next->number)) {
    const auto function = reinterpret_cast<aclrtDeviceTaskAbortCallback>(next->function);
    if (const int32_t code = function(device, stage, timeout, next->arguments); code != 0) {
      return Error::format(ErrorCode::kInternal, "callback %s returned %d",
                           callbacks.name_of(*next).c_str(), code);
    }
  }
  return {};
}

Result<void> check_device(int32_t device_id) {
  US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kFaultControl));
  US_TRY(runtime->devices().check(device_id, "deviceId"));
  return {};
}

constexpr uint64_t kMicrosecondsPerSecond = 1'000'000;
constexpr uint64_t kMicrosecondsPerMillisecond = 1'000;
constexpr std::chrono::milliseconds kLongestAbort = std::chrono::minutes(36);

// 0: no limit (ERR-11, ERR-18).
Deadline abort_deadline(uint32_t timeout) {
  if (timeout == 0) return kNever;
  return deadline_after(std::min(std::chrono::milliseconds(timeout), kLongestAbort));
}

}  // namespace

aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout) {
  return guarded(US_CALL(deviceId, timeout), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kFaultControl));
    US_TRY_ASSIGN(const unsigned device, runtime->devices().check(deviceId, "deviceId"));
    US_TRY(announce(*runtime, deviceId, ACL_RT_DEVICE_TASK_ABORT_PRE, timeout));
    US_TRY(runtime->streams().abort_device(device, abort_deadline(timeout)));
    return announce(*runtime, deviceId, ACL_RT_DEVICE_TASK_ABORT_POST, timeout);
  });
}

aclError aclrtSetDeviceTaskAbortCallback(const char* regName, aclrtDeviceTaskAbortCallback callback,
                                         void* args) {
  return guarded(US_CALL(text(regName), callback, args), [&]() -> Result<void> {
    US_TRY(require_pointer(regName, "regName"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kFaultControl));
    return choose_callback(runtime->choices().abort_callbacks, regName,
                           reinterpret_cast<AnyFunction>(callback), args);
  });
}

aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray, size_t arraySize,
                            size_t* retSize) {
  return guarded(US_CALL(deviceId, memUceInfoArray, arraySize, out(retSize)),
                 [&]() -> Result<void> {
                   US_TRY(require_pointer(memUceInfoArray, "memUceInfoArray"));
                   US_TRY(require_size(arraySize, "arraySize"));
                   US_TRY(require_pointer(retSize, "retSize"));
                   US_TRY(check_device(deviceId));
                   *retSize = 0;
                   return {};
                 });
}

aclError aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray, size_t arraySize) {
  return guarded(US_CALL(deviceId, memUceInfoArray, arraySize), [&]() -> Result<void> {
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
  return guarded(US_CALL(deviceId, errorInfo), [&]() -> Result<void> {
    US_TRY(require_pointer(errorInfo, "errorInfo"));
    US_TRY(check_device(deviceId));
    memset(errorInfo, 0, sizeof *errorInfo);
    errorInfo->errorType = ACL_RT_NO_ERROR;
    return {};
  });
}

aclError aclrtRepairError(int32_t deviceId, const aclrtErrorInfo* errorInfo) {
  return guarded(US_CALL(deviceId, errorInfo), [&]() -> Result<void> {
    US_TRY(require_pointer(errorInfo, "errorInfo"));
    return check_device(deviceId);
  });
}

aclError aclrtSetOpExecuteTimeOut(uint32_t timeout) {
  return guarded(US_CALL(timeout), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    runtime->operator_timeout().set(timeout * kMicrosecondsPerSecond);
    return {};
  });
}

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout) {
  return guarded(US_CALL(timeout, out(actualTimeout)), [&]() -> Result<void> {
    US_TRY(require_pointer(actualTimeout, "actualTimeout"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    *actualTimeout = runtime->operator_timeout().set(timeout);
    return {};
  });
}

aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout) {
  return guarded(US_CALL(timeout), [&]() -> Result<void> {
    (void)timeout;
    return Error::format(ErrorCode::kNotSupported,
                         "no product takes milliseconds; aclrtSetOpExecuteTimeOutV2 takes "
                         "microseconds");
  });
}

aclError aclrtGetOpTimeOutInterval(uint64_t* interval) {
  return guarded(US_CALL(out(interval)), [&]() -> Result<void> {
    US_TRY(require_pointer(interval, "interval"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    *interval = runtime->operator_timeout().step();
    return {};
  });
}

aclError aclrtGetOpExecuteTimeout(uint32_t* const timeoutMs) {
  return guarded(US_CALL(out(timeoutMs)), [&]() -> Result<void> {
    US_TRY(require_pointer(timeoutMs, "timeoutMs"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    const uint64_t timeout = runtime->operator_timeout().value();
    *timeoutMs = timeout == OperatorTimeout::kNoLimit
                     ? std::numeric_limits<uint32_t>::max()
                     : static_cast<uint32_t>(timeout / kMicrosecondsPerMillisecond);
    return {};
  });
}

aclError aclrtGetThreadLastTaskId(uint32_t* taskId) {
  return guarded(US_CALL(out(taskId)), [&]() -> Result<void> {
    US_TRY(require_pointer(taskId, "taskId"));
    *taskId = last_task_of_thread();
    return {};
  });
}
