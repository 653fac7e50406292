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
    return Error::format(ErrorCode::kRefused, "location.type is %d and must be HOST or DEVICE",
                         static_cast<int>(location.type));
  }
  if (location.id != 0) {
    return Error::format(ErrorCode::kRefused, "the id of location HOST is %u and must be 0",
                         location.id);
  }
  return Location{LocationKind::kHost, 0};
}

Result<void> check_flags(aclrtMemAccessFlags flags) {
  if (flags == ACL_RT_MEM_ACCESS_FLAGS_NONE || flags == ACL_RT_MEM_ACCESS_FLAGS_READ ||
      flags == ACL_RT_MEM_ACCESS_FLAGS_READWRITE) {
    return {};
  }
  return Error::format(ErrorCode::kRefused, "flags is %d, which is no access",
                       static_cast<int>(flags));
}

Result<void> check_device(Runtime& runtime, Location location) {
  if (location.on_device())
    US_TRY(runtime.devices().check(location.id, "location.id", ErrorCode::kRefused));
  return {};
}

// All entries are checked before any is applied (ACCESS-15).
Result<std::vector<Location>> locations_argument(Runtime& runtime, const aclrtMemAccessDesc* desc,
                                                 size_t count) {
  // More entries than locations means that one is named twice; it also keeps us inside the array.
  if (count > runtime.devices().count() + size_t{1}) {
    return Error::format(ErrorCode::kRefused, "count is %zu and there are %u locations", count,
                         runtime.devices().count() + 1);
  }
  std::vector<Location> locations;
  for (size_t i = 0; i < count; ++i) {
    US_TRY(check_flags(desc[i].flags));
    US_TRY_ASSIGN(const Location location, location_argument(desc[i].location));
    for (const Location& other : locations) {
      if (other == location) {
        return Error::format(ErrorCode::kRefused, "desc[%zu] names a location for the second time",
                             i);
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
  for (const Location& location : locations) US_TRY(check_device(runtime, location));
  return locations;
}

}  // namespace

aclError aclrtMemSetAccess(void* virPtr, size_t size, aclrtMemAccessDesc* desc, size_t count) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY(runtime->require(Feature::kVirtualMemory));
    if (virPtr == nullptr || desc == nullptr || count == 0) {
      return Error::format(ErrorCode::kRefused, "%s",
                           virPtr == nullptr ? "virPtr is NULL"
                           : desc == nullptr ? "desc is NULL"
                                             : "count is 0");
    }
    US_TRY_ASSIGN(const std::vector<Location> locations, locations_argument(*runtime, desc, count));
    const std::optional<VirtualRange> range = VirtualRange::make(to_address(virPtr), size);
    if (!range) {
      return Error::format(ErrorCode::kRefused, "size %zu at %p runs past the end of all addresses",
                           size, virPtr);
    }
    return runtime->address_space().grant(*range, locations);
  });
}

aclError aclrtMemGetAccess(void* virPtr, aclrtMemLocation* location, uint64_t* flag) {
  return guarded(__func__, [&]() -> Result<void> {
    US_TRY(require_pointer(virPtr, "virPtr"));
    US_TRY(require_pointer(location, "location"));
    US_TRY(require_pointer(flag, "flag"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY(runtime->require(Feature::kVirtualMemory));
    US_TRY_ASSIGN(const Location where, location_argument(*location));
    US_TRY(check_device(*runtime, where));
    US_TRY_ASSIGN(const bool granted,
                  runtime->address_space().has_access(to_address(virPtr), where));
    *flag = granted ? ACL_RT_MEM_ACCESS_FLAGS_READWRITE : ACL_RT_MEM_ACCESS_FLAGS_NONE;
    return {};
  });
}
