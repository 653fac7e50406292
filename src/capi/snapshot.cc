// SPDX-License-Identifier: Apache-2.0
//
// A process that is held, backed up and restored. Rules: SNAP.
#include "acl/acl_rt.h"
#include "capi/call.h"
#include "runtime/process.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

static_assert(static_cast<int>(SnapshotStage::kLockPre) == ACL_RT_SNAPSHOT_LOCK_PRE);
static_assert(static_cast<int>(SnapshotStage::kBackupPre) == ACL_RT_SNAPSHOT_BACKUP_PRE);
static_assert(static_cast<int>(SnapshotStage::kBackupPost) == ACL_RT_SNAPSHOT_BACKUP_POST);
static_assert(static_cast<int>(SnapshotStage::kRestorePre) == ACL_RT_SNAPSHOT_RESTORE_PRE);
static_assert(static_cast<int>(SnapshotStage::kRestorePost) == ACL_RT_SNAPSHOT_RESTORE_POST);
static_assert(static_cast<int>(SnapshotStage::kUnlockPost) == ACL_RT_SNAPSHOT_UNLOCK_POST);

Result<void> carry_out(Result<void> (Snapshot::*step)(), int pid, const void* extra,
                       const char* name_of_extra) {
  US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kSnapshot));
  if (pid != current_process_id()) {
    return Error::format(ErrorCode::kInvalidParam, "pid is %d, and the calling process is %d", pid,
                         current_process_id());
  }
  if (extra != nullptr) {
    return Error::format(ErrorCode::kInvalidParam, "%s must be NULL", name_of_extra);
  }
  return (runtime->snapshot().*step)();
}

Result<SnapshotStage> stage_argument(aclrtSnapShotStage stage) {
  const auto number = static_cast<unsigned>(stage);
  if (number < kSnapshotStages) return static_cast<SnapshotStage>(number);
  return Error::format(ErrorCode::kInvalidParam, "stage is %d and must be 0 to %u",
                       static_cast<int>(stage), kSnapshotStages - 1);
}

struct CallbackCall {
  StageCallbacks* callbacks;
  SnapshotStage stage;
};
Result<CallbackCall> callback_call(aclrtSnapShotStage stage, aclrtSnapShotCallBack callback) {
  if (callback == nullptr) return invalid_argument("callback is NULL");
  US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kSnapshot));
  US_TRY_ASSIGN(const SnapshotStage known, stage_argument(stage));
  return CallbackCall{&runtime->snapshot().callbacks(), known};
}

}  // namespace

aclError aclrtSnapShotProcessLock(int pid, void* reserve) {
  return guarded(US_CALL(pid, reserve),
                 [&] { return carry_out(&Snapshot::lock, pid, reserve, "reserve"); });
}

aclError aclrtSnapShotProcessBackup(int pid, aclrtSnapShotBackupArgs* args) {
  return guarded(US_CALL(pid, args),
                 [&] { return carry_out(&Snapshot::backup, pid, args, "args"); });
}

aclError aclrtSnapShotProcessRestore(int pid, aclrtSnapShotRestoreArgs* args) {
  return guarded(US_CALL(pid, args),
                 [&] { return carry_out(&Snapshot::restore, pid, args, "args"); });
}

aclError aclrtSnapShotProcessUnlock(int pid, void* reserve) {
  return guarded(US_CALL(pid, reserve),
                 [&] { return carry_out(&Snapshot::unlock, pid, reserve, "reserve"); });
}

aclError aclrtSnapShotCallbackRegister(aclrtSnapShotStage stage, aclrtSnapShotCallBack callback,
                                       void* args) {
  return guarded(US_CALL(stage, callback, args), [&]() -> Result<void> {
    US_TRY_ASSIGN(const CallbackCall call, callback_call(stage, callback));
    return call.callbacks->add(call.stage, callback, args);
  });
}

aclError aclrtSnapShotCallbackUnregister(aclrtSnapShotStage stage, aclrtSnapShotCallBack callback) {
  return guarded(US_CALL(stage, callback), [&]() -> Result<void> {
    US_TRY_ASSIGN(const CallbackCall call, callback_call(stage, callback));
    return call.callbacks->remove(call.stage, callback);
  });
}
