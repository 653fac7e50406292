// SPDX-License-Identifier: Apache-2.0
//
// Streams: create, destroy, wait, stop. Rules: STREAM-01 to STREAM-22, STREAM-27.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"
#include "runtime/named_callbacks.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

using StateCallbacks = NamedCallbacks<aclrtStreamStateCallback>;

StateCallbacks& state_callbacks() {
  static auto* const callbacks = new StateCallbacks;
  return *callbacks;
}

void announce(aclrtStream stream, aclrtStreamState state) {
  for (const StateCallbacks::Entry& entry : state_callbacks().all()) {
    entry.function(stream, state, entry.arguments);
  }
}

// Work of other kinds than copies is queued there: nobody waits for it (STREAM-12).
constexpr uint32_t kUnattended =
    ACL_STREAM_PERSISTENT | ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;
constexpr uint32_t kKnownFlags =
    ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC | ACL_STREAM_HUGE | kUnattended;

Result<void> create(aclrtStream* stream, uint32_t priority, uint32_t flags) {
  US_TRY(require_pointer(stream, "stream"));
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
  const uint32_t known = flags & kKnownFlags;
  if ((known & ACL_STREAM_DEVICE_USE_ONLY) != 0 && known != ACL_STREAM_DEVICE_USE_ONLY) {
    return Error::format(ErrorCode::kRefused,
                         "flag is 0x%x; DEVICE_USE_ONLY does not go with other flags", flags);
  }
  if ((known & ACL_STREAM_HUGE) != 0) US_TRY(runtime->require(Feature::kHugeStreams));
  US_TRY_ASSIGN(const StreamReference created,
                runtime->streams().create({.owner = context.handle(),
                                           .device = context.device(),
                                           .priority = priority,
                                           .flags = flags,
                                           .is_default = false,
                                           .is_unattended = (known & kUnattended) != 0}));
  if (!context.valid()) {  // it ended meanwhile, and with it all streams that it had then
    (void)runtime->streams().destroy_at_once(created);
    return context_ended();
  }
  *stream = handle_pointer(created.handle());
  announce(*stream, ACL_RT_STREAM_STATE_CREATE_POST);
  return {};
}

Result<void> destroy(aclrtStream stream, Result<void> (Streams::*how)(const StreamReference&)) {
  US_TRY(require_pointer(stream, "stream"));
  US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
  if (!call.stream.stream->is_default.load()) announce(stream, ACL_RT_STREAM_STATE_DESTROY_PRE);
  return (call.runtime->streams().*how)(call.stream);
}

}  // namespace

aclError aclrtCreateStream(aclrtStream* stream) {
  return guarded(__func__, [&] { return create(stream, 0, 0); });
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  return guarded(__func__, [&] { return create(stream, priority, flag); });
}

aclError aclrtDestroyStream(aclrtStream stream) {
  return guarded(__func__, [&] { return destroy(stream, &Streams::destroy); });
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  return guarded(__func__, [&] { return destroy(stream, &Streams::destroy_at_once); });
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    return call.runtime->streams().synchronize(call.stream);
  });
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY_ASSIGN(const Deadline deadline, deadline_from(timeout));
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    return call.runtime->streams().synchronize(call.stream, deadline);
  });
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(status, "status"));
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    *status = Streams::is_complete(call.stream) ? ACL_STREAM_STATUS_COMPLETE
                                                : ACL_STREAM_STATUS_NOT_READY;
    return {};
  });
}

aclError aclrtStreamAbort(aclrtStream stream) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    call.runtime->streams().abort(call.stream);
    return {};
  });
}

aclError aclrtStreamStop(aclrtStream stream) {
  return guarded(__func__, [&]() -> Result<void> {
    if (stream == nullptr) return Error::format(ErrorCode::kRefused, "stream is NULL");
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    call.runtime->streams().stop_front(call.stream);
    return {};
  });
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(streamId, "streamId"));
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    *streamId = static_cast<int32_t>(call.stream.stream->index);
    return {};
  });
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(priority, "priority"));
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    *priority = call.stream.stream->priority.load();
    return {};
  });
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(flags, "flags"));
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    *flags = call.stream.stream->flags.load();
    return {};
  });
}

aclError aclrtGetStreamAvailableNum(uint32_t* streamCount) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(streamCount, "streamCount"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    *streamCount = runtime->streams().available(context.device());
    return {};
  });
}

aclError aclrtRegStreamStateCallback(const char* regName, aclrtStreamStateCallback callback,
                                     void* args) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(regName, "regName"));
    if (callback == nullptr) return state_callbacks().remove(regName);
    return state_callbacks().add(regName, callback, args);
  });
}
