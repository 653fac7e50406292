// SPDX-License-Identifier: Apache-2.0
//
// A recording in the format of RMM's logging_resource_adaptor, which its replay benchmark and other
// tools for allocators read: Thread,Time,Action,Pointer,Size,Stream.
//
// Rows are of the memory of all devices, as device_memory_events.h counts it: allocations and
// physical blocks, not mappings, the host, or what is imported from another process. Sizes are what
// was taken from the device. A pointer is unique among those that are alive (memory_places.h).
#pragma once

#include <string>

#include "tools/recording/recording.h"

namespace understudy::command {

// May throw std::bad_alloc.
std::string allocation_csv(const Recording& recording);

}  // namespace understudy::command
