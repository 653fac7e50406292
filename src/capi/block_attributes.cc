// SPDX-License-Identifier: Apache-2.0
#include "capi/block_attributes.h"

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

bool is_host_only(BlockAttribute attribute) {
  return attribute == BlockAttribute::kDdrNormal || attribute == BlockAttribute::kDdrHuge ||
         attribute == BlockAttribute::kDdrPeerNormal || attribute == BlockAttribute::kDdrPeerHuge;
}

}  // namespace

Result<BlockAttribute> attribute_argument(const aclrtPhysicalMemProp& property) {
  const std::optional<BlockAttribute> attribute = block_attribute(property.memAttr);
  if (!attribute) {
    return invalid_argument("prop->memAttr is %d, which no block can have",
                            static_cast<int>(property.memAttr));
  }
  if (property.location.type == ACL_MEM_LOCATION_TYPE_DEVICE && is_host_only(*attribute)) {
    return invalid_argument("prop->memAttr is %d, which is for host memory only",
                            static_cast<int>(property.memAttr));
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
  }
  return published;
}

}  // namespace understudy::capi
