// SPDX-License-Identifier: Apache-2.0
//
// Counting notifies. Rules: CNT.
#include <cinttypes>
#include <optional>

#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

struct NotifyCall {
  Runtime* runtime;
  NotifyReference notify;
};

// REQUIRES: it is not NULL. Needs no context.
Result<NotifyCall> notify_call(aclrtCntNotify notify) {
  US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kCountingNotifies));
  US_TRY_ASSIGN(const NotifyReference found,
                runtime->notifies().find(handle_number(notify), NotifyFamily::kCounting));
  return NotifyCall{runtime, found};
}

Result<NotifyReference> find_counting(const StreamCall& call, aclrtCntNotify notify) {
  return call.runtime->notifies().find(handle_number(notify), NotifyFamily::kCounting);
}

Result<NotifyChange> change_of(const aclrtCntNotifyRecordInfo& info) {
  switch (info.mode) {
    case ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE:
      return NotifyChange{NotifyUpdate::kSet, info.value};
    case ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE:
      return NotifyChange{NotifyUpdate::kAdd, info.value};
    case ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE:
      return NotifyChange{NotifyUpdate::kOr, info.value};
    case ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE:
      return NotifyChange{NotifyUpdate::kAnd, info.value};
  }
  return Error::format(ErrorCode::kInvalidParam, "info->mode is %d and must be 0, 1, 2 or 4",
                       static_cast<int>(info.mode));
}

std::optional<NotifyComparison> comparison_of(aclrtCntNotifyWaitMode mode) {
  switch (mode) {
    case ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE:
      return NotifyComparison::kLess;
    case ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE:
      return NotifyComparison::kEqual;
    case ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE:
      return NotifyComparison::kGreater;
    case ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE:
      return NotifyComparison::kAtLeast;
    case ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE:
      return NotifyComparison::kAllBits;
  }
  return std::nullopt;
}

Result<NotifyCondition> condition_of(const aclrtCntNotifyWaitInfo& info) {
  const std::optional<NotifyComparison> comparison = comparison_of(info.mode);
  if (!comparison) {
    return Error::format(ErrorCode::kInvalidParam, "info->mode is %d and must be 0 to 4",
                         static_cast<int>(info.mode));
  }
  if (info.isClear > 1) {
    return Error::format(ErrorCode::kInvalidParam, "info->isClear is %u and must be 0 or 1",
                         unsigned{info.isClear});
  }
  return NotifyCondition{*comparison, info.isClear == 1, info.value};
}

}  // namespace

aclError aclrtCntNotifyCreate(aclrtCntNotify* cntNotify, uint64_t flag) {
  return guarded(US_CALL(out(cntNotify), flag), [&]() -> Result<void> {
    US_TRY(require_pointer(cntNotify, "cntNotify"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kCountingNotifies));
    if (flag != 0) {
      return Error::format(ErrorCode::kInvalidParam, "flag is %" PRIu64 " and must be 0", flag);
    }
    US_TRY_ASSIGN(const NotifyReference created, create_notify(*runtime, NotifyFamily::kCounting));
    *cntNotify = handle_pointer(Notifies::handle_of(created));
    return {};
  });
}

aclError aclrtCntNotifyRecord(aclrtCntNotify cntNotify, aclrtStream stream,
                              aclrtCntNotifyRecordInfo* info) {
  return guarded(US_CALL(cntNotify, stream, list(info, 1)), [&]() -> Result<void> {
    US_TRY(require_pointer(cntNotify, "cntNotify"));
    US_TRY(require_pointer(info, "info"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kCountingNotifies));
    US_TRY_ASSIGN(const NotifyChange change, change_of(*info));
    US_TRY_ASSIGN(const StreamCall call, stream_call(*runtime, stream));
    US_TRY_ASSIGN(const NotifyReference found, find_counting(call, cntNotify));
    return runtime->notifies().record(found, call.stream, change);
  });
}

aclError aclrtCntNotifyWaitWithTimeout(aclrtCntNotify cntNotify, aclrtStream stream,
                                       aclrtCntNotifyWaitInfo* info) {
  return guarded(US_CALL(cntNotify, stream, list(info, 1)), [&]() -> Result<void> {
    US_TRY(require_pointer(cntNotify, "cntNotify"));
    US_TRY(require_pointer(info, "info"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kCountingNotifies));
    US_TRY_ASSIGN(const NotifyCondition condition, condition_of(*info));
    US_TRY_ASSIGN(const StreamCall call, stream_call(*runtime, stream));
    US_TRY_ASSIGN(const NotifyReference found, find_counting(call, cntNotify));
    return runtime->notifies().let_wait(found, call.stream, condition, info->timeout);
  });
}

aclError aclrtCntNotifyReset(aclrtCntNotify cntNotify, aclrtStream stream) {
  return guarded(US_CALL(cntNotify, stream), [&]() -> Result<void> {
    US_TRY(require_pointer(cntNotify, "cntNotify"));
    const GatePass pass;
    US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kCountingNotifies, stream));
    US_TRY_ASSIGN(const NotifyReference found, find_counting(call, cntNotify));
    return call.runtime->notifies().record(found, call.stream, kClearNotify);
  });
}

aclError aclrtCntNotifyGetId(aclrtCntNotify cntNotify, uint32_t* notifyId) {
  return guarded(US_CALL(cntNotify, out(notifyId)), [&]() -> Result<void> {
    US_TRY(require_pointer(cntNotify, "cntNotify"));
    US_TRY(require_pointer(notifyId, "notifyId"));
    US_TRY_ASSIGN(const NotifyCall call, notify_call(cntNotify));
    *notifyId = call.notify.id();
    return {};
  });
}

aclError aclrtCntNotifyDestroy(aclrtCntNotify cntNotify) {
  return guarded(US_CALL(cntNotify), [&]() -> Result<void> {
    US_TRY(require_pointer(cntNotify, "cntNotify"));
    const GatePass pass;
    US_TRY_ASSIGN(const NotifyCall call, notify_call(cntNotify));
    return call.runtime->notifies().destroy(call.notify);
  });
}
