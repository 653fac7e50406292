// SPDX-License-Identifier: Apache-2.0
//
// What a device is. Rules: DEV-24 to DEV-31, DEV-34, DEV-38 to DEV-42.
#include <array>
#include <cstring>

#include "acl/acl_rt.h"
#include "base/sizes.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

constexpr int32_t kLeastPriority = 7;
constexpr int32_t kGreatestPriority = 0;

// Attributes exist at these numbers.
bool is_attribute(int number) {
  return number == 1 || number == 101 || number == 102 || (number >= 201 && number <= 212) ||
         number == 301 || number == 302 || (number >= 401 && number <= 409) || number == 501 ||
         number == 601;
}

// DEV-39
bool has_attribute(const ProductProfile& product, aclrtDevAttr attribute) {
  const bool has_thread_groups = product.has(Feature::kThreadGroups);
  switch (attribute) {
    case ACL_DEV_ATTR_HD_CONNECT_TYPE:
    case ACL_DEV_ATTR_DEVICE_FORM_FACTOR:
      return has_thread_groups;
    case ACL_DEV_ATTR_CUST_OP_PRIVILEGE:
      return !has_thread_groups;
    default:
      return true;
  }
}

// Of kernels that are groups of threads: typical figures, which no rule fixes. Others have none
// (DEV-38).
int64_t thread_group_figure(const ProductProfile& product, aclrtDevAttr attribute) {
  if (!product.has(Feature::kThreadGroups)) return 0;
  switch (attribute) {
    case ACL_DEV_ATTR_WARP_SIZE:
      return 32;
    case ACL_DEV_ATTR_UBUF_PER_VECTOR_CORE:
      return 256 * kKiB;
    case ACL_DEV_ATTR_MAX_GRID_DIM_X:
    case ACL_DEV_ATTR_MAX_GRID_DIM_Y:
    case ACL_DEV_ATTR_MAX_GRID_DIM_Z:
    case ACL_DEV_ATTR_MAX_BLOCK_PER_GRID:
      return 65535;
    default:
      return 2048;  // threads, in a core, a block, or one of its dimensions
  }
}

int64_t attribute_value(const Settings& settings, unsigned device, aclrtDevAttr attribute) {
  const ProductProfile& product = settings.product;
  if (attribute >= ACL_DEV_ATTR_WARP_SIZE && attribute <= ACL_DEV_ATTR_MAX_BLOCK_DIM_Z) {
    return thread_group_figure(product, attribute);
  }
  switch (attribute) {
    case ACL_DEV_ATTR_AICPU_CORE_NUM:
      return product.ai_cpus;
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
      return product.ai_cores;
    case ACL_DEV_ATTR_VECTOR_CORE_NUM:
      return product.vector_cores;
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
      return static_cast<int64_t>(settings.memory);
    case ACL_DEV_ATTR_L2_CACHE_SIZE:
      return static_cast<int64_t>(product.l2_cache);
    case ACL_DEV_ATTR_PHY_CHIP_ID:
    case ACL_DEV_ATTR_SUPER_POD_DEVICE_ID:
      return settings.visible_devices[device];
    case ACL_DEV_ATTR_HD_CONNECT_TYPE:
      return product.has(Feature::kPcie) ? ACL_HOST_DEVICE_CONNECT_TYPE_PCIE
                                         : ACL_HOST_DEVICE_CONNECT_TYPE_UB;
    case ACL_DEV_ATTR_NPU_ARCH:
      return product.npu_arch;
    default:
      return 0;  // what only kernels could use, and numbers of one server
  }
}

// A permanent identity: the same for a device in every process, different for every device.
aclrtUuid uuid_of(const Settings& settings, unsigned device) {
  uint64_t halves[2] = {0x756e646572737475, 0xcbf29ce484222325};
  for (const char letter : settings.soc_name) {
    halves[1] = (halves[1] ^ static_cast<uint8_t>(letter)) * 0x100000001b3;
  }
  halves[1] += static_cast<uint64_t>(settings.visible_devices[device]);
  aclrtUuid uuid;
  memcpy(uuid.bytes, halves, sizeof uuid.bytes);
  return uuid;
}

uint64_t link_between(const Settings& settings, unsigned device, unsigned other) {
  switch (settings.product.peer_link) {
    case PeerLink::kDiePairs:
      return settings.visible_devices[device] / 2 == settings.visible_devices[other] / 2
                 ? ACL_RT_DEVS_TOPOLOGY_SIO
                 : ACL_RT_DEVS_TOPOLOGY_HCCS_SW;
    case PeerLink::kHccs:
      return ACL_RT_DEVS_TOPOLOGY_HCCS;
    case PeerLink::kPcie:
    case PeerLink::kNone:
      break;
  }
  return ACL_RT_DEVS_TOPOLOGY_PIX;
}

// Programs count the devices they see; "logical" and "physical" numbers are those of the server,
// and the same. Only the two functions between those call the program's number a logical one
// (DEV-40).
struct NumberArgument {
  int32_t value;
  const char* name;
};
struct NumberResult {
  int32_t* pointer;
  const char* name;
};

Result<int32_t> user_number(Runtime& runtime, NumberArgument server) {
  const std::vector<int32_t>& visible = runtime.settings().visible_devices;
  for (size_t device = 0; device < visible.size(); ++device) {
    if (visible[device] == server.value) return static_cast<int32_t>(device);
  }
  return Error::format(ErrorCode::kInvalidDevice, "%s is %d, a device this process does not see",
                       server.name, server.value);
}

