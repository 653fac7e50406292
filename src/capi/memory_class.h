// SPDX-License-Identifier: Apache-2.0
//
// What memory is to a copy on a stream: memory of a device, page-locked memory of the host, or
// something else that the host has.
#pragma once

#include <cstdint>

#include "base/virtual_range.h"
#include "runtime/runtime.h"

namespace understudy::capi {

enum class MemoryClass : uint8_t { kDevice, kHost, kUnregistered };

struct MemorySide {
  MemoryClass memory_class;
  bool is_translated;  // the software MMU knows where it is
};

// By the first byte, as things are at this moment.
MemorySide memory_at(Runtime& runtime, VirtualAddress address);

// What a task knows of its sides. REQUIRES: none is unregistered.
Sides sides_of(const MemorySide& target, const MemorySide& source);

}  // namespace understudy::capi
