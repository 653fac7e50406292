// SPDX-License-Identifier: Apache-2.0
#include "capi/block_attributes.h"

#include <string>

#include "capi/call.h"

namespace understudy::capi {

std::optional<BlockAttribute> block_attribute(aclrtMemAttr attribute) {
  switch (attribute) {
    case ACL_MEM_NORMAL:
      return BlockAttribute::kNormal;
    case ACL_MEM_HUGE:
      return BlockAttribute::kHuge;
    case ACL_MEM_HUGE1G:
      return BlockAttribute::kGiant;
    case ACL_MEM_P2P_NORMAL:
      return BlockAttribute::kPeerNormal;
    case ACL_MEM_P2P_HUGE:
      return BlockAttribute::kPeerHuge;
    case ACL_MEM_P2P_HUGE1G:
      return BlockAttribute::kPeerGiant;
    case ACL_HBM_MEM_NORMAL:
      return BlockAttribute::kHbmNormal;
    case ACL_HBM_MEM_HUGE:
      return BlockAttribute::kHbmHuge;
    case ACL_HBM_MEM_HUGE1G:
      return BlockAttribute::kHbmGiant;
    case ACL_DDR_MEM_NORMAL:
      return BlockAttribute::kDdrNormal;
    case ACL_DDR_MEM_HUGE:
      return BlockAttribute::kDdrHuge;
    case ACL_DDR_MEM_P2P_NORMAL:
      return BlockAttribute::kDdrPeerNormal;
    case ACL_DDR_MEM_P2P_HUGE:
      return BlockAttribute::kDdrPeerHuge;
    default:
      return std::nullopt;
  }
}

aclrtMemAttr read_back(BlockAttribute attribute, bool on_device, MemoryTechnology technology) {
  const bool on_hbm = on_device && technology == MemoryTechnology::kHbm;
  const bool on_ddr = on_device && technology == MemoryTechnology::kDdr;
  switch (attribute) {
    case BlockAttribute::kNormal:
      return on_hbm ? ACL_HBM_MEM_NORMAL : ACL_MEM_NORMAL;
    case BlockAttribute::kHuge:
      return on_hbm ? ACL_HBM_MEM_HUGE : ACL_MEM_HUGE;
    case BlockAttribute::kGiant:
      return ACL_HBM_MEM_HUGE1G;
    case BlockAttribute::kPeerNormal:
      return on_device ? ACL_MEM_P2P_NORMAL : ACL_DDR_MEM_P2P_NORMAL;
    case BlockAttribute::kPeerHuge:
      return ACL_MEM_P2P_HUGE;
    case BlockAttribute::kPeerGiant:
      return ACL_MEM_P2P_HUGE1G;
    case BlockAttribute::kHbmNormal:
      return on_ddr ? ACL_MEM_NORMAL : ACL_HBM_MEM_NORMAL;
    case BlockAttribute::kHbmHuge:
      return on_ddr ? ACL_MEM_HUGE : ACL_HBM_MEM_HUGE;
    case BlockAttribute::kHbmGiant:
      return ACL_HBM_MEM_HUGE1G;
    case BlockAttribute::kDdrNormal:
      return ACL_MEM_NORMAL;
    case BlockAttribute::kDdrHuge:
      return ACL_MEM_HUGE;
    case BlockAttribute::kDdrPeerNormal:
      return ACL_DDR_MEM_P2P_NORMAL;
    case BlockAttribute::kDdrPeerHuge:
      return ACL_MEM_P2P_HUGE;
  }
  return ACL_MEM_NORMAL;
}

namespace {

struct NamedAttribute {
  aclrtMemAttr attribute;
  const char* name;
};
constexpr NamedAttribute kNamedAttributes[] = {{ACL_MEM_NORMAL, "MEM_NORMAL"},
                                               {ACL_MEM_HUGE, "MEM_HUGE"},
                                               {ACL_MEM_HUGE1G, "MEM_HUGE1G"},
                                               {ACL_MEM_P2P_NORMAL, "MEM_P2P_NORMAL"},
                                               {ACL_MEM_P2P_HUGE, "MEM_P2P_HUGE"},
                                               {ACL_MEM_P2P_HUGE1G, "MEM_P2P_HUGE1G"},
                                               {ACL_HBM_MEM_NORMAL, "HBM_MEM_NORMAL"},
                                               {ACL_HBM_MEM_HUGE, "HBM_MEM_HUGE"},
                                               {ACL_HBM_MEM_HUGE1G, "HBM_MEM_HUGE1G"},
                                               {ACL_DDR_MEM_NORMAL, "DDR_MEM_NORMAL"},
                                               {ACL_DDR_MEM_HUGE, "DDR_MEM_HUGE"},
                                               {ACL_DDR_MEM_P2P_NORMAL, "DDR_MEM_P2P_NORMAL"},
                                               {ACL_DDR_MEM_P2P_HUGE, "DDR_MEM_P2P_HUGE"}};

bool is_host_only(BlockAttribute attribute) {
  return attribute == BlockAttribute::kDdrNormal || attribute == BlockAttribute::kDdrHuge ||
         attribute == BlockAttribute::kDdrPeerNormal || attribute == BlockAttribute::kDdrPeerHuge;
}

// "ACL_MEM_NORMAL 12, MEM_HUGE 13": what blocks of the product can have at a location.
std::string attributes_of(Runtime& runtime, LocationKind kind) {
  std::string text;
  for (const NamedAttribute& each : kNamedAttributes) {
    const BlockAttribute attribute = *block_attribute(each.attribute);
    if (kind == LocationKind::kDevice && is_host_only(attribute)) continue;
    if (!runtime.physical_memory().granularity(attribute, {kind, 0}).ok()) continue;
    text += (text.empty() ? "ACL_" : ", ") + std::string(each.name) + " " +
            std::to_string(static_cast<int>(each.attribute));
  }
  return text;
}

// The product is known only once there is a configuration, which may be wrong: then no list.
Error wrong_attribute(const aclrtPhysicalMemProp& property, const char* why) {
  const bool on_device = property.location.type == ACL_MEM_LOCATION_TYPE_DEVICE;
  const auto number = static_cast<int>(property.memAttr);
  const Result<Runtime*> runtime = Runtime::instance();
  if (!runtime.ok()) return invalid_argument("prop->memAttr is %d, %s", number, why);
  const LocationKind kind = on_device ? LocationKind::kDevice : LocationKind::kHost;
  return invalid_argument("prop->memAttr is %d, %s; product %s has %s memory with %s", number, why,
                          runtime.value()->settings().product.key.data(),
                          on_device ? "device" : "host",
                          attributes_of(*runtime.value(), kind).c_str());
}

}  // namespace

Result<BlockAttribute> attribute_argument(const aclrtPhysicalMemProp& property) {
  const std::optional<BlockAttribute> attribute = block_attribute(property.memAttr);
  if (!attribute) return wrong_attribute(property, "which no block can have");
  if (property.location.type == ACL_MEM_LOCATION_TYPE_DEVICE && is_host_only(*attribute)) {
    return wrong_attribute(property, "which is for host memory only");
  }
  return *attribute;
}

Location location_of(const aclrtMemLocation& location, LocationKind kind) {
  return {kind, location.id};
}

aclrtMemLocation published_location(Location location) {
  aclrtMemLocation published;
  published.id = location.id;
  switch (location.kind) {
    case LocationKind::kDevice:
      published.type = ACL_MEM_LOCATION_TYPE_DEVICE;
      break;
    case LocationKind::kHost:
      published.type = ACL_MEM_LOCATION_TYPE_HOST;
      break;
    case LocationKind::kHostNuma:
      published.type = ACL_MEM_LOCATION_TYPE_HOST_NUMA;
      break;
    case LocationKind::kManaged:
      published.type = ACL_MEM_LOCATION_TYPE_MANAGED;
      break;
  }
  return published;
}

}  // namespace understudy::capi
