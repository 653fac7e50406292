// SPDX-License-Identifier: Apache-2.0
//
// What only the software NPU can tell.
#include <cstring>

#include "acl/acl_understudy.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

aclError aclUnderstudyGetBacking(int32_t deviceId, aclUnderstudyBacking* backing) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(backing, "backing"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned device, runtime->devices().check(deviceId, "deviceId"));
    const Storage& storage = runtime->storages().of({LocationKind::kDevice, device});
    const HostBacking found = storage.backing();
    memset(backing, 0, sizeof *backing);
    backing->smallPages = found.small_pages;
    backing->collapsed = found.collapsed;
    backing->hugetlb2m = found.pool_2m;
    backing->hugetlb1g = found.pool_1g;
    backing->recyclable = storage.free_warm_bytes();
    backing->processTotal = runtime->storages().budget().taken();
    return {};
  });
}

aclError aclUnderstudyGetHostMemory(aclUnderstudyHostMemory* memory) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(memory, "memory"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    const PinnedFigures found = runtime->host_memory().figures();
    memset(memory, 0, sizeof *memory);
    memory->locked = found.locked;
    memory->unlocked = found.unlocked;
    memory->huge = found.huge;
    memory->cached = found.cached;
    return {};
  });
}
