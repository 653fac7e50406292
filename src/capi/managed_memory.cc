// SPDX-License-Identifier: Apache-2.0
//
// Managed memory: allocation, advice and what was advised, prefetch. Rules: MANAGED.
#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "acl/acl_rt.h"
#include "capi/call.h"
#include "capi/stream_argument.h"
#include "observe/history.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

static_assert(static_cast<int>(LocationRequest::kNone) == ACL_MEM_LOCATIONTYPE_INVALID);
static_assert(static_cast<int>(LocationRequest::kDevice) == ACL_MEM_LOCATIONTYPE_DEVICE);
static_assert(static_cast<int>(LocationRequest::kHost) == ACL_MEM_LOCATIONTYPE_HOST);
static_assert(static_cast<int>(LocationRequest::kHostNuma) == ACL_MEM_LOCATIONTYPE_HOST_NUMA);
static_assert(static_cast<int>(LocationRequest::kHostNumaCurrent) ==
              ACL_MEM_LOCATIONTYPE_HOST_NUMA_CURRENT);
static_assert(static_cast<int>(Advice::kSetReadMostly) == ACL_MEM_ADVISE_SET_READ_MOSTLY);
static_assert(static_cast<int>(Advice::kUnsetReadMostly) == ACL_MEM_ADVISE_UNSET_READ_MOSTLY);
static_assert(static_cast<int>(Advice::kSetPreferredLocation) ==
              ACL_MEM_ADVISE_SET_PREFERRED_LOCATION);
static_assert(static_cast<int>(Advice::kUnsetPreferredLocation) ==
              ACL_MEM_ADVISE_UNSET_PREFERRED_LOCATION);
static_assert(static_cast<int>(Advice::kSetAccessedBy) == ACL_MEM_ADVISE_SET_ACCESSED_BY);
static_assert(static_cast<int>(Advice::kUnsetAccessedBy) == ACL_MEM_ADVISE_UNSET_ACCESSED_BY);

// Numbers among the ids of devices and nodes.
constexpr int32_t kHostId = -1;
constexpr int32_t kNoId = -2;

Result<AdvisedLocation> location_argument(Runtime& runtime,
                                          const aclrtMemManagedLocation& location) {
  if (location.type < ACL_MEM_LOCATIONTYPE_INVALID ||
      location.type > ACL_MEM_LOCATIONTYPE_HOST_NUMA_CURRENT) {
    return Error::format(ErrorCode::kInvalidParam, "location.type is %d and must be 0 to 4",
                         static_cast<int>(location.type));
  }
  return runtime.managed_memory().locate(static_cast<LocationRequest>(location.type), location.id);
}

// ---- Attributes ----

// One value that a call asks for.
struct AttributeQuery {
  aclrtMemManagedRangeAttribute attribute;
  void* data;
  size_t size;
};

Result<void> check_query(const AttributeQuery& query) {
  if (query.attribute < ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY ||
      query.attribute > ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID) {
    return Error::format(ErrorCode::kInvalidParam, "attribute is %d and must be 1 to 8",
                         static_cast<int>(query.attribute));
  }
  const bool is_list = query.attribute == ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY;
  const bool fits = is_list ? query.size != 0 && query.size % sizeof(int32_t) == 0
                            : query.size == sizeof(int32_t);
  if (fits) return {};
  return Error::format(
      ErrorCode::kInvalidParam, "the data size of attribute %d is %zu and must be %s",
      static_cast<int>(query.attribute), query.size, is_list ? "a multiple of 4 above 0" : "4");
}

int32_t id_of(const AdvisedLocation& location) {
  switch (location.kind) {
    case AdvisedLocation::Kind::kNone:
      return kNoId;
    case AdvisedLocation::Kind::kHost:
      return kHostId;
    case AdvisedLocation::Kind::kDevice:
    case AdvisedLocation::Kind::kHostNuma:
      break;
  }
  return location.id;
}

int32_t type_of(const AdvisedLocation& location) {
  switch (location.kind) {
    case AdvisedLocation::Kind::kNone:
      return ACL_MEM_LOCATIONTYPE_INVALID;
    case AdvisedLocation::Kind::kDevice:
      return ACL_MEM_LOCATIONTYPE_DEVICE;
    case AdvisedLocation::Kind::kHost:
      return ACL_MEM_LOCATIONTYPE_HOST;
    case AdvisedLocation::Kind::kHostNuma:
      break;
  }
  return ACL_MEM_LOCATIONTYPE_HOST_NUMA;
}

// REQUIRES: the attribute has one value.
int32_t value_of(aclrtMemManagedRangeAttribute attribute, const UsageAdvice& advice) {
  switch (attribute) {
    case ACL_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      return advice.read_mostly ? 1 : 0;
    case ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
      return type_of(advice.preferred);
    case ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
    case ACL_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
      return id_of(advice.preferred);
    case ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      return type_of(advice.last_prefetch);
    case ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
    case ACL_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
    case ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
      break;
  }
  return id_of(advice.last_prefetch);
}

