// SPDX-License-Identifier: Apache-2.0
//
// Physical blocks. Rules: PHYS, PFREE, GRAN, PROP.
#include "acl/acl_rt.h"
#include "capi/block_attributes.h"
#include "capi/call.h"
#include "observe/history.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

Result<void> check_description(const aclrtPhysicalMemProp& property) {
  if (property.handleType != ACL_MEM_HANDLE_TYPE_NONE) {
    return invalid_argument("prop->handleType is %d and must be ACL_MEM_HANDLE_TYPE_NONE",
                            static_cast<int>(property.handleType));
  }
  if (property.allocationType != ACL_MEM_ALLOCATION_TYPE_PINNED) {
    return invalid_argument("prop->allocationType is %d and must be ACL_MEM_ALLOCATION_TYPE_PINNED",
                            static_cast<int>(property.allocationType));
  }
  if (property.location.type == ACL_MEM_LOCATION_TYPE_UNREGISTERED ||
      property.location.type == ACL_MEM_LOCATION_TYPE_MANAGED) {
    return invalid_argument("prop->location.type is %d, where no block can be",
                            static_cast<int>(property.location.type));
  }
  return {};
}

// The older edition knows two attributes, on devices (PHYS-32, GRAN-03).
Result<void> check_legacy(const Settings& settings, const aclrtPhysicalMemProp& property) {
  if (settings.attribute_set == AttributeSet::kFull) return {};
  const bool known = property.memAttr == ACL_HBM_MEM_HUGE || property.memAttr == ACL_HBM_MEM_NORMAL;
  if (known && property.location.type == ACL_MEM_LOCATION_TYPE_DEVICE) return {};
  return invalid_argument(
      "prop->memAttr %d at prop->location.type %d is not in attr_set=legacy, which has "
      "ACL_HBM_MEM_HUGE 4 and HBM_MEM_NORMAL 5 on devices",
      static_cast<int>(property.memAttr), static_cast<int>(property.location.type));
}

// Inner checks of a description: its location exists, its reserved word is 0.
Result<Location> location_argument(Runtime& runtime, const aclrtPhysicalMemProp& property) {
  LocationKind kind = LocationKind::kHost;
  switch (property.location.type) {
    case ACL_MEM_LOCATION_TYPE_HOST:
      break;
    case ACL_MEM_LOCATION_TYPE_HOST_NUMA:
      kind = LocationKind::kHostNuma;
      break;
    case ACL_MEM_LOCATION_TYPE_DEVICE:
      kind = LocationKind::kDevice;
      US_TRY(runtime.devices().check(property.location.id, "prop->location.id"));
      break;
    default:
      return Error::format(ErrorCode::kInvalidParam,
                           "prop->location.type is %d, which is no location",
                           static_cast<int>(property.location.type));
  }
  if (property.reserve != 0) {
    return Error::format(ErrorCode::kInvalidParam, "prop->reserve is %llu and must be 0",
                         static_cast<unsigned long long>(property.reserve));
  }
  return location_of(property.location, kind);
}

// The life of a block begins, where that is of interest.
[[gnu::cold]] void note_block(Runtime& runtime, BlockHandle handle, const BlockRequest& request) {
  PageUse pages;
  const Result<BlockProperties> made = runtime.physical_memory().properties(handle);
  const Result<uint64_t> granularity =
      runtime.physical_memory().granularity(request.attribute, request.location);
  if (made.ok() && granularity.ok()) pages = {granularity.value(), made.value().size};
  const Location location = request.location;
  History::begin({.kind = ObjectKind::kBlock,
                  .number = handle,
                  .size = request.size,
                  .device = location.on_device() ? static_cast<int32_t>(location.id) : kNoDevice,
                  .pages = pages});
}

}  // namespace

aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size,
                             const aclrtPhysicalMemProp* prop, uint64_t flags) {
  return guarded(US_CALL(out(handle), size, prop, flags), size, [&]() -> Result<void> {
    US_TRY(require_pointer(handle, "handle"));
    US_TRY(require_pointer(prop, "prop"));
    US_TRY(require_size(size, "size"));
    US_TRY(require_zero(flags, "flags"));
    US_TRY(check_description(*prop));
    US_TRY_ASSIGN(const BlockAttribute attribute, attribute_argument(*prop));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY(check_legacy(runtime->settings(), *prop));
    const GatePass pass;
    US_TRY(runtime->require(Feature::kVirtualMemory));
    US_TRY_ASSIGN(const Location location, location_argument(*runtime, *prop));
    if (location.kind == LocationKind::kHostNuma) US_TRY(runtime->current_context());
    const BlockRequest request{size, attribute, location};
    US_TRY_ASSIGN(const BlockHandle created, runtime->physical_memory().create(request));
    if (is_observed()) [[unlikely]]
      note_block(*runtime, created, request);
    *handle = handle_pointer(created);
    return {};
  });
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  return guarded(US_CALL(handle), [&]() -> Result<void> {
    US_TRY(require_pointer(handle, "handle"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kVirtualMemory));
    const ObjectEnd end(ObjectKind::kBlock, handle_number(handle));
    US_TRY(runtime->physical_memory().free(handle_number(handle)));
    end.confirm();
    return {};
  });
}

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop,
                                          aclrtMemGranularityOptions option, size_t* granularity) {
  return guarded(US_CALL(prop, option, out(granularity)), [&]() -> Result<void> {
    US_TRY(require_pointer(prop, "prop"));
    US_TRY(require_pointer(granularity, "granularity"));
    US_TRY_ASSIGN(const BlockAttribute attribute, attribute_argument(*prop));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY(check_legacy(runtime->settings(), *prop));
    US_TRY(runtime->require(Feature::kVirtualMemory));
    US_TRY_ASSIGN(const Location location, location_argument(*runtime, *prop));
    if (option != ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM &&
        option != ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
      return Error::format(ErrorCode::kNotSupported, "option is %d, which is not supported",
                           static_cast<int>(option));
    }
    US_TRY_ASSIGN(*granularity, runtime->physical_memory().granularity(attribute, location));
    return {};
  });
}

aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle,
                                                   aclrtPhysicalMemProp* prop) {
  return guarded(US_CALL(handle, prop), [&]() -> Result<void> {
    US_TRY(require_pointer(handle, "handle"));
    US_TRY(require_pointer(prop, "prop"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kVirtualMemory));
    US_TRY_ASSIGN(const BlockProperties properties,
                  runtime->physical_memory().properties(handle_number(handle)));
    prop->handleType = ACL_MEM_HANDLE_TYPE_NONE;
    prop->allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
    prop->memAttr = read_back(properties.attribute, properties.location.on_device(),
                              runtime->settings().product.technology);
    prop->location = published_location(properties.location);
    prop->reserve = 0;
    return {};
  });
}
