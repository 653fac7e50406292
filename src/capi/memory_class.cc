// SPDX-License-Identifier: Apache-2.0
#include "capi/memory_class.h"

namespace understudy::capi {

MemorySide memory_at(Runtime& runtime, VirtualAddress address) {
  const PageEntry entry = runtime.address_space().table().look_up(address);
  if (entry.present()) {
    // Where small allocations share a granule, not all of it is memory.
    if (entry.divided() && !runtime.address_space().find(address)) {
      return {MemoryClass::kUnregistered, false};
    }
    return {entry.on_host() ? MemoryClass::kHost : MemoryClass::kDevice, true};
  }
  const bool page_locked = runtime.host_memory().find(address).has_value();
  return {page_locked ? MemoryClass::kHost : MemoryClass::kUnregistered, false};
}

Sides CopySides::for_task() const {
  if (!source.is_translated) return Sides::kFromHost;
  return target.is_translated ? Sides::kDevices : Sides::kToHost;
}

}  // namespace understudy::capi
