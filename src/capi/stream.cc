// SPDX-License-Identifier: Apache-2.0
//
// Streams: create, destroy, wait, stop. Rules: STREAM-01 to STREAM-22, STREAM-27 to STREAM-34.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"
#include "observe/history.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

void announce(Runtime& runtime, aclrtStream stream, aclrtStreamState state) {
  runtime.choices().stream_callbacks.for_each([&](const auto& callback) {
    reinterpret_cast<aclrtStreamStateCallback>(callback.function)(stream, state,
                                                                  callback.arguments);
  });
}

// Work of other kinds than copies is queued there: synchronisations do not wait for it (STREAM-12).
constexpr uint32_t kUnattended =
    ACL_STREAM_PERSISTENT | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;
constexpr uint32_t kKnownFlags =
    ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_HUGE | kUnattended;

Result<void> create(aclrtStream* stream, uint32_t priority, uint32_t flags) {
  US_TRY(require_pointer(stream, "stream"));
  const GatePass pass;
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
  const uint32_t known = flags & kKnownFlags;
  if ((known & ACL_STREAM_DEVICE_USE_ONLY) != 0 && known != ACL_STREAM_DEVICE_USE_ONLY) {
    return Error::format(ErrorCode::kInvalidParam,
                         "flag is 0x%x; DEVICE_USE_ONLY does not go with other flags", flags);
  }
  US_TRY_ASSIGN(const StreamReference created,
                runtime->streams().create(
                    {.owner = context.handle(),
                     .device = context.device(),
                     .priority = priority,
                     .flags = flags,
                     .is_unattended = (known & kUnattended) != 0,
                     .holds_tasks = (known & ACL_STREAM_PERSISTENT) != 0,
                     .overflow_mode = runtime->devices().overflow_mode(context.device())}));
  if (!context.valid()) {  // it ended meanwhile, and with it all streams that it had then
    (void)runtime->streams().destroy_at_once(created);
    return context_ended();
  }
  History::begin({ObjectKind::kStream, created.handle(), 0, static_cast<int32_t>(context.device()),
                  context.handle()});
  *stream = handle_pointer(created.handle());
  announce(*runtime, *stream, ACL_RT_STREAM_STATE_CREATE_POST);
  return {};
}

Error null_stream() { return Error::format(ErrorCode::kInvalidParam, "stream is NULL"); }

// Models bind streams; there are none (STREAM-31).
Error not_bound_to_a_model() {
  return Error::format(ErrorCode::kNotSupported,
                       "only streams of a model switch each other, and there are no models");
}

Result<void> destroy(aclrtStream stream, Result<void> (Streams::*how)(const StreamReference&)) {
  US_TRY(require_pointer(stream, "stream"));
  const GatePass pass;
  US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
  if (!call.stream.is_default()) announce(*call.runtime, stream, ACL_RT_STREAM_STATE_DESTROY_PRE);
  const ObjectEnd end(ObjectKind::kStream, handle_number(stream));
  US_TRY((call.runtime->streams().*how)(call.stream));
  end.confirm();
  return {};
}

}  // namespace

aclError aclrtCreateStream(aclrtStream* stream) {
  return guarded(US_CALL(out(stream)), [&] { return create(stream, 0, 0); });
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  return guarded(US_CALL(out(stream), priority, flag),
                 [&] { return create(stream, priority, flag); });
}

aclError aclrtDestroyStream(aclrtStream stream) {
  return guarded(US_CALL(stream), [&] { return destroy(stream, &Streams::destroy); });
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  return guarded(US_CALL(stream), [&] { return destroy(stream, &Streams::destroy_at_once); });
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  return guarded(US_CALL(stream), [&]() -> Result<void> {
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    return call.runtime->streams().synchronize(call.stream);
  });
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  return guarded(US_CALL(stream, timeout), [&]() -> Result<void> {
    US_TRY_ASSIGN(const Deadline deadline, deadline_from(timeout));
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    return call.runtime->streams().synchronize(call.stream, deadline);
  });
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  return guarded(US_CALL(stream, out(status)), [&]() -> Result<void> {
    US_TRY(require_pointer(status, "status"));
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    *status = call.runtime->streams().is_complete(call.stream) ? ACL_STREAM_STATUS_COMPLETE
                                                               : ACL_STREAM_STATUS_NOT_READY;
    return {};
  });
}

