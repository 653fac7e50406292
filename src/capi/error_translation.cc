// SPDX-License-Identifier: Apache-2.0
//
// The one place where a kind of error gets its published number.
#include "acl/acl_base.h"
#include "acl/error_codes/rt_error_codes.h"
#include "capi/call.h"

namespace understudy::capi {

aclError published_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return ACL_ERROR_INVALID_PARAM;
    case ErrorCode::kInvalidFile:
      return ACL_ERROR_INVALID_FILE;
    case ErrorCode::kAlreadyInitialized:
      return ACL_ERROR_REPEAT_INITIALIZE;
    case ErrorCode::kAlreadyFinalized:
      return ACL_ERROR_REPEAT_FINALIZE;
    case ErrorCode::kFlagsNotSupported:
      return ACL_ERROR_FEATURE_UNSUPPORTED;
    case ErrorCode::kInvalidParam:
      return ACL_ERROR_RT_PARAM_INVALID;
    case ErrorCode::kInvalidDevice:
      return ACL_ERROR_RT_INVALID_DEVICEID;
    case ErrorCode::kNoContext:
      return ACL_ERROR_RT_CONTEXT_NULL;
    case ErrorCode::kInvalidMemoryType:
      return ACL_ERROR_RT_INVALID_MEMORY_TYPE;
    case ErrorCode::kInvalidHandle:
      return ACL_ERROR_RT_INVALID_HANDLE;
    case ErrorCode::kInvalidSymbol:
      return ACL_ERROR_RT_INVALID_SYMBOL;
    case ErrorCode::kOptionNotSet:
      return ACL_ERROR_RT_SYSPARAMOPT_NOT_SET;
    case ErrorCode::kOtherContext:
      return ACL_ERROR_RT_STREAM_CONTEXT;
    case ErrorCode::kNoTimestamp:
      return ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID;
    case ErrorCode::kTimesReversed:
      return ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL;
    case ErrorCode::kStreamSubscription:
      return ACL_ERROR_RT_STREAM_SUBSCRIBE;
    case ErrorCode::kThreadSubscription:
      return ACL_ERROR_RT_THREAD_SUBSCRIBE;
    case ErrorCode::kNoCallbackThread:
      return ACL_ERROR_RT_STREAM_NO_CB_REG;
    case ErrorCode::kTaskTimeout:
      return ACL_ERROR_RT_TASK_TIMEOUT;
    case ErrorCode::kWaitTimeout:
      return ACL_ERROR_RT_WAIT_TIMEOUT;
    case ErrorCode::kDeviceAborted:
      return ACL_ERROR_RT_DEVICE_TASK_ABORT;
    case ErrorCode::kStreamAborted:
      return ACL_ERROR_RT_STREAM_ABORT;
    case ErrorCode::kNotSupported:
    case ErrorCode::kNotInProduct:
      return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
    case ErrorCode::kNoPermission:
      return ACL_ERROR_RT_NO_PERMISSION;
    case ErrorCode::kOutOfMemory:
      return ACL_ERROR_RT_MEMORY_ALLOCATION;
    case ErrorCode::kOutOfResources:
      return ACL_ERROR_RT_RESOURCE_ALLOC_FAIL;
    case ErrorCode::kLinkNotSupported:
      return ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED;
    case ErrorCode::kConnection:
      return ACL_ERROR_RT_IPC_ERROR;
    case ErrorCode::kOutOfEvents:
      return ACL_ERROR_RT_NO_EVENT_RESOURCE;
    case ErrorCode::kOutOfNotifies:
      return ACL_ERROR_RT_NO_NOTIFY_RESOURCE;
    case ErrorCode::kOutOfStreams:
      return ACL_ERROR_RT_NO_STREAM_RESOURCE;
    case ErrorCode::kNeverRecorded:
    case ErrorCode::kPoolUnable:
      return ACL_ERROR_RT_INTERNAL_ERROR;
    case ErrorCode::kQueueFull:
      return ACL_ERROR_RT_STREAM_TASK_FULL;
    case ErrorCode::kReportTimeout:
      return ACL_ERROR_RT_REPORT_TIMEOUT;
    case ErrorCode::kCopyFault:
      return ACL_ERROR_RT_SYS_DMA;
    case ErrorCode::kStreamTimeout:
      return ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
    case ErrorCode::kEventTimeout:
      return ACL_ERROR_RT_EVENT_SYNC_TIMEOUT;
    case ErrorCode::kDeviceNotSet:
      return ACL_ERROR_RT_CONTEXT_RELEASE_ERROR;
    case ErrorCode::kAlreadyRegistered:
      return ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    case ErrorCode::kNotRegistered:
      return ACL_ERROR_HOST_MEMORY_NOT_REGISTERED;
    case ErrorCode::kLockTimeout:
      return ACL_ERROR_SNAPSHOT_LOCK_TIMEOUT;
    case ErrorCode::kLockRefused:
      return ACL_ERROR_SNAPSHOT_LOCK_FAILED;
    case ErrorCode::kUnlockRefused:
      return ACL_ERROR_SNAPSHOT_UNLOCK_FAILED;
    case ErrorCode::kBackupFailed:
      return ACL_ERROR_SNAPSHOT_BACKUP_FAILED;
    case ErrorCode::kRestoreFailed:
      return ACL_ERROR_SNAPSHOT_RESTORE_FAILED;
    case ErrorCode::kSnapshotCallback:
      return ACL_ERROR_SNAPSHOT_CALLBACK_FAILED;
    case ErrorCode::kCallbackRegistered:
      return ACL_ERROR_SNAPSHOT_REGISTER_CALLBACK_FAILED;
    case ErrorCode::kCallbackRefused:
    case ErrorCode::kInternal:
      return ACL_ERROR_INTERNAL_ERROR;
  }
  return ACL_ERROR_INTERNAL_ERROR;
}

}  // namespace understudy::capi
