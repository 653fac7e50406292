// SPDX-License-Identifier: Apache-2.0
//
// Events that processes share. Rules: XPROC-01, XPROC-02, XPROC-13.
#include <cstring>
#include <span>

#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"
#include "sharing/share_names.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle* handle) {
  return guarded(US_CALL(event, out(handle)), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    US_TRY(require_pointer(handle, "handle"));
    US_TRY(runtime_with(Feature::kIpcEvents));
    US_TRY_ASSIGN(const EventCall call, event_call(event));
    if (call.event.is_opened()) {
      return Error::format(ErrorCode::kNotSupported, "event %p was opened by a handle", event);
    }
    US_TRY_ASSIGN(const ShareToken token, call.runtime->events().token_of(call.event));
    write_blob(std::as_writable_bytes(std::span(handle->reserved)), BlobKind::kEvent, token,
               call.runtime->server().id());
    return {};
  });
}

aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent* event) {
  return guarded(US_CALL(handle, out(event)), [&]() -> Result<void> {
    US_TRY(require_pointer(event, "event"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kIpcEvents));
    US_TRY_ASSIGN(const unsigned device, runtime->current_device());
    US_TRY_ASSIGN(const BlobToken blob, read_blob(std::as_bytes(std::span(handle.reserved)),
                                                  BlobKind::kEvent, runtime->server().id()));
    if (!blob.is_whole) {
      return Error::format(ErrorCode::kInvalidHandle, "handle is not one that was issued");
    }
    US_TRY_ASSIGN(const EventReference opened, runtime->events().open(blob.token, device));
    *event = handle_pointer(Events::handle_of(opened));
    return {};
  });
}
