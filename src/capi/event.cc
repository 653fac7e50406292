// SPDX-License-Identifier: Apache-2.0
//
// Events. Rules: EVENT, STREAM-14 to STREAM-17.
#include <optional>

#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

constexpr uint32_t kOrdinaryFlags =
    ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE;

// EVENT-19: these take one of the device's numbers when they are made, all others when they are
// recorded, and never run out of them here.
constexpr uint32_t kLimitedFlags = ACL_EVENT_SYNC | ACL_EVENT_EXTERNAL;
enum class Limit : uint8_t { kByFlags, kNone };

Result<void> create(aclrtEvent* event, EventFamily family, uint32_t flags, Limit limit) {
  const GatePass pass;
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
  const bool classic = family == EventFamily::kClassic;
  const bool ordinary = flags != 0 && (flags & ~kOrdinaryFlags) == 0;
  const bool alone = classic ? flags == ACL_EVENT_EXTERNAL || flags == ACL_EVENT_DEVICE_USE_ONLY
                             : flags == ACL_EVENT_IPC;
  if (!ordinary && !alone) {
    return Error::format(ErrorCode::kInvalidParam, "flag is 0x%x, which is no kind of %s event",
                         flags, classic ? "classic" : "Ex");
  }
  if (flags == ACL_EVENT_IPC) US_TRY(runtime->require(Feature::kIpcEvents));
  US_TRY_ASSIGN(const EventReference created,
                runtime->events().create(
                    {.device = context.device(),
                     .family = flags == ACL_EVENT_IPC ? EventFamily::kIpc : family,
                     .can_reset = classic && (flags & ACL_EVENT_SYNC) != 0,
                     .has_time = (flags & ACL_EVENT_TIME_LINE) != 0,
                     .is_limited = limit == Limit::kByFlags && (flags & kLimitedFlags) != 0}));
  if (!context.valid()) {  // its device was reset meanwhile, which ended the events of that moment
    (void)runtime->events().destroy(created);
    return context_ended();
  }
  *event = handle_pointer(Events::handle_of(created));
  return {};
}

// A stream and an event that are known to be good.
struct EventOnStream {
  StreamCall on;
  EventReference event;

  Events& events() const { return on.runtime->events(); }
};

Result<EventOnStream> event_on_stream(aclrtEvent event, aclrtStream stream) {
  US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
  US_TRY_ASSIGN(const EventReference found, call.runtime->events().find(handle_number(event)));
  return EventOnStream{call, found};
}

// Flags of a record or a wait (EVENT-20).
Result<void> check_flag(uint32_t flag) {
  if (flag > ACL_EVENT_WAIT_EXTERNAL)
    return invalid_argument("flag is %u and must be 0 or 1", flag);
  US_TRY(runtime_with(Feature::kEventFlags));
  return {};
}

// After the checks of stream and event.
Result<void> refuse_external(uint32_t flag) {
  if (flag != ACL_EVENT_WAIT_EXTERNAL) return {};
  return Error::format(ErrorCode::kNotSupported,
                       "flag is EXTERNAL, which a graph capture alone has");
}
static_assert(ACL_EVENT_WAIT_EXTERNAL == ACL_EVENT_RECORD_EXTERNAL);

Result<void> record(aclrtEvent event, aclrtStream stream, uint32_t flag) {
  const GatePass pass;
  US_TRY_ASSIGN(const EventOnStream call, event_on_stream(event, stream));
  US_TRY(refuse_external(flag));
  return call.events().record(call.event, call.on.stream);
}

// Without a limit of its own the wait has that of aclrtSetOpWaitTimeout.
Result<void> let_wait(aclrtStream stream, aclrtEvent event, std::optional<uint32_t> seconds,
                      uint32_t flag = ACL_EVENT_WAIT_DEFAULT) {
  const GatePass pass;
  US_TRY_ASSIGN(const EventOnStream call, event_on_stream(event, stream));
  US_TRY(refuse_external(flag));
  return call.events().let_wait(call.on.stream, call.event, seconds);
}

// What another process opened can be recorded, waited for, asked and destroyed, no more (XPROC-02).
Result<EventCall> own_event(aclrtEvent event) {
  US_TRY_ASSIGN(const EventCall call, event_call(event));
  if (!call.event.is_opened()) return call;
  return Error::format(ErrorCode::kNotSupported, "event %p was opened by a handle", event);
}

Result<EventCall> classic_event(aclrtEvent event) {
  US_TRY_ASSIGN(const EventCall call, own_event(event));
  if (call.event.family() == EventFamily::kClassic) return call;
  return Error::format(ErrorCode::kNotSupported, "event %p is not a classic event", event);
}

}  // namespace