// Programs may keep the values at any address.
void put(void* data, size_t index, int32_t value) {
  memcpy(static_cast<char*>(data) + index * sizeof value, &value, sizeof value);
}

void answer(const AttributeQuery& query, const UsageAdvice& advice) {
  if (query.attribute != ACL_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) {
    put(query.data, 0, value_of(query.attribute, advice));
    return;
  }
  const size_t places = query.size / sizeof(int32_t);
  size_t used = 0;
  for (uint32_t left = advice.accessed_by_devices; left != 0 && used < places; left &= left - 1) {
    put(query.data, used++, std::countr_zero(left));
  }
  if (advice.accessed_by_host && used < places) put(query.data, used++, kHostId);
  while (used < places) put(query.data, used++, kNoId);
}

// Checks everything before anything is written. query_at(i) gives the i-th of `count`.
template <typename QueryAt>
Result<void> answer_all(const void* ptr, size_t size, size_t count, QueryAt query_at) {
  US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kManagedMemory));
  for (size_t i = 0; i < count; ++i) US_TRY(check_query(query_at(i)));
  US_TRY_ASSIGN(const UsageAdvice advice,
                runtime->managed_memory().advice_on({to_address(ptr), size}));
  for (size_t i = 0; i < count; ++i) answer(query_at(i), advice);
  return {};
}

// ---- Prefetch ----

struct PrefetchBatch {
  std::span<const void* const> starts;
  std::span<const size_t> sizes;
  std::span<const aclrtMemManagedLocation> locations;
  std::span<const size_t> first_elements;  // of each location
};

// MANAGED-15
Result<void> check_indexes(const PrefetchBatch& batch) {
  const size_t elements = batch.starts.size();
  if (batch.first_elements.empty()) {
    return Error::format(ErrorCode::kInvalidParam, "numPrefetchLocs is 0");
  }
  for (size_t k = 0; k < batch.first_elements.size(); ++k) {
    const size_t index = batch.first_elements[k];
    const bool rises = k == 0 ? index == 0 : index > batch.first_elements[k - 1];
    if (!rises || index >= elements) {
      return Error::format(
          ErrorCode::kInvalidParam,
          "prefetchLocIdxs[%zu] is %zu; they start with 0, rise, and stay below %zu", k, index,
          elements);
    }
  }
  return {};
}

Result<std::vector<PrefetchRequest>> requests_of(Runtime& runtime, const PrefetchBatch& batch) {
  US_TRY(check_indexes(batch));
  std::vector<PrefetchRequest> requests;
  requests.reserve(batch.starts.size());
  for (size_t k = 0; k < batch.locations.size(); ++k) {
    US_TRY_ASSIGN(const AdvisedLocation location, location_argument(runtime, batch.locations[k]));
    const size_t end =
        k + 1 < batch.first_elements.size() ? batch.first_elements[k + 1] : batch.starts.size();
    for (size_t i = batch.first_elements[k]; i < end; ++i) {
      requests.push_back({{to_address(batch.starts[i]), batch.sizes[i]}, location});
    }
  }
  return requests;
}

}  // namespace

aclError aclrtMemAllocManaged(void** ptr, uint64_t size, uint32_t flag) {
  return guarded(US_CALL(out(ptr), size, flag), size, [&]() -> Result<void> {
    US_TRY(require_pointer(ptr, "ptr"));
    if (flag != ACL_RT_MEM_ATTACH_GLOBAL) {
      return invalid_argument("flag is %u and must be ACL_RT_MEM_ATTACH_GLOBAL (1)", flag);
    }
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kManagedMemory));
    if (size == 0) return Error::format(ErrorCode::kInvalidParam, "size is 0");
    US_TRY_ASSIGN(const unsigned device, runtime->current_device());
    US_TRY_ASSIGN(const VirtualAddress address, runtime->managed_memory().allocate(size, device));
    // Its pages are where they are used, and no device is charged for them.
    History::begin({.kind = ObjectKind::kAllocation,
                    .number = address,
                    .size = size,
                    .device = static_cast<int32_t>(device),
                    .taken = 0});
    *ptr = to_pointer(address);
    return {};
  });
}

aclError aclrtMemManagedAdvise(const void* const ptr, uint64_t size,
                               aclrtMemManagedAdviseType advise, aclrtMemManagedLocation location) {
  return guarded(US_CALL(ptr, size, advise, location), [&]() -> Result<void> {
    US_TRY(require_pointer(ptr, "ptr"));
    US_TRY(require_size(size, "size"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kManagedMemory));
    if (advise < ACL_MEM_ADVISE_SET_READ_MOSTLY || advise > ACL_MEM_ADVISE_UNSET_ACCESSED_BY) {
      return Error::format(ErrorCode::kInvalidParam, "advise is %d and must be 0 to 5",
                           static_cast<int>(advise));
    }
    const bool has_location =  // MANAGED-20
        advise != ACL_MEM_ADVISE_SET_READ_MOSTLY && advise != ACL_MEM_ADVISE_UNSET_READ_MOSTLY;
    AdvisedLocation where;
    if (has_location) {
      US_TRY_ASSIGN(where, location_argument(*runtime, location));
    }
    return runtime->managed_memory().advise({to_address(ptr), size}, static_cast<Advice>(advise),
                                            where);
  });
}

