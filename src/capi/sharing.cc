// SPDX-License-Identifier: Apache-2.0
//
// Blocks that processes share. Rules: SHARE.
#include <cinttypes>
#include <cstring>
#include <span>

#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/shared_memory.h"
#include "observe/history.h"
#include "sharing/share_names.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

// Everything behind the outer checks of all six functions.
Result<Runtime*> sharing_runtime() { return runtime_with(Feature::kVirtualMemorySharing); }

Result<ShareKind> kind_argument(const Runtime& runtime, aclrtMemSharedHandleType type) {
  switch (type) {
    case ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT:
      return ShareKind::kNumber;
    case ACL_MEM_SHARE_HANDLE_TYPE_FABRIC:
      US_TRY(runtime.require(Feature::kFabricSharing, "the shareType FABRIC"));
      return ShareKind::kFabric;
    default:
      return Error::format(ErrorCode::kInvalidParam, "shareType is %d, which is no kind of handle",
                           static_cast<int>(type));
  }
}

List shareable(const void* handle, aclrtMemSharedHandleType type) {
  return list(handle, type == ACL_MEM_SHARE_HANDLE_TYPE_FABRIC ? sizeof(aclrtMemFabricHandle)
                                                               : sizeof(uint64_t));
}

std::span<std::byte> fabric_bytes(void* handle) {
  return {static_cast<std::byte*>(handle), sizeof(aclrtMemFabricHandle)};
}

// What a program holds as a shareable handle of that kind.
Result<ShareName> name_argument(const Runtime& runtime, void* handle, ShareKind kind) {
  if (kind == ShareKind::kFabric) {
    US_TRY_ASSIGN(const BlobToken blob,
                  read_blob(fabric_bytes(handle), BlobKind::kFabric, runtime.server().id()));
    return ShareName{blob.token, kind, blob.is_whole};
  }
  uint64_t number = 0;
  memcpy(&number, handle, sizeof number);  // it may lie anywhere
  return ShareName{ShareToken(number), kind};
}

Result<ShareToken> export_block(Runtime& runtime, aclrtDrvMemHandle handle, uint64_t flags,
                                ShareKind kind) {
  if (runtime.settings().product.has(Feature::kVirtualInstance)) {
    return Error::format(ErrorCode::kNotSupported,
                         "a virtual instance of a device cannot share its memory");
  }
  if (kind == ShareKind::kFabric) US_TRY(runtime.current_context());
  US_TRY_ASSIGN(
      const ShareToken token,
      runtime.sharing().export_block(handle_number(handle), kind,
                                     flags == ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION));
  History::begin({ObjectKind::kShare, token.word(), 0, kNoDevice, handle_number(handle)});
  return token;
}

Result<void> check_export_flags(uint64_t flags) {
  if (flags <= ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION) return {};
  return Error::format(ErrorCode::kInvalidParam, "flags is %" PRIu64 " and must be 0 or 1", flags);
}

Result<void> admit(Runtime& runtime, const ShareName& name, const int32_t* processes,
                   size_t count) {
  constexpr size_t kMostProcesses = 65535;
  if (count > kMostProcesses) {
    return Error::format(ErrorCode::kInvalidParam, "pidNum is %zu and at most %zu", count,
                         kMostProcesses);
  }
  return runtime.sharing().admit(name, {processes, count});
}

void note_import(Runtime& runtime, BlockHandle handle) {
  if (!is_observed()) return;
  const Result<BlockProperties> block = runtime.physical_memory().properties(handle);
  if (!block.ok()) return;  // freed by another thread already
  const Location location = block.value().location;
  History::begin({.kind = ObjectKind::kBlock,
                  .number = handle,
                  .size = block.value().size,
                  .device = location.on_device() ? static_cast<int32_t>(location.id) : kNoDevice,
                  .is_imported = true});
}

Result<void> import_block(Runtime& runtime, const ShareName& name, unsigned device,
                          aclrtDrvMemHandle* handle) {
  US_TRY_ASSIGN(const ImportedBlock found,
                runtime.sharing().import_block(
                    {.name = name, .device = device, .reach = device_reach(runtime)}));
  enable_link(runtime, device, found.device);
  note_import(runtime, found.handle);
  *handle = handle_pointer(found.handle);
  return {};
}

}  // namespace

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType,
                                         uint64_t flags, uint64_t* shareableHandle) {
  return guarded(US_CALL(handle, handleType, flags, out(shareableHandle)), [&]() -> Result<void> {
    US_TRY(require_pointer(handle, "handle"));
    US_TRY(require_pointer(shareableHandle, "shareableHandle"));
    if (handleType != ACL_MEM_HANDLE_TYPE_NONE) {
      return invalid_argument("handleType is %d and must be ACL_MEM_HANDLE_TYPE_NONE",
                              static_cast<int>(handleType));
    }
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, sharing_runtime());
    US_TRY(check_export_flags(flags));
    US_TRY_ASSIGN(const ShareToken token,
                  export_block(*runtime, handle, flags, ShareKind::kNumber));
    *shareableHandle = token.word();
    return {};
  });
}

aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags,
                                           aclrtMemSharedHandleType shareType,
                                           void* shareableHandle) {
  return guarded(US_CALL(handle, flags, shareType, shareable(shareableHandle, shareType)),
                 [&]() -> Result<void> {
                   US_TRY(require_pointer(handle, "handle"));
                   US_TRY(require_pointer(shareableHandle, "shareableHandle"));
                   const GatePass pass;
                   US_TRY_ASSIGN(Runtime* const runtime, sharing_runtime());
                   US_TRY(check_export_flags(flags));
                   US_TRY_ASSIGN(const ShareKind kind, kind_argument(*runtime, shareType));
                   US_TRY_ASSIGN(const ShareToken token,
                                 export_block(*runtime, handle, flags, kind));
                   if (kind == ShareKind::kFabric) {
                     write_blob(fabric_bytes(shareableHandle), BlobKind::kFabric, token,
                                runtime->server().id());
                   } else {
                     const uint64_t number = token.word();
                     memcpy(shareableHandle, &number, sizeof number);
                   }
                   return {};
                 });
}

aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t* pid, size_t pidNum) {
  return guarded(US_CALL(shareableHandle, list(pid, pidNum), pidNum), [&]() -> Result<void> {
    US_TRY(require_pointer(pid, "pid"));
    US_TRY(require_size(pidNum, "pidNum"));
    US_TRY_ASSIGN(Runtime* const runtime, sharing_runtime());
    return admit(*runtime, {ShareToken(shareableHandle), ShareKind::kNumber}, pid, pidNum);
  });
}

aclError aclrtMemSetPidToShareableHandleV2(void* shareableHandle,
                                           aclrtMemSharedHandleType shareType, int32_t* pid,
                                           size_t pidNum) {
  return guarded(
      US_CALL(shareable(shareableHandle, shareType), shareType, list(pid, pidNum), pidNum),
      [&]() -> Result<void> {
        US_TRY(require_pointer(shareableHandle, "shareableHandle"));
        US_TRY(require_pointer(pid, "pid"));
        US_TRY(require_size(pidNum, "pidNum"));
        US_TRY_ASSIGN(Runtime* const runtime, sharing_runtime());
        US_TRY_ASSIGN(const ShareKind kind, kind_argument(*runtime, shareType));
        US_TRY_ASSIGN(const ShareName name, name_argument(*runtime, shareableHandle, kind));
        return admit(*runtime, name, pid, pidNum);
      });
}

aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId,
                                           aclrtDrvMemHandle* handle) {
  return guarded(US_CALL(shareableHandle, deviceId, out(handle)), [&]() -> Result<void> {
    US_TRY(require_pointer(handle, "handle"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, sharing_runtime());
    US_TRY_ASSIGN(const unsigned device, runtime->devices().check(deviceId, "deviceId"));
    US_TRY(runtime->current_context());
    return import_block(*runtime, {ShareToken(shareableHandle), ShareKind::kNumber}, device,
                        handle);
  });
}

aclError aclrtMemImportFromShareableHandleV2(void* shareableHandle,
                                             aclrtMemSharedHandleType shareType, uint64_t flags,
                                             aclrtDrvMemHandle* handle) {
  return guarded(US_CALL(shareable(shareableHandle, shareType), shareType, flags, out(handle)),
                 [&]() -> Result<void> {
                   US_TRY(require_pointer(shareableHandle, "shareableHandle"));
                   US_TRY(require_pointer(handle, "handle"));
                   US_TRY(require_zero(flags, "flags"));
                   const GatePass pass;
                   US_TRY_ASSIGN(Runtime* const runtime, sharing_runtime());
                   US_TRY_ASSIGN(const ShareKind kind, kind_argument(*runtime, shareType));
                   US_TRY_ASSIGN(const unsigned device, runtime->current_device());
                   US_TRY_ASSIGN(const ShareName name,
                                 name_argument(*runtime, shareableHandle, kind));
                   return import_block(*runtime, name, device, handle);
                 });
}
