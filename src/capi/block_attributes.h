// SPDX-License-Identifier: Apache-2.0
//
// Published memory attributes and locations, and what we call them.
#pragma once

#include <optional>

#include "acl/acl_rt.h"
#include "base/result.h"
#include "device/product_profile.h"
#include "memory/block.h"
#include "runtime/runtime.h"

namespace understudy::capi {

// Nothing for attributes that no block can have (PHYS-10).
std::optional<BlockAttribute> block_attribute(aclrtMemAttr attribute);
// The attribute as a query gives it, which need not be the one asked for (PROP-03).
aclrtMemAttr read_back(BlockAttribute attribute, bool on_device, MemoryTechnology technology);

// Outer checks of a block description: the attribute exists and fits the kind of location.
Result<BlockAttribute> attribute_argument(const aclrtPhysicalMemProp& property);

Location location_of(const aclrtMemLocation& location, LocationKind kind);
aclrtMemLocation published_location(Location location);

}  // namespace understudy::capi
