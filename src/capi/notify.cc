// SPDX-License-Identifier: Apache-2.0
//
// Notifies, here and between processes. Rules: XPROC-03 to XPROC-14.
#include <cinttypes>
#include <cstring>
#include <string>
#include <string_view>

#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/key_arguments.h"
#include "capi/shared_memory.h"
#include "capi/stream_argument.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

Result<NotifyReference> find_notify(Runtime& runtime, aclrtNotify notify) {
  return runtime.notifies().find(handle_number(notify), NotifyFamily::kFlag);
}

// Of the key functions: 0, or 2.
Result<void> check_key_flags(uint64_t flags, uint64_t allowed) {
  if (flags == 0 || flags == allowed) return {};
  return Error::format(ErrorCode::kInvalidParam, "flags is %" PRIu64 " and must be 0 or %" PRIu64,
                       flags, allowed);
}

}  // namespace

aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag) {
  return guarded(US_CALL(out(notify), flag), [&]() -> Result<void> {
    US_TRY(require_pointer(notify, "notify"));
    if (flag > ACL_NOTIFY_DEVICE_USE_ONLY) {
      return Error::format(ErrorCode::kInvalidParam, "flag is %" PRIu64 " and must be 0 or 1",
                           flag);
    }
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const NotifyReference created, create_notify(*runtime, NotifyFamily::kFlag));
    *notify = handle_pointer(Notifies::handle_of(created));
    return {};
  });
}

aclError aclrtDestroyNotify(aclrtNotify notify) {
  return guarded(US_CALL(notify), [&]() -> Result<void> {
    US_TRY(require_pointer(notify, "notify"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const NotifyReference found, find_notify(*runtime, notify));
    return runtime->notifies().destroy(found);
  });
}

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) {
  return guarded(US_CALL(notify, stream), [&]() -> Result<void> {
    US_TRY(require_pointer(notify, "notify"));
    const GatePass pass;
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    US_TRY_ASSIGN(const NotifyReference found, find_notify(*call.runtime, notify));
    return call.runtime->notifies().record(found, call.stream, kSetFlag);
  });
}

aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout) {
  return guarded(US_CALL(notify, stream, timeout), [&]() -> Result<void> {
    US_TRY(require_pointer(notify, "notify"));
    const GatePass pass;
    US_TRY_ASSIGN(const StreamCall call, stream_call(stream));
    US_TRY_ASSIGN(const NotifyReference found, find_notify(*call.runtime, notify));
    return call.runtime->notifies().let_wait(found, call.stream, kTakeFlag, timeout);
  });
}

aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* notifyId) {
  return guarded(US_CALL(notify, out(notifyId)), [&]() -> Result<void> {
    US_TRY(require_pointer(notify, "notify"));
    US_TRY(require_pointer(notifyId, "notifyId"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const NotifyReference found, find_notify(*runtime, notify));
    *notifyId = found.id();
    return {};
  });
}

aclError aclrtNotifyBatchReset(aclrtNotify* notifies, size_t num) {
  return guarded(US_CALL(list(notifies, num), num), [&]() -> Result<void> {
    US_TRY(require_pointer(notifies, "notifies"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kNotifyBatchReset));
    US_TRY(check_count(num, "num"));
    // All are looked up before the first one changes.
    for (size_t i = 0; i < num; ++i) US_TRY(find_notify(*runtime, notifies[i]));
    for (size_t i = 0; i < num; ++i) {
      US_TRY_ASSIGN(const NotifyReference found, find_notify(*runtime, notifies[i]));
      US_TRY(runtime->notifies().clear(found));
    }
    return {};
  });
}

aclError aclrtNotifyGetExportKey(aclrtNotify notify, char* key, size_t len, uint64_t flags) {
  return guarded(US_CALL(notify, text(key), len, flags), [&]() -> Result<void> {
    US_TRY(require_pointer(notify, "notify"));
    US_TRY(require_pointer(key, "key"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kNotifyKeys));
    US_TRY(check_key_buffer(len));
    US_TRY(check_key_flags(flags, ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION));
    US_TRY_ASSIGN(const NotifyReference found, find_notify(*runtime, notify));
    US_TRY_ASSIGN(const std::string text, runtime->notify_keys().export_key(found, flags != 0));
    memcpy(key, text.c_str(), text.size() + 1);
    return {};
  });
}

aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t* pid, size_t num) {
  return guarded(US_CALL(notify, list(pid, num), num), [&]() -> Result<void> {
    US_TRY(require_pointer(notify, "notify"));
    US_TRY(require_pointer(pid, "pid"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kNotifyKeys));
    US_TRY(check_count(num, "num"));
    US_TRY_ASSIGN(const NotifyReference found, find_notify(*runtime, notify));
    return runtime->notify_keys().admit(found, {pid, num});
  });
}

aclError aclrtNotifyImportByKey(aclrtNotify* notify, const char* key, uint64_t flags) {
  return guarded(US_CALL(out(notify), text(key), flags), [&]() -> Result<void> {
    US_TRY(require_pointer(notify, "notify"));
    US_TRY(require_pointer(key, "key"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kNotifyKeys));
    US_TRY(check_key_flags(flags, ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS));
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    US_TRY_ASSIGN(const NotifyKeys::Imported imported,
                  runtime->notify_keys().import(key_text(key), context.device()));
    US_TRY(keep_while_context_lives(*runtime, context, imported.notify));
    if (flags == ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS) {
      enable_link(*runtime, context.device(), imported.exporter_device);
    }
    *notify = handle_pointer(Notifies::handle_of(imported.notify));
    return {};
  });
}

aclError aclrtNotifySetImportPidInterServer(aclrtNotify notify, aclrtServerPid* serverPids,
                                            size_t num) {
  return guarded(US_CALL(notify, serverPids, num), [&]() -> Result<void> {
    US_TRY(require_pointer(notify, "notify"));
    US_TRY(require_pointer(serverPids, "serverPids"));
    return Error::format(ErrorCode::kNotSupported,
                         "notifies cannot be shared with processes of other servers");
  });
}
