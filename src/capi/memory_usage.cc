// SPDX-License-Identifier: Apache-2.0
//
// What a device's memory is used for, and what addresses are. Rules: INFO-10 to INFO-18, PTR-11,
// PTR-12.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "acl/acl_rt.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

void publish(const ModuleUsage& usage, aclrtMemUsageInfo& out) {
  memset(&out, 0, sizeof out);
  if (usage.module == kApplicationModule) {
    snprintf(out.name, sizeof out.name, "APP");
  } else {
    snprintf(out.name, sizeof out.name, "MODULE_%u", usage.module);
  }
  out.curMemSize = usage.current;
  out.memPeakSize = usage.peak;
}

}  // namespace

aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo, size_t inputNum,
                              size_t* outputNum) {
  return guarded(US_CALL(deviceId, memUsageInfo, inputNum, out(outputNum)), [&]() -> Result<void> {
    US_TRY(require_pointer(memUsageInfo, "memUsageInfo"));
    US_TRY(require_pointer(outputNum, "outputNum"));
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kMemoryUsage));
    *outputNum = 0;
    if (inputNum == 0) return Error::format(ErrorCode::kInvalidParam, "inputNum is 0");
    US_TRY_ASSIGN(const unsigned device, runtime->devices().check(deviceId, "deviceId"));
    std::vector<ModuleUsage> usage = runtime->capacity().usage(device);
    std::ranges::sort(usage, std::ranges::greater(), &ModuleUsage::current);
    const size_t count = std::min(inputNum, usage.size());
    for (size_t i = 0; i < count; ++i) publish(usage[i], memUsageInfo[i]);
    *outputNum = count;
    return {};
  });
}

aclError aclrtCheckMemType(void** addrList, uint32_t size, uint32_t memType, uint32_t* checkResult,
                           uint32_t reserve) {
  return guarded(
      US_CALL(list(addrList, size), size, memType, out(checkResult), reserve),
      [&]() -> Result<void> {
        US_TRY(require_pointer(addrList, "addrList"));
        US_TRY(require_pointer(checkResult, "checkResult"));
        US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kDeviceAllocation));
        constexpr uint32_t kKnown =
            ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_DVPP | ACL_RT_MEM_TYPE_RSVD;
        if (size == 0) return Error::format(ErrorCode::kInvalidParam, "size is 0");
        if (reserve != 0) {
          return Error::format(ErrorCode::kInvalidParam, "reserve is %u and must be 0", reserve);
        }
        if (memType == 0 || (memType & ~kKnown) != 0) {
          return Error::format(ErrorCode::kInvalidParam, "memType is 0x%x and must be some of 0x%x",
                               memType, kKnown);
        }
        // There is no memory of the other types here. Where the media units have none of their own,
        // theirs is the device's (INFO-18).
        const uint32_t device_types = runtime->settings().product.has(Feature::kMediaMemory)
                                          ? ACL_RT_MEM_TYPE_DEV
                                          : ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_DVPP;
        const bool device_wanted = (memType & device_types) != 0;
        const std::span<void* const> addresses(addrList, size);
        const bool all = device_wanted && std::ranges::all_of(addresses, [&](const void* address) {
                           const auto found =
                               runtime->address_space().translation().find(to_address(address));
                           return found && found->location.on_device();
                         });
        *checkResult = all ? 1 : 0;
        return {};
      });
}

aclError aclrtMemP2PMap(void* devPtr, size_t size, int32_t dstDevId, uint64_t flags) {
  return guarded(US_CALL(devPtr, size, dstDevId, flags), [&]() -> Result<void> {
    US_TRY(require_pointer(devPtr, "devPtr"));
    US_TRY(require_size(size, "size"));
    US_TRY(require_zero(flags, "flags"));
    const GatePass pass;
    US_TRY_ASSIGN(Runtime* const runtime, runtime_with(Feature::kPeerMap));
    US_TRY_ASSIGN(const ContextReference context, runtime->current_context());
    US_TRY_ASSIGN(const unsigned peer, runtime->devices().check(dstDevId, "dstDevId"));
    const auto found = runtime->address_space().translation().find(to_address(devPtr));
    const auto range = VirtualRange::make(to_address(devPtr), size);
    if (!found || !found->location.on_device() || !range || !found->range.contains(*range)) {
      return Error::format(ErrorCode::kInvalidParam,
                           "size %zu at %p is not in one block of device memory", size, devPtr);
    }
    if (!runtime->devices().has_peer_access(context.device(), peer)) {
      return Error::format(ErrorCode::kInvalidParam,
                           "device %u has no peer access to device %u enabled", context.device(),
                           peer);
    }
    // Peers reach each other's memory without a mapping of their own.
    return {};
  });
}