aclError aclrtCreateEvent(aclrtEvent* event) {
  return guarded(US_CALL(out(event)), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    return create(event, EventFamily::kClassic, kOrdinaryFlags, Limit::kNone);
  });
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  return guarded(US_CALL(out(event), flag), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    return create(event, EventFamily::kClassic, flag, Limit::kByFlags);
  });
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  return guarded(US_CALL(out(event), flag), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    return create(event, EventFamily::kEx, flag, Limit::kNone);
  });
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  return guarded(US_CALL(event), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    const GatePass pass;
    US_TRY_ASSIGN(const EventCall call, event_call(event));
    return call.runtime->events().destroy(call.event);
  });
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  return guarded(US_CALL(event, stream), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    return record(event, stream, ACL_EVENT_RECORD_DEFAULT);
  });
}

aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) {
  return guarded(US_CALL(event, stream, flag), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    US_TRY(check_flag(flag));
    return record(event, stream, flag);
  });
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  return guarded(US_CALL(event, stream), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    const GatePass pass;
    US_TRY_ASSIGN(const EventOnStream call, event_on_stream(event, stream));
    return call.events().reset(call.event, call.on.stream);
  });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return guarded(US_CALL(stream, event), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    return let_wait(stream, event, std::nullopt);
  });
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout) {
  return guarded(US_CALL(stream, event, timeout), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    if (timeout < 0) {
      return Error::format(ErrorCode::kInvalidParam, "timeout is %d and must not be negative",
                           timeout);
    }
    return let_wait(stream, event, static_cast<uint32_t>(timeout));
  });
}

aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout,
                                      uint32_t flag) {
  return guarded(US_CALL(stream, event, timeout, flag), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    US_TRY(check_flag(flag));
    return let_wait(stream, event, timeout, flag);
  });
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
  return guarded(US_CALL(timeout), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    runtime->events().set_default_wait_limit(timeout);
    return {};
  });
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  return guarded(US_CALL(event, out(status)), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    US_TRY(require_pointer(status, "status"));
    US_TRY_ASSIGN(const EventCall call, event_call(event));
    US_TRY_ASSIGN(const bool complete, call.runtime->events().is_complete(call.event));
    *status = complete ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return {};
  });
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  return guarded(US_CALL(event, out(status)), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    US_TRY(require_pointer(status, "status"));
    US_TRY_ASSIGN(const EventCall call, classic_event(event));
    US_TRY_ASSIGN(const bool complete, call.runtime->events().is_complete(call.event));
    *status = complete ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    return {};
  });
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  return guarded(US_CALL(event, out(status)), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    US_TRY(require_pointer(status, "status"));
    US_TRY_ASSIGN(const EventCall call, classic_event(event));
    US_TRY_ASSIGN(const bool over, call.runtime->events().waits_are_over(call.event));
    *status = over ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
    return {};
  });
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return guarded(US_CALL(event), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    US_TRY_ASSIGN(const EventCall call, event_call(event));
    return call.runtime->events().synchronize(call.event);
  });
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  return guarded(US_CALL(event, timeout), [&]() -> Result<void> {
    if (timeout < -1) US_TRY(deadline_from(timeout));  // before all else (EVENT-15)
    US_TRY(require_pointer(event, "event"));
    US_TRY_ASSIGN(const Deadline deadline, deadline_from(timeout));
    US_TRY_ASSIGN(const EventCall call, event_call(event));
    return call.runtime->events().synchronize(call.event, deadline);
  });
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  return guarded(US_CALL(out(ms), startEvent, endEvent), [&]() -> Result<void> {
    US_TRY(require_pointer(ms, "ms"));
    US_TRY(require_pointer(startEvent, "startEvent"));
    US_TRY(require_pointer(endEvent, "endEvent"));
    US_TRY_ASSIGN(const EventCall first, own_event(startEvent));
    US_TRY_ASSIGN(const EventCall second, own_event(endEvent));
    US_TRY_ASSIGN(const Clock::time_point start, first.runtime->events().time(first.event));
    US_TRY_ASSIGN(const Clock::time_point end, second.runtime->events().time(second.event));
    if (end < start) {
      return Error::format(ErrorCode::kTimesReversed, "endEvent was reached before startEvent");
    }
    *ms = std::chrono::duration<float, std::milli>(end - start).count();
    return {};
  });
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  return guarded(US_CALL(event, out(timestamp)), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    US_TRY(require_pointer(timestamp, "timestamp"));
    US_TRY_ASSIGN(const EventCall call, own_event(event));
    US_TRY_ASSIGN(const Clock::time_point time, call.runtime->events().time(call.event));
    const auto since_boot =
        std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch());
    *timestamp = static_cast<uint64_t>(since_boot.count());
    return {};
  });
}

aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId) {
  return guarded(US_CALL(event, out(eventId)), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    US_TRY(require_pointer(eventId, "eventId"));
    US_TRY_ASSIGN(const EventCall call, own_event(event));
    *eventId = call.event.id();
    return {};
  });
}

aclError aclrtGetEventAvailNum(uint32_t* eventCount) {
  return guarded(US_CALL(out(eventCount)), [&]() -> Result<void> {
    US_TRY(require_pointer(eventCount, "eventCount"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    *eventCount = runtime->events().available(context.device());
    return {};
  });
}
