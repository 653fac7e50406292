// SPDX-License-Identifier: Apache-2.0
//
// Settings that are remembered for devices, streams and threads and have no effect on memory.
// Rules: DEV-36, DEV-37, DEV-43.
#include "acl/acl_rt.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

static_assert(static_cast<int>(OverflowMode::kSaturation) == ACL_RT_OVERFLOW_MODE_SATURATION);
static_assert(static_cast<int>(OverflowMode::kInfNan) == ACL_RT_OVERFLOW_MODE_INFNAN);

Result<unsigned> core_kind(aclrtDevResLimitType type) {
  const auto kind = static_cast<unsigned>(type);
  if (kind < kCoreKinds) return kind;
  return Error::format(ErrorCode::kInvalidParam, "type is %d, which is no kind of core",
                       static_cast<int>(type));
}

uint32_t device_limit(Runtime& runtime, unsigned device, unsigned kind) {
  const ProductProfile& product = runtime.settings().product;
  const int hardware = kind == ACL_RT_DEV_RES_CUBE_CORE ? product.ai_cores : product.vector_cores;
  return runtime.devices().core_limit(device, kind).value_or(static_cast<uint32_t>(hardware));
}

uint32_t stream_limit(Runtime& runtime, const StreamReference& stream, unsigned kind) {
  const unsigned device = stream.device();
  return runtime.streams().registry().settings_of(stream).core_limits[kind].value_or(
      device_limit(runtime, device, kind));
}

// NULL is the default stream of the current context; a stream of any context will do.
Result<StreamReference> stream_argument(Runtime& runtime, aclrtStream stream) {
  if (stream != nullptr) return runtime.streams().find(handle_number(stream));
  US_TRY_ASSIGN(const ContextReference context, runtime.current_context());
  return context.default_stream;
}

}  // namespace

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  return guarded(US_CALL(mode), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    if (mode != ACL_RT_OVERFLOW_MODE_SATURATION && mode != ACL_RT_OVERFLOW_MODE_INFNAN) {
      return Error::format(ErrorCode::kInvalidParam, "mode is %d, which is no overflow mode",
                           static_cast<int>(mode));
    }
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    return runtime->devices().set_overflow_mode(context.device(), static_cast<OverflowMode>(mode));
  });
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  return guarded(US_CALL(out(mode)), [&]() -> Result<void> {
    US_TRY(require_pointer(mode, "mode"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    *mode = static_cast<aclrtFloatOverflowMode>(runtime->devices().overflow_mode(context.device()));
    return {};
  });
}

aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t* value) {
  return guarded(US_CALL(deviceId, type, out(value)), [&]() -> Result<void> {
    US_TRY(require_pointer(value, "value"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned device, runtime->devices().check(deviceId, "deviceId"));
    US_TRY_ASSIGN(const unsigned kind, core_kind(type));
    *value = device_limit(*runtime, device, kind);
    return {};
  });
}

aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value) {
  return guarded(US_CALL(deviceId, type, value), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned device, runtime->devices().check(deviceId, "deviceId"));
    US_TRY_ASSIGN(const unsigned kind, core_kind(type));
    runtime->devices().set_core_limit(device, kind, value);
    return {};
  });
}

aclError aclrtResetDeviceResLimit(int32_t deviceId) {
  return guarded(US_CALL(deviceId), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned device, runtime->devices().check(deviceId, "deviceId"));
    runtime->devices().clear_core_limits(device);
    return {};
  });
}

aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t* value) {
  return guarded(US_CALL(stream, type, out(value)), [&]() -> Result<void> {
    US_TRY(require_pointer(value, "value"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const StreamReference found, stream_argument(*runtime, stream));
    US_TRY_ASSIGN(const unsigned kind, core_kind(type));
    *value = stream_limit(*runtime, found, kind);
    return {};
  });
}

aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value) {
  return guarded(US_CALL(stream, type, value), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const StreamReference found, stream_argument(*runtime, stream));
    US_TRY_ASSIGN(const unsigned kind, core_kind(type));
    runtime->streams().registry().change_settings(
        found, [&](StreamSettings& settings) { settings.core_limits[kind] = value; });
    return {};
  });
}

aclError aclrtResetStreamResLimit(aclrtStream stream) {
  return guarded(US_CALL(stream), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const StreamReference found, stream_argument(*runtime, stream));
    runtime->streams().registry().change_settings(
        found, [](StreamSettings& settings) { settings.core_limits = {}; });
    return {};
  });
}

aclError aclrtUseStreamResInCurrentThread(aclrtStream stream) {
  return guarded(US_CALL(stream), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const StreamReference found, stream_argument(*runtime, stream));
    thread_state().limits_stream = found;
    return {};
  });
}

aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream) {
  return guarded(US_CALL(stream), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY(stream_argument(*runtime, stream));
    thread_state().limits_stream = {};
    return {};
  });
}

aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value) {
  return guarded(US_CALL(type, out(value)), [&]() -> Result<void> {
    US_TRY(require_pointer(value, "value"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned kind, core_kind(type));
    if (const StreamReference stream = thread_state().limits_stream; stream.valid()) {
      *value = stream_limit(*runtime, stream, kind);
      return {};
    }
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    *value = device_limit(*runtime, context.device(), kind);
    return {};
  });
}
