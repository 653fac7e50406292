// SPDX-License-Identifier: Apache-2.0
//
// Stream-ordered memory pools. Rules: POOL.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"
#include "observe/history.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

// Outer checks of POOL-02 and POOL-22.
Result<void> check_properties(const aclrtMemPoolProps& properties) {
  if (properties.allocType != ACL_MEM_ALLOCATION_TYPE_PINNED) {
    return invalid_argument("allocType is %d and must be %d",
                            static_cast<int>(properties.allocType),
                            static_cast<int>(ACL_MEM_ALLOCATION_TYPE_PINNED));
  }
  if (properties.handleType != ACL_MEM_HANDLE_TYPE_NONE &&
      properties.handleType != ACL_MEM_HANDLE_TYPE_POSIX) {
    return invalid_argument(
        "handleType is %d and must be %d or %d", static_cast<int>(properties.handleType),
        static_cast<int>(ACL_MEM_HANDLE_TYPE_NONE), static_cast<int>(ACL_MEM_HANDLE_TYPE_POSIX));
  }
  if (properties.location.type != ACL_MEM_LOCATION_TYPE_DEVICE) {
    return invalid_argument("location.type is %d and must be %d",
                            static_cast<int>(properties.location.type),
                            static_cast<int>(ACL_MEM_LOCATION_TYPE_DEVICE));
  }
  if (std::any_of(std::begin(properties.reserved), std::end(properties.reserved),
                  [](unsigned char byte) { return byte != 0; })) {
    return invalid_argument("reserved has a byte that is not 0");
  }
  return {};
}

std::optional<PoolSwitch> switch_named(aclrtMemPoolAttr attribute) {
  switch (attribute) {
    case ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      return PoolSwitch::kFollowEvents;
    case ACL_RT_MEM_POOL_REUSE_ALLOW_OPPORTUNISTIC:
      return PoolSwitch::kOpportunistic;
    case ACL_RT_MEM_POOL_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return PoolSwitch::kAddWaits;
    default:
      return std::nullopt;
  }
}

// Values are read and written as bytes: programs need not align them.
template <typename T>
T read_value(const void* value) {
  T number;
  memcpy(&number, value, sizeof number);
  return number;
}
template <typename T>
void write_value(void* value, T number) {
  memcpy(value, &number, sizeof number);
}

Error unknown_attribute(aclrtMemPoolAttr attribute) {
  return Error::format(ErrorCode::kPoolUnable, "attr is %d, which pools do not have",
                       static_cast<int>(attribute));
}

Result<Runtime*> attribute_call(const void* pool, const void* value) {
  US_TRY(require_pointer(pool, "memPool"));
  US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kMemoryPools));
  if (value == nullptr) return Error::format(ErrorCode::kInvalidParam, "value is NULL");
  return runtime;
}

Result<void> reset_mark(MemoryPools& pools, uint64_t pool, MemoryPools::Mark mark, uint64_t value) {
  if (value == 0) return pools.reset_high_mark(pool, mark);
  US_TRY(pools.usage(pool));
  return Error::format(ErrorCode::kPoolUnable,
                       "a high mark can only be set to 0, which resets it, not to %llu",
                       static_cast<unsigned long long>(value));
}

Result<void> set_switch(MemoryPools& pools, uint64_t pool, PoolSwitch which, uint32_t value) {
  if (value > 1) {
    return Error::format(ErrorCode::kInvalidParam, "value is %u and must be 0 or 1", value);
  }
  return pools.set_reuse_switch(pool, which, value == 1);
}

Result<void> set_attribute(MemoryPools& pools, uint64_t pool, aclrtMemPoolAttr attribute,
                           const void* value) {
  if (const auto which = switch_named(attribute)) {
    return set_switch(pools, pool, *which, read_value<uint32_t>(value));
  }
  switch (attribute) {
    case ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD:
      return pools.set_release_threshold(pool, read_value<uint64_t>(value));
    case ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH:
      return reset_mark(pools, pool, MemoryPools::Mark::kReserved, read_value<uint64_t>(value));
    case ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH:
      return reset_mark(pools, pool, MemoryPools::Mark::kUsed, read_value<uint64_t>(value));
    case ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT:
    case ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT:
      return Error::format(ErrorCode::kInvalidParam, "attr %d can only be read",
                           static_cast<int>(attribute));
    default:
      US_TRY(pools.usage(pool));  // an unknown pool comes first
      return unknown_attribute(attribute);
  }
}

