// SPDX-License-Identifier: Apache-2.0
//
// What all functions do with a stream, an event, a notify or a limit of time.
#pragma once

#include "acl/acl_base.h"
#include "base/deadline.h"
#include "capi/call.h"

namespace understudy::capi {

// A call on a stream, once its context and its stream are known to be good.
struct StreamCall {
  Runtime* runtime;
  ContextReference context;
  StreamReference stream;

  Result<void> submit(const Task& task) const {
    US_TRY(runtime->streams().submit(stream, task));
    return {};
  }
  unsigned device() const { return context.device(); }
};

// NULL is the default stream of the current context (GEN-03 to GEN-06).
Result<StreamCall> stream_call(aclrtStream stream);
// The same for a runtime that the caller has.
Result<StreamCall> stream_call(Runtime& runtime, aclrtStream stream);
// The same where the product must have a feature.
Result<StreamCall> stream_call(Feature feature, aclrtStream stream);

struct EventCall {
  Runtime* runtime;
  EventReference event;
};

// REQUIRES: event is not NULL. Needs no context.
Result<EventCall> event_call(aclrtEvent event);

// A notify of the current context's device.
Result<NotifyReference> create_notify(Runtime& runtime, NotifyFamily family);
// For a notify that was made just now: ends it if its context has ended meanwhile, and fails.
Result<void> keep_while_context_lives(Runtime& runtime, const ContextReference& context,
                                      const NotifyReference& notify);

// The current context was destroyed or its device reset by another thread during the call.
Error context_ended();

// Milliseconds, of which -1 is no limit; 0 and others are refused.
Result<Deadline> deadline_from(int32_t timeout);

}  // namespace understudy::capi
