// SPDX-License-Identifier: Apache-2.0
//
// What only the software NPU can tell.
#include <cstring>

#include "acl/acl_understudy.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

aclError aclUnderstudyGetBacking(int32_t deviceId, aclUnderstudyBacking* backing) {
  return guarded(US_CALL(deviceId, backing), [&]() -> Result<void> {
    US_TRY(require_pointer(backing, "backing"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned device, runtime->devices().check(deviceId, "deviceId"));
    const ExtentAllocator& storage = runtime->backing_pools().of({LocationKind::kDevice, device});
    const HostBacking found = storage.backing();
    memset(backing, 0, sizeof *backing);
    backing->smallPages = found.small_pages;
    backing->collapsed = found.collapsed;
    backing->hugetlb2m = found.pool_2m;
    backing->hugetlb1g = found.pool_1g;
    backing->recyclable = storage.free_committed_bytes();
    backing->processTotal = runtime->backing_pools().budget().taken();
    return {};
  });
}

aclError aclUnderstudyGetHostMemory(aclUnderstudyHostMemory* memory) {
  return guarded(US_CALL(memory), [&]() -> Result<void> {
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
  return guarded(US_CALL(objects), [&]() -> Result<void> {
    US_TRY(require_pointer(objects, "objects"));
    aclUnderstudyObjects found = {};
    Runtime* const runtime = Runtime::existing();
    if (runtime == nullptr) {
      *objects = found;
      return {};
    }
    for (unsigned device = 0; device < runtime->devices().count(); ++device) {
      for (const ModuleUsage& module : runtime->capacity().usage(device)) {
        found.deviceBytes += module.current;
      }
    }
    const AddressCount addresses = runtime->address_space().count();
    found.allocations = addresses.allocations;
    found.reservations = addresses.reservations;
    found.mappings = addresses.mappings;
    found.hostAllocations = runtime->host_memory().count_blocks();
    found.physicalHandles = runtime->physical_memory().count_handles();
    found.heldCalls = CallGate::held();
    found.streams = runtime->streams().registry().count_created();
    found.events = runtime->events().count();
    found.notifies = runtime->notifies().count();
    found.pools = runtime->memory_pools().count();
    *objects = found;
    return {};
  });
}

aclError aclUnderstudyTakeDroppedCallbacks(aclrtCallback fn, void** userData, size_t capacity,
                                           size_t* count) {
  return guarded(US_CALL(fn, userData, capacity, out(count)), [&]() -> Result<void> {
    if (fn == nullptr) return invalid_argument("fn is NULL");
    US_TRY(require_pointer(userData, "userData"));
    US_TRY(require_pointer(count, "count"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    *count = runtime->streams().reports().take_dropped(fn, {userData, capacity});
    return {};
  });
}

// No call that can be watched: whether it is would be read from the configuration, which a program
// that asks for the directory may be about to choose.
const char* aclUnderstudyRuntimeDirectory() {
  Runtime* const runtime = Runtime::existing();
  if (runtime == nullptr || runtime->server().directory() == nullptr) return nullptr;
  return runtime->server().directory()->path().c_str();
}
