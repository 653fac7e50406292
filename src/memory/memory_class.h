// SPDX-License-Identifier: Apache-2.0
//
// What memory is to a copy on a stream: memory of a device, page-locked memory of the host, other
// memory of the host, managed memory, which is both sides' own, or none, as at a device address
// that was freed. By the first byte, as things are at the moment of the call. Any thread may call
// anything.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/virtual_range.h"
#include "memory/address_space.h"
#include "memory/host_memory.h"
#include "memory/transfer.h"
#include "memory/translation.h"

namespace understudy {

enum class MemoryClass : uint8_t { kDevice, kHost, kUnregistered, kManaged, kNone };

struct MemorySide {
  MemoryClass memory_class;
  bool is_translated;  // the software MMU knows where it is
};

// Both sides of a copy.
struct CopySides {
  MemorySide target;
  MemorySide source;

  bool has(MemoryClass memory_class) const {
    return target.memory_class == memory_class || source.memory_class == memory_class;
  }
  // Whether a device takes part, as managed memory lets it.
  bool has_device_side() const { return has(MemoryClass::kDevice) || has(MemoryClass::kManaged); }
  // What a task knows of them. REQUIRES: both have memory, and none is unregistered.
  Sides for_task() const;
};

class MemoryClasses {
 public:
  MemoryClasses(AddressSpace& space, HostMemory& host)
      : translation_(space.translation()), reservations_(space.reservations()), host_(host) {}

  MemorySide at(VirtualAddress address) const;
  CopySides of_copy(VirtualAddress to, VirtualAddress from) const { return {at(to), at(from)}; }
  // Memory that tasks use as a device's: the device's, or managed memory.
  bool is_device(VirtualAddress address) const {
    const MemoryClass found = at(address).memory_class;
    return found == MemoryClass::kDevice || found == MemoryClass::kManaged;
  }
  // Whether all of it is device memory, or managed memory.
  bool is_device(VirtualRange range) const;
  // Refuses memory of a pool that is not in one of its allocations: when a task runs, this cannot
  // be told any more.
  Result<void> check_pool_memory(VirtualAddress base, uint64_t size) const {
    if (!translation_.look_up(base).restricted()) [[likely]]
      return {};
    return check_restricted(base, size);
  }
  // The device whose memory is at an address, if it is a device's. Managed memory is that of the
  // device that asks.
  std::optional<unsigned> device_at(VirtualAddress address, unsigned asking) const;
  // Whether all of a range is memory of a device, or managed memory: of one allocation, or of
  // mappings side by side in one reservation.
  bool is_memory_of(VirtualRange range, unsigned device) const;
  // Whether the library gave out or registered the memory.
  bool is_known(VirtualRange range) const;
  // Why a side of a copy without memory has none.
  Error explain(const CopySides& sides, VirtualAddress to, VirtualAddress from) const;
  // There is no memory at an address, or not what is wanted.
  Error unfit(VirtualAddress address, const char* wanted, ErrorCode code) const;

 private:
  Result<void> check_restricted(VirtualAddress base, uint64_t size) const;

  const Translation& translation_;
  Reservations& reservations_;
  HostMemory& host_;
};

}  // namespace understudy