Result<void> to_server_number(NumberArgument user, NumberResult server) {
  US_TRY(require_pointer(server.pointer, server.name));
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  US_TRY_ASSIGN(const unsigned device, runtime->devices().check(user.value, user.name));
  *server.pointer = runtime->settings().visible_devices[device];
  return {};
}

Result<void> to_user_number(NumberArgument server, NumberResult user) {
  US_TRY(require_pointer(user.pointer, user.name));
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  US_TRY_ASSIGN(*user.pointer, user_number(*runtime, server));
  return {};
}

}  // namespace

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value) {
  return guarded(US_CALL(deviceId, attr, out(value)), [&]() -> Result<void> {
    US_TRY(require_pointer(value, "value"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY_ASSIGN(const unsigned device,
                  runtime->devices().check(deviceId, "deviceId", ErrorCode::kInvalidParam));
    if (!is_attribute(static_cast<int>(attr))) {
      return Error::format(ErrorCode::kInvalidParam, "attr is %d, which is no attribute",
                           static_cast<int>(attr));
    }
    const ProductProfile& product = runtime->settings().product;
    if (!has_attribute(product, attr)) {
      return Error::format(ErrorCode::kNotInProduct, "product %s has no attribute %d",
                           product.key.data(), static_cast<int>(attr));
    }
    *value = attribute_value(runtime->settings(), device, attr);
    return {};
  });
}

aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType,
                                  int32_t* value) {
  return guarded(US_CALL(deviceId, devFeatureType, out(value)), [&]() -> Result<void> {
    (void)devFeatureType;  // both known features concern task kinds that do not exist here
    US_TRY(require_pointer(value, "value"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY(runtime->devices().check(deviceId, "deviceId"));
    *value = ACL_DEV_FEATURE_NOT_SUPPORT;
    return {};
  });
}

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus* deviceStatus) {
  return guarded(US_CALL(deviceId, out(deviceStatus)), [&]() -> Result<void> {
    US_TRY(require_pointer(deviceStatus, "deviceStatus"));
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY(runtime->devices().check(deviceId, "deviceId"));
    *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
    return {};
  });
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo* utilizationInfo) {
  return guarded(US_CALL(deviceId, utilizationInfo), [&]() -> Result<void> {
    US_TRY(require_pointer(utilizationInfo, "utilizationInfo"));
    if (utilizationInfo->utilizationExtend != nullptr) {
      return invalid_argument("utilizationInfo->utilizationExtend is not NULL");
    }
    US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
    US_TRY(runtime->devices().check(deviceId, "deviceId"));
    // No cores compute here, so how busy they are is unknown.
    utilizationInfo->cubeUtilization = -1;
    utilizationInfo->vectorUtilization = -1;
    utilizationInfo->aicpuUtilization = -1;
    // No product tells this one; aclrtGetMemInfo has the figures.
    utilizationInfo->memoryUtilization = -1;
    return {};
  });
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority, int32_t* greatestPriority) {
  return guarded(US_CALL(out(leastPriority), out(greatestPriority)), [&]() -> Result<void> {
    if (leastPriority != nullptr) *leastPriority = kLeastPriority;
    if (greatestPriority != nullptr) *greatestPriority = kGreatestPriority;
    return {};
  });
}

aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid* uuid) {
  return guarded(US_CALL(deviceId, uuid), [&]() -> Result<void> {
    US_TRY(require_pointer(uuid, "uuid"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kDeviceUuid));
    US_TRY_ASSIGN(const unsigned device, runtime->devices().check(deviceId, "deviceId"));
    *uuid = uuid_of(runtime->settings(), device);
    return {};
  });
}

aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t* const logicDevId) {
  return guarded(US_CALL(userDevid, out(logicDevId)), [&] {
    return to_server_number({userDevid, "userDevid"}, {logicDevId, "logicDevId"});
  });
}

aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t* const userDevid) {
  return guarded(US_CALL(logicDevId, out(userDevid)), [&] {
    return to_user_number({logicDevId, "logicDevId"}, {userDevid, "userDevid"});
  });
}

aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId, int32_t* const logicDevId) {
  return guarded(US_CALL(phyDevId, out(logicDevId)), [&] {
    return to_user_number({phyDevId, "phyDevId"}, {logicDevId, "logicDevId"});
  });
}

aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t* const phyDevId) {
  return guarded(US_CALL(logicDevId, out(phyDevId)), [&] {
    return to_server_number({logicDevId, "logicDevId"}, {phyDevId, "phyDevId"});
  });
}

aclError aclrtGetUserDevIdByPhyDevId(const int32_t phyDevId, int32_t* const userDevId) {
  return guarded(US_CALL(phyDevId, out(userDevId)), [&] {
    return to_user_number({phyDevId, "phyDevId"}, {userDevId, "userDevId"});
  });
}

aclError aclrtGetPhyDevIdByUserDevId(const int32_t userDevId, int32_t* const phyDevId) {
  return guarded(US_CALL(userDevId, out(phyDevId)), [&] {
    return to_server_number({userDevId, "userDevId"}, {phyDevId, "phyDevId"});
  });
}

aclError aclrtGetDevicesTopo(uint32_t deviceId, uint32_t otherDeviceId, uint64_t* value) {
  return guarded(US_CALL(deviceId, otherDeviceId, out(value)), [&]() -> Result<void> {
    US_TRY(require_pointer(value, "value"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kDevicesTopology));
    US_TRY_ASSIGN(const unsigned device, runtime->devices().check(deviceId, "deviceId"));
    US_TRY_ASSIGN(const unsigned other, runtime->devices().check(otherDeviceId, "otherDeviceId"));
    *value = link_between(runtime->settings(), device, other);
    return {};
  });
}
