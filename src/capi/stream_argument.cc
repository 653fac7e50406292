// SPDX-License-Identifier: Apache-2.0
#include "capi/stream_argument.h"

namespace understudy::capi {

Result<StreamCall> stream_call(Runtime& runtime, aclrtStream stream) {
  US_TRY_ASSIGN(const ContextReference context, runtime.current_context());
  if (stream == nullptr) return StreamCall{&runtime, context, context.default_stream};
  US_TRY_ASSIGN(const StreamReference found, runtime.streams().find(handle_number(stream)));
  if (found.owner() != context.handle()) {
    return Error::format(ErrorCode::kOtherContext,
                         "stream %p belongs to another context than the current one", stream);
  }
  return StreamCall{&runtime, context, found};
}

Result<StreamCall> stream_call(aclrtStream stream) {
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  return stream_call(*runtime, stream);
}

Result<StreamCall> stream_call(Feature feature, aclrtStream stream) {
  US_TRY_ASSIGN(Runtime* const runtime, runtime_with(feature));
  return stream_call(*runtime, stream);
}

Result<EventCall> event_call(aclrtEvent event) {
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  US_TRY_ASSIGN(const EventReference found, runtime->events().find(handle_number(event)));
  return EventCall{runtime, found};
}

Result<NotifyReference> create_notify(Runtime& runtime, NotifyFamily family) {
  US_TRY_ASSIGN(const ContextReference context, runtime.current_context());
  US_TRY_ASSIGN(const NotifyReference made, runtime.notifies().create(context.device(), family));
  US_TRY(keep_while_context_lives(runtime, context, made));
  return made;
}

Result<void> keep_while_context_lives(Runtime& runtime, const ContextReference& context,
                                      const NotifyReference& notify) {
  if (context.valid()) [[likely]]
    return {};
  // The reset of its device ended the notifies of that moment.
  (void)runtime.notifies().destroy(notify);
  return context_ended();
}

Error context_ended() {
  return Error::format(ErrorCode::kNoContext, "the context ended during the call");
}

Result<Deadline> deadline_from(int32_t timeout) {
  if (timeout == -1) return kNever;
  if (timeout > 0) return deadline_after(std::chrono::milliseconds(timeout));
  return Error::format(ErrorCode::kInvalidParam, "timeout is %d and must be -1 or positive",
                       timeout);
}

}  // namespace understudy::capi
