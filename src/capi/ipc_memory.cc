// SPDX-License-Identifier: Apache-2.0
//
// Keys by which processes share allocations. Rules: IPC.
#include <cinttypes>
#include <cstring>
#include <new>

#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/key_arguments.h"
#include "capi/shared_memory.h"
#include "observe/history.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

void note_import(Runtime& runtime, VirtualAddress address, unsigned device) noexcept {
  if (!is_observed()) return;
  try {
    const std::optional<MappingView> view = runtime.address_space().translation().find(address);
    History::begin({.kind = ObjectKind::kAllocation,
                    .number = address,
                    .size = view ? view->range.size : 0,
                    .device = static_cast<int32_t>(device),
                    .is_imported = true});
  } catch (const std::bad_alloc&) {
    return;  // its life is not known; the allocation itself is good
  }
}

Result<void> check_flags(uint64_t flags) {
  if (flags <= 1) return {};
  return Error::format(ErrorCode::kInvalidParam, "flags is %" PRIu64 " and must be 0 or 1", flags);
}

}  // namespace

aclError aclrtIpcMemGetExportKey(void* devPtr, size_t size, char* key, size_t len, uint64_t flags) {
  return guarded(US_CALL(devPtr, size, text(key), len, flags), [&]() -> Result<void> {
    US_TRY(require_pointer(devPtr, "devPtr"));
    US_TRY(require_pointer(key, "key"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kIpcKeys));
    US_TRY(check_count(size, "size"));
    US_TRY(check_key_buffer(len));
    US_TRY(check_flags(flags));
    US_TRY_ASSIGN(const std::string text,
                  runtime->ipc_keys().export_key(to_address(devPtr), size, flags == 1));
    memcpy(key, text.c_str(), text.size() + 1);
    return {};
  });
}

aclError aclrtIpcMemSetImportPid(const char* key, int32_t* pid, size_t num) {
  return guarded(US_CALL(text(key), list(pid, num), num), [&]() -> Result<void> {
    US_TRY(require_pointer(key, "key"));
    US_TRY(require_pointer(pid, "pid"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kIpcKeys));
    US_TRY(check_count(num, "num"));
    return runtime->ipc_keys().admit(key_text(key), {pid, num});
  });
}

aclError aclrtIpcMemImportByKey(void** devPtr, const char* key, uint64_t flags) {
  return guarded(US_CALL(out(devPtr), text(key), flags), [&]() -> Result<void> {
    US_TRY(require_pointer(devPtr, "devPtr"));
    US_TRY(require_pointer(key, "key"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kIpcKeys));
    US_TRY(check_flags(flags));
    US_TRY_ASSIGN(const unsigned device, runtime->current_device());
    US_TRY_ASSIGN(const ImportedAllocation found,
                  runtime->ipc_keys().import(key_text(key), device, device_reach(*runtime)));
    if (flags == ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS) {
      enable_link(*runtime, device, found.device);
    }
    note_import(*runtime, found.address, device);
    *devPtr = to_pointer(found.address);
    return {};
  });
}

aclError aclrtIpcMemClose(const char* key) {
  return guarded(US_CALL(text(key)), [&]() -> Result<void> {
    US_TRY(require_pointer(key, "key"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kIpcKeys));
    return runtime->ipc_keys().close(key_text(key));
  });
}

aclError aclrtIpcMemSetAttr(const char* key, aclrtIpcMemAttrType type, uint64_t attr) {
  return guarded(US_CALL(text(key), type, attr), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kIpcAcrossServers));
    if (key == nullptr) return Error::format(ErrorCode::kInvalidParam, "key is NULL");
    if (type != ACL_RT_IPC_MEM_ATTR_ACCESS_LINK) {
      return Error::format(ErrorCode::kInvalidParam, "type is %d and must be 0",
                           static_cast<int>(type));
    }
    if (attr > ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_UB_MULTI_PORT_PATH) {
      return Error::format(ErrorCode::kInvalidParam, "attr is %" PRIu64 " and at most 3", attr);
    }
    if (attr > ACL_RT_IPC_MEM_ATTR_ACCESS_LINK_HCCS) {
      return Error::format(ErrorCode::kLinkNotSupported,
                           "attr is %" PRIu64 ", a link that this server does not have", attr);
    }
    US_TRY(runtime->ipc_keys().token_of(key_text(key)));
    return {};
  });
}

aclError aclrtIpcMemImportPidInterServer(const char* key, aclrtServerPid* serverPids, size_t num) {
  return guarded(US_CALL(text(key), serverPids, num), [&]() -> Result<void> {
    US_TRY(require_pointer(key, "key"));
    US_TRY(require_pointer(serverPids, "serverPids"));
    return Error::format(ErrorCode::kNotSupported,
                         "memory cannot be shared with processes of other servers");
  });
}
