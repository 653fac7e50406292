// SPDX-License-Identifier: Apache-2.0
//
// What all imports do about the device that memory of another process is on.
#pragma once

#include <optional>

#include "capi/call.h"
#include "sharing/importer.h"

namespace understudy::capi {

// Whether the product lets a device use memory of another one (SHARE-37).
DeviceReach device_reach(const Runtime& runtime);
// Lets a device reach the one that imported memory is on, if this process sees that one.
void enable_link(Runtime& runtime, unsigned device, std::optional<unsigned> memory_device);

}  // namespace understudy::capi
