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

// Both sides of a copy.
struct CopySides {
  MemorySide target;
  MemorySide source;

  CopySides(Runtime& runtime, VirtualAddress to, VirtualAddress from)
      : target(memory_at(runtime, to)), source(memory_at(runtime, from)) {}

  bool has(MemoryClass memory_class) const {
    return target.memory_class == memory_class || source.memory_class == memory_class;
  }
  // What a task knows of them. REQUIRES: none is unregistered.
  Sides for_task() const;
};

}  // namespace understudy::capi
