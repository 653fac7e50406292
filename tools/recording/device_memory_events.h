// SPDX-License-Identifier: Apache-2.0
//
// What happened to the memory of devices, for the formats of other tools, which know two things: a
// piece of memory is taken from the device and given back, and meanwhile it is in use or not. An
// allocation is in use all its life. A physical block is while it is mapped somewhere; mapped
// twice, it is one piece of memory still. Memory of the host and of other processes does not count.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/recording/recording.h"

namespace understudy::command {

// At one moment in this order: memory is given back before other memory is taken.
enum class MemoryAction : uint8_t {
  kUnused,
  kGivenBack,
  kRefused,  // an allocation failed, because the device has too little memory left
  kTaken,
  kUsed,
};

struct DeviceMemoryEvent {
  uint64_t time = 0;
  uint64_t bytes = 0;       // taken from the device, or what was asked for
  uint32_t object = kNone;  // in Recording::objects; kNone if it was refused
  uint32_t call = kNone;
  uint32_t stack = kNone;
  int32_t device = 0;
  MemoryAction action = MemoryAction::kTaken;
};

// In the order of time. A piece is taken, used, unused and given back in this order, the two in the
// middle maybe several times or never.
std::vector<DeviceMemoryEvent> device_memory_events(const Recording& recording);

// For each object: the physical block of which it is a mapping, if the block's memory is a device's
// and of the same recorded process; else kNone.
std::vector<uint32_t> blocks_of_mappings(const Recording& recording);

}  // namespace understudy::command
