// SPDX-License-Identifier: Apache-2.0
//
// An address for each piece of device memory, which no other piece has at the same time. Formats of
// other tools know pieces by their addresses, in one address space; a recording has several
// processes, and physical blocks that have no address of their own.
//
// An allocation has its address, and a physical block that of its first mapping. Those of the
// second process and all further ones are moved up by 2^47 each. What would overlap with another
// piece, and blocks that were never mapped, get a place beyond all addresses. All are numbers below
// 2^62, and below 2^53 in all recordings that were not made up: JavaScript counts so far.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/recording/device_memory_events.h"
#include "tools/recording/recording.h"

namespace understudy::command {

inline constexpr uint64_t kNowhere = UINT64_MAX;

// For each object; kNowhere for what takes no memory of a device, or more than there can be.
std::vector<uint64_t> memory_places(const Recording& recording,
                                    const std::vector<DeviceMemoryEvent>& events);

}  // namespace understudy::command