aclError aclrtStreamAbort(aclrtStream stream) {
  return guarded(US_CALL(stream), [&]() -> Result<void> {
    US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kTaskControl, stream));
    call.runtime->streams().abort(call.stream);
    return {};
  });
}

aclError aclrtStreamStop(aclrtStream stream) {
  return guarded(US_CALL(stream), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kTaskControl));
    if (stream == nullptr) return null_stream();
    US_TRY_ASSIGN(const StreamCall call, stream_call(*runtime, stream));
    runtime->streams().stop_front(call.stream);
    return {};
  });
}

aclError aclrtPersistentTaskClean(aclrtStream stream) {
  return guarded(US_CALL(stream), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kPersistentTasks));
    if (stream == nullptr) return null_stream();
    US_TRY_ASSIGN(const StreamCall call, stream_call(*runtime, stream));
    if (!call.stream.holds_tasks()) {
      return Error::format(ErrorCode::kInvalidParam, "stream %p was created without PERSISTENT",
                           stream);
    }
    return {};  // what it holds was let go when it came: see Streams::submit
  });
}

aclError aclrtActiveStream(aclrtStream activeStream, aclrtStream stream) {
  return guarded(US_CALL(activeStream, stream), [&]() -> Result<void> {
    US_TRY(require_pointer(activeStream, "activeStream"));
    US_TRY(require_pointer(stream, "stream"));
    return not_bound_to_a_model();
  });
}

aclError aclrtSwitchStream(void* leftValue, aclrtCondition cond, void* rightValue,
                           aclrtCompareDataType dataType, aclrtStream trueStream,
                           aclrtStream falseStream, aclrtStream stream) {
  return guarded(US_CALL(leftValue, cond, rightValue, dataType, trueStream, falseStream, stream),
                 [&]() -> Result<void> {
                   (void)cond;
                   (void)dataType;
                   US_TRY(require_pointer(leftValue, "leftValue"));
                   US_TRY(require_pointer(rightValue, "rightValue"));
                   US_TRY(require_pointer(trueStream, "trueStream"));
                   if (falseStream != nullptr) return invalid_argument("falseStream is not NULL");
                   US_TRY(require_pointer(stream, "stream"));
                   return not_bound_to_a_model();
                 });
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
  return guarded(US_CALL(stream, out(streamId)), [&]() -> Result<void> {
    US_TRY(require_pointer(streamId, "streamId"));
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    *streamId = static_cast<int32_t>(call.stream.id());
    return {};
  });
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority) {
  return guarded(US_CALL(stream, out(priority)), [&]() -> Result<void> {
    US_TRY(require_pointer(priority, "priority"));
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    *priority = call.stream.priority();
    return {};
  });
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags) {
  return guarded(US_CALL(stream, out(flags)), [&]() -> Result<void> {
    US_TRY(require_pointer(flags, "flags"));
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    *flags = call.stream.flags();
    return {};
  });
}

aclError aclrtGetStreamAvailableNum(uint32_t* streamCount) {
  return guarded(US_CALL(out(streamCount)), [&]() -> Result<void> {
    US_TRY(require_pointer(streamCount, "streamCount"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    *streamCount = runtime->streams().registry().available(context.device());
    return {};
  });
}

aclError aclrtRegStreamStateCallback(const char* regName, aclrtStreamStateCallback callback,
                                     void* args) {
  return guarded(US_CALL(text(regName), callback, args), [&]() -> Result<void> {
    US_TRY(require_pointer(regName, "regName"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    return choose_callback(runtime->choices().stream_callbacks, regName,
                           reinterpret_cast<AnyFunction>(callback), args);
  });
}
