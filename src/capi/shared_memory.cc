// SPDX-License-Identifier: Apache-2.0
#include "capi/shared_memory.h"

namespace understudy::capi {

DeviceReach device_reach(const Runtime& runtime) {
  return runtime.settings().product.has(Feature::kPeerAccess) ? DeviceReach::kAllDevices
                                                              : DeviceReach::kOwnMemory;
}

void enable_link(Runtime& runtime, unsigned device, std::optional<unsigned> memory_device) {
  if (memory_device && *memory_device != device) {
    runtime.devices().set_peer_access(device, *memory_device, true);
  }
}

}  // namespace understudy::capi
