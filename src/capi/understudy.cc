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

aclError aclUnderstudyCountObjects(aclUnderstudyObjects* objects) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(objects, "objects"));
    memset(objects, 0, sizeof *objects);
    Runtime* const runtime = Runtime::existing();
    if (runtime == nullptr) return {};
    for (unsigned device = 0; device < runtime->devices().count(); ++device) {
      for (const ModuleUsage& module : runtime->capacity().usage(device)) {
        objects->deviceBytes += module.current;
      }
    }
    const AddressCount addresses = runtime->address_space().count();
    objects->allocations = addresses.allocations;
    objects->reservations = addresses.reservations;
    objects->mappings = addresses.mappings;
    objects->hostAllocations = runtime->host_memory().count_blocks();
    objects->physicalHandles = runtime->physical_memory().count_handles();
    return {};
  });
}

aclError aclUnderstudyTakeDroppedCallbacks(aclrtCallback fn, void** userData, size_t capacity,
                                           size_t* count) {
  return guarded(__func__, [&]() -> Result<void> {
    if (fn == nullptr) return invalid_argument("fn is NULL");
    US_TRY(require_pointer(userData, "userData"));
    US_TRY(require_pointer(count, "count"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    *count = runtime->streams().reports().take_dropped(fn, {userData, capacity});
    return {};
  });
}

const char* aclUnderstudyRuntimeDirectory() {
  Runtime* const runtime = Runtime::existing();
  if (runtime == nullptr || runtime->ledger().directory() == nullptr) return nullptr;
  return runtime->ledger().directory()->path().c_str();
}
