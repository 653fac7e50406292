// SPDX-License-Identifier: Apache-2.0
//
// Who may use a mapping. Rules: ACCESS.
#include <vector>

#include "acl/acl_rt.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

// Devices are looked at later: an id that no device has is a matter of state (ACCESS-07).
Result<Location> location_argument(const aclrtMemLocation& location) {
  if (location.type == ACL_MEM_LOCATION_TYPE_DEVICE) {
    return Location{LocationKind::kDevice, location.id};
  }
  if (location.type != ACL_MEM_LOCATION_TYPE_HOST) {
    return Error::format(ErrorCode::kInvalidParam, "location.type is %d and must be HOST or DEVICE",
                         static_cast<int>(location.type));
  }
  if (location.id != 0) {
    return Error::format(ErrorCode::kInvalidParam, "the id of location HOST is %d and must be 0",
                         static_cast<int>(location.id));
  }
  return Location{LocationKind::kHost, 0};
}

Result<void> check_flags(aclrtMemAccessFlags flags) {
  if (flags == ACL_RT_MEM_ACCESS_FLAGS_NONE || flags == ACL_RT_MEM_ACCESS_FLAGS_READ ||
      flags == ACL_RT_MEM_ACCESS_FLAGS_READWRITE) {
    return {};
  }
  return Error::format(ErrorCode::kInvalidParam, "flags is %d, which is no access",
                       static_cast<int>(flags));
}

// Locations name devices by their logic ids, which ASCEND_RT_VISIBLE_DEVICES does not change.
Result<Location> known_location(Runtime& runtime, Location location) {
  if (!location.on_device()) return location;
  US_TRY_ASSIGN(location.id, runtime.devices().with_logic_id(location.id, "location.id",
                                                             ErrorCode::kInvalidParam));
  return location;
}

// All entries are checked before any is applied (ACCESS-15).
Result<std::vector<Location>> locations_argument(Runtime& runtime, const aclrtMemAccessDesc* desc,
                                                 size_t count) {
  // More entries than locations means that one is named twice; it also keeps us inside the array.
  if (count > runtime.devices().count() + size_t{1}) {
    return Error::format(ErrorCode::kInvalidParam, "count is %zu and there are %u locations", count,
                         runtime.devices().count() + 1);
  }
  std::vector<Location> locations;
  for (size_t i = 0; i < count; ++i) {
    US_TRY(check_flags(desc[i].flags));
    US_TRY_ASSIGN(const Location location, location_argument(desc[i].location));
    for (const Location& other : locations) {
      if (other == location) {
        return Error::format(ErrorCode::kInvalidParam,
                             "desc[%zu] names a location for the second time", i);
      }
    }
    locations.push_back(location);
  }
  for (size_t i = 0; i < count; ++i) {
    if (desc[i].flags != ACL_RT_MEM_ACCESS_FLAGS_READWRITE) {
      return Error::format(ErrorCode::kNotSupported, "desc[%zu].flags is %d and must be READWRITE",
                           i, static_cast<int>(desc[i].flags));
    }
  }
  for (Location& location : locations) {
    US_TRY_ASSIGN(location, known_location(runtime, location));
  }
  return locations;
}

}  // namespace

aclError aclrtMemSetAccess(void* virPtr, size_t size, aclrtMemAccessDesc* desc, size_t count) {
  return guarded(US_CALL(virPtr, size, list(desc, count), count), [&]() -> Result<void> {
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kVirtualMemory));
    if (virPtr == nullptr || desc == nullptr || count == 0) {
      return Error::format(ErrorCode::kInvalidParam, "%s",
                           virPtr == nullptr ? "virPtr is NULL"
                           : desc == nullptr ? "desc is NULL"
                                             : "count is 0");
    }
    US_TRY_ASSIGN(const std::vector<Location> locations, locations_argument(*runtime, desc, count));
    const std::optional<VirtualRange> range = VirtualRange::make(to_address(virPtr), size);
    if (!range) {
      return Error::format(ErrorCode::kInvalidParam,
                           "size %zu at %p runs past the end of all addresses", size, virPtr);
    }
    return runtime->address_space().mapper().grant(*range, locations);
  });
}

aclError aclrtMemGetAccess(void* virPtr, aclrtMemLocation* location, uint64_t* flag) {
  return guarded(US_CALL(virPtr, at(location), out(flag)), [&]() -> Result<void> {
    US_TRY(require_pointer(virPtr, "virPtr"));
    US_TRY(require_pointer(location, "location"));
    US_TRY(require_pointer(flag, "flag"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kVirtualMemory));
    US_TRY_ASSIGN(const Location named, location_argument(*location));
    US_TRY_ASSIGN(const Location where, known_location(*runtime, named));
    US_TRY_ASSIGN(const bool granted,
                  runtime->address_space().mapper().has_access(to_address(virPtr), where));
    *flag = granted ? ACL_RT_MEM_ACCESS_FLAGS_READWRITE : ACL_RT_MEM_ACCESS_FLAGS_NONE;
    return {};
  });
}
