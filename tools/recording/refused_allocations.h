// SPDX-License-Identifier: Apache-2.0
//
// Calls that found too little memory on a device.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/recording/recording.h"

namespace understudy::command {

struct RefusedAllocation {
  uint32_t call;   // in Recording::calls
  int32_t device;  // that the call names, else the one that its thread had chosen, else 0
  uint64_t bytes;
};

// In the order of the calls.
std::vector<RefusedAllocation> refused_allocations(const Recording& recording);

}  // namespace understudy::command
