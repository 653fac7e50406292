// SPDX-License-Identifier: Apache-2.0
//
// Functions of the program that streams call. Rules: CB.
#include "acl/acl_rt.h"
#include "base/scope_exit.h"
#include "capi/call.h"
#include "capi/stream_argument.h"
#include "runtime/process.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

Result<void> require_function(void (*function)(void*)) {
  if (function != nullptr) return {};
  return Error::format(ErrorCode::kInvalidParam, "fn is NULL");
}

}  // namespace

aclError aclrtLaunchCallback(aclrtCallback fn, void* userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream) {
  return guarded(US_CALL(fn, userData, blockType, stream), [&]() -> Result<void> {
    if (blockType != ACL_CALLBACK_NO_BLOCK && blockType != ACL_CALLBACK_BLOCK) {
      return invalid_argument("blockType is %d and must be 0 or 1", static_cast<int>(blockType));
    }
    const GatePass pass;
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    US_TRY(require_function(fn));
    US_TRY(call.runtime->streams().reports().check_subscribed(call.stream));
    Task task(TaskKind::kReport, call.device());
    task.user = {fn, userData, blockType == ACL_CALLBACK_BLOCK};
    return call.submit(task);
  });
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  return guarded(US_CALL(threadId, stream), [&]() -> Result<void> {
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    return call.runtime->streams().reports().subscribe(call.stream, threadId);
  });
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  return guarded(US_CALL(threadId, stream), [&]() -> Result<void> {
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    return call.runtime->streams().reports().unsubscribe(call.stream, threadId);
  });
}

aclError aclrtProcessReport(int32_t timeout) {
  return guarded(US_CALL(timeout), [&]() -> Result<void> {
    const Result<Deadline> deadline = deadline_from(timeout);
    if (!deadline.ok()) return deadline.error().as(ErrorCode::kInvalidArgument);
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    Reports& reports = runtime->streams().reports();
    US_TRY_ASSIGN(const Report report, reports.take(current_thread_identity(), deadline.value()));
    // The stream goes on however the callback returns.
    ScopeExit answer([&] { reports.answer(report); });
    Reports::call(report);
    return {};
  });
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  return guarded(US_CALL(stream, fn, args), [&]() -> Result<void> {
    const GatePass pass;
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    US_TRY(require_function(fn));
    US_TRY(call.runtime->streams().reports().claim_for_host_functions(call.stream));
    Task task(TaskKind::kHostFunction, call.device());
    task.user = {fn, args, true};
    return call.submit(task);
  });
}