aclError aclrtMemManagedGetAttr(aclrtMemManagedRangeAttribute attribute, const void* ptr,
                                size_t size, void* data, size_t dataSize) {
  return guarded(US_CALL(attribute, ptr, size, data, dataSize), [&]() -> Result<void> {
    US_TRY(require_pointer(ptr, "ptr"));
    US_TRY(require_size(size, "size"));
    US_TRY(require_pointer(data, "data"));
    return answer_all(ptr, size, 1, [&](size_t) {
      return AttributeQuery{attribute, data, dataSize};
    });
  });
}

aclError aclrtMemManagedGetAttrs(aclrtMemManagedRangeAttribute* attributes, size_t numAttributes,
                                 const void* ptr, size_t size, void** data, size_t* dataSizes) {
  return guarded(US_CALL(list(attributes, numAttributes), numAttributes, ptr, size,
                         list(data, numAttributes), list(dataSizes, numAttributes)),
                 [&]() -> Result<void> {
                   US_TRY(require_pointer(attributes, "attributes"));
                   US_TRY(require_size(numAttributes, "numAttributes"));
                   US_TRY(require_pointer(ptr, "ptr"));
                   US_TRY(require_size(size, "size"));
                   US_TRY(require_pointer(data, "data"));
                   US_TRY(require_pointer(dataSizes, "dataSizes"));
                   for (size_t i = 0; i < numAttributes; ++i) {
                     if (data[i] == nullptr) return invalid_argument("data[%zu] is NULL", i);
                   }
                   return answer_all(ptr, size, numAttributes, [&](size_t i) {
                     return AttributeQuery{attributes[i], data[i], dataSizes[i]};
                   });
                 });
}

aclError aclrtMemManagedPrefetchAsync(const void* ptr, size_t size,
                                      aclrtMemManagedLocation location, uint32_t flags,
                                      aclrtStream stream) {
  return guarded(US_CALL(ptr, size, location, flags, stream), [&]() -> Result<void> {
    US_TRY(require_pointer(ptr, "ptr"));
    US_TRY(require_size(size, "size"));
    US_TRY(require_zero(flags, "flags"));
    const GatePass pass;
    US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kManagedMemory, stream));
    US_TRY_ASSIGN(const AdvisedLocation where, location_argument(*call.runtime, location));
    const PrefetchRequest request{{to_address(ptr), size}, where};
    return call.runtime->prefetches().queue(call.stream, {&request, 1});
  });
}

aclError aclrtMemManagedPrefetchBatchAsync(const void** ptrs, size_t* sizes, size_t count,
                                           aclrtMemManagedLocation* prefetchLocs,
                                           size_t* prefetchLocIdxs, size_t numPrefetchLocs,
                                           uint64_t flags, aclrtStream stream) {
  return guarded(
      US_CALL(list(ptrs, count), list(sizes, count), count, list(prefetchLocs, numPrefetchLocs),
              list(prefetchLocIdxs, numPrefetchLocs), numPrefetchLocs, flags, stream),
      [&]() -> Result<void> {
        US_TRY(require_pointer(ptrs, "ptrs"));
        US_TRY(require_pointer(sizes, "sizes"));
        US_TRY(require_size(count, "count"));
        US_TRY(require_pointer(prefetchLocs, "prefetchLocs"));
        US_TRY(require_pointer(prefetchLocIdxs, "prefetchLocIdxs"));
        US_TRY(require_zero(flags, "flags"));
        if (count < numPrefetchLocs) {
          return invalid_argument("numPrefetchLocs is %zu and must be at most count, %zu",
                                  numPrefetchLocs, count);
        }
        for (size_t i = 0; i < count; ++i) {
          if (ptrs[i] == nullptr || sizes[i] == 0) {
            return invalid_argument("ptrs[%zu] is %p with %zu bytes", i, ptrs[i], sizes[i]);
          }
        }
        const GatePass pass;
        US_TRY_ASSIGN(const StreamCall call, stream_call(Feature::kManagedMemory, stream));
        US_TRY_ASSIGN(const std::vector<PrefetchRequest> requests,
                      requests_of(*call.runtime, {{ptrs, count},
                                                  {sizes, count},
                                                  {prefetchLocs, numPrefetchLocs},
                                                  {prefetchLocIdxs, numPrefetchLocs}}));
        return call.runtime->prefetches().queue(call.stream, requests);
      });
}
