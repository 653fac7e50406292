// SPDX-License-Identifier: Apache-2.0
//
// The parts of this process's memory system that sharing works on.
#pragma once

#include "memory/backing_pools.h"
#include "memory/device_memory.h"
#include "memory/physical_memory.h"
#include "server/capacity.h"

namespace understudy {

struct ProcessMemory {
  Capacity& capacity;
  BackingPools& pools;
  PhysicalMemory& physical;
  DeviceMemory& allocations;
};

}  // namespace understudy