Result<void> get_attribute(MemoryPools& pools, uint64_t pool, aclrtMemPoolAttr attribute,
                           void* value) {
  if (const auto which = switch_named(attribute)) {
    US_TRY_ASSIGN(const bool on, pools.reuse_switch(pool, *which));
    write_value<uint32_t>(value, on ? 1 : 0);
    return {};
  }
  US_TRY_ASSIGN(const PoolUsage usage, pools.usage(pool));
  switch (attribute) {
    case ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD: {
      US_TRY_ASSIGN(const uint64_t threshold, pools.release_threshold(pool));
      write_value(value, threshold);
      return {};
    }
    case ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_CURRENT:
      write_value(value, usage.reserved);
      return {};
    case ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH:
      write_value(value, usage.reserved_high);
      return {};
    case ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT:
      write_value(value, usage.used);
      return {};
    case ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH:
      write_value(value, usage.used_high);
      return {};
    default:
      return unknown_attribute(attribute);
  }
}

}  // namespace

aclError aclrtMemPoolCreate(aclrtMemPool* memPool, const aclrtMemPoolProps* poolProps) {
  return guarded(US_CALL(out(memPool), list(poolProps, 1)), [&]() -> Result<void> {
    US_TRY(require_pointer(memPool, "memPool"));
    US_TRY(require_pointer(poolProps, "poolProps"));
    US_TRY(check_properties(*poolProps));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kMemoryPools));
    US_TRY_ASSIGN(const unsigned device,
                  runtime->devices().check(poolProps->location.id, "location.id"));
    US_TRY_ASSIGN(const uint64_t pool, runtime->memory_pools().create(
                                           {.device = device, .max_size = poolProps->maxSize}));
    History::begin({ObjectKind::kPool, pool, 0, static_cast<int32_t>(device)});
    *memPool = handle_pointer(pool);
    return {};
  });
}

aclError aclrtMemPoolDestroy(aclrtMemPool memPool) {
  return guarded(US_CALL(memPool), [&]() -> Result<void> {
    US_TRY(require_pointer(memPool, "memPool"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kMemoryPools));
    const ObjectEnd end(ObjectKind::kPool, handle_number(memPool));
    US_TRY(runtime->memory_pools().destroy(handle_number(memPool)));
    end.confirm();
    History::end_parts_of(ObjectKind::kAllocation, handle_number(memPool),
                          "its pool was destroyed");
    return {};
  });
}

aclError aclrtMemPoolSetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr, void* value) {
  return guarded(US_CALL(memPool, attr, list(value, sizeof(uint64_t))), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, attribute_call(memPool, value));
    return set_attribute(runtime->memory_pools(), handle_number(memPool), attr, value);
  });
}

aclError aclrtMemPoolGetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr, void* value) {
  return guarded(US_CALL(memPool, attr, value), [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, attribute_call(memPool, value));
    return get_attribute(runtime->memory_pools(), handle_number(memPool), attr, value);
  });
}

aclError aclrtMemPoolMallocAsync(void** ptr, size_t size, aclrtMemPool memPool,
                                 aclrtStream stream) {
  return guarded(US_CALL(out(ptr), size, memPool, stream), size, [&]() -> Result<void> {
    US_TRY(require_pointer(ptr, "ptr"));
    US_TRY(require_pointer(memPool, "memPool"));
    US_TRY(require_pointer(stream, "stream"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kMemoryPools));
    if (size == 0) return {};
    US_TRY_ASSIGN(const StreamCall call, stream_call(*runtime, stream));
    US_TRY_ASSIGN(const VirtualAddress address,
                  runtime->memory_pools().allocate(handle_number(memPool), size, call.stream));
    History::begin({.kind = ObjectKind::kAllocation,
                    .number = address,
                    .size = size,
                    .device = static_cast<int32_t>(call.stream.device()),
                    .part_of = handle_number(memPool),
                    .taken = align_up(size, kGranule)});
    *ptr = to_pointer(address);
    return {};
  });
}

aclError aclrtMemPoolFreeAsync(void* ptr, aclrtStream stream) {
  return guarded(US_CALL(ptr, stream), [&]() -> Result<void> {
    US_TRY(require_pointer(ptr, "ptr"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kMemoryPools));
    if (stream == nullptr) return Error::format(ErrorCode::kPoolUnable, "stream is NULL");
    US_TRY_ASSIGN(const StreamCall call, stream_call(*runtime, stream));
    return runtime->memory_pools().free(to_address(ptr), call.stream);
  });
}

aclError aclrtMemPoolTrimTo(aclrtMemPool memPool, size_t minBytesToKeep) {
  return guarded(US_CALL(memPool, minBytesToKeep), [&]() -> Result<void> {
    US_TRY(require_pointer(memPool, "memPool"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kMemoryPools));
    return runtime->memory_pools().trim(handle_number(memPool), minBytesToKeep);
  });
}
