// SPDX-License-Identifier: Apache-2.0
//
// Devices: set, reset, wait. Rules: DEV-01 to DEV-23, DEV-33, DEV-35.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"
#include "runtime/process.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

void announce(Runtime& runtime, unsigned device, aclrtDeviceState state) {
  runtime.choices().device_callbacks.for_each([&](const auto& callback) {
    const auto function = reinterpret_cast<aclrtDeviceStateCallback>(callback.function);
    function(device, state, callback.arguments);
  });
}

Result<void> reset(int32_t device_id, Result<void> (Devices::*how)(unsigned)) {
  const GatePass pass;
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  US_TRY_ASSIGN(const unsigned device, runtime->devices().check(device_id, "deviceId"));
  if (runtime->devices().is_set(device)) announce(*runtime, device, ACL_RT_DEVICE_STATE_RESET_PRE);
  US_TRY((runtime->devices().*how)(device));
  announce(*runtime, device, ACL_RT_DEVICE_STATE_RESET_POST);
  return {};
}

Result<void> wait_for_device(Deadline deadline) {
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  return runtime->wait_for_device(deadline);
}

}  // namespace

aclError aclrtSetDevice(int32_t deviceId) {
  return guarded(US_CALL(deviceId), [&]() -> Result<void> {
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned device, runtime->devices().check(deviceId, "deviceId"));
    announce(*runtime, device, ACL_RT_DEVICE_STATE_SET_PRE);
    US_TRY_ASSIGN(const auto context, runtime->devices().set(device));
    if (context) make_current(*context);
    announce(*runtime, device, ACL_RT_DEVICE_STATE_SET_POST);
    return {};
  });
}

aclError aclrtResetDevice(int32_t deviceId) {
  return guarded(US_CALL(deviceId), [&] { return reset(deviceId, &Devices::reset); });
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
  return guarded(US_CALL(deviceId), [&] { return reset(deviceId, &Devices::reset_at_once); });
}

aclError aclrtGetDevice(int32_t* deviceId) {
  return guarded(US_CALL(out(deviceId)), [&]() -> Result<void> {
    US_TRY(require_pointer(deviceId, "deviceId"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const ContextReference context, runtime->look_for_context());
    *deviceId = static_cast<int32_t>(context.device());
    return {};
  });
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  return guarded(US_CALL(out(count)), [&]() -> Result<void> {
    US_TRY(require_pointer(count, "count"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    *count = runtime->devices().count();
    return {};
  });
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  return guarded(US_CALL(out(runMode)), [&]() -> Result<void> {
    US_TRY(require_pointer(runMode, "runMode"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    *runMode = runtime->settings().product.run_mode == RunMode::kHost ? ACL_HOST : ACL_DEVICE;
    return {};
  });
}

aclError aclrtSynchronizeDevice(void) {
  return guarded(US_CALL(), [&] { return wait_for_device(kNever); });
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  return guarded(US_CALL(timeout), [&]() -> Result<void> {
    US_TRY_ASSIGN(const Deadline deadline, deadline_from(timeout));
    return wait_for_device(deadline);
  });
}

aclError aclrtDeviceGetBareTgid(int32_t* pid) {
  return guarded(US_CALL(out(pid)), [&]() -> Result<void> {
    US_TRY(require_pointer(pid, "pid"));
    US_TRY(runtime_with(Feature::kPeerStatus));
    *pid = current_process_id();
    return {};
  });
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) {
  return guarded(US_CALL(deviceId, out(flags), out(active)), [&]() -> Result<void> {
    US_TRY(require_pointer(active, "active"));
    if (flags != nullptr) return invalid_argument("flags is not NULL");
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned device, runtime->devices().check(deviceId, "deviceId"));
    *active = runtime->devices().has_default_context(device) ? 1 : 0;
    return {};
  });
}

aclError aclrtRegDeviceStateCallback(const char* regName, aclrtDeviceStateCallback callback,
                                     void* args) {
  return guarded(US_CALL(text(regName), callback, args), [&]() -> Result<void> {
    US_TRY(require_pointer(regName, "regName"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    return choose_callback(runtime->choices().device_callbacks, regName,
                           reinterpret_cast<AnyFunction>(callback), args);
  });
}
