// SPDX-License-Identifier: Apache-2.0
//
// What pools get from their device: addresses in segments, and memory for parts of them, which is
// charged in huge pages. A segment costs addresses and a part of a sparse file, no memory.
// Any thread may call anything, without a lock: charging may wait for other processes.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "device/settings.h"
#include "memory/address_arena.h"
#include "memory/address_space.h"
#include "memory/physical_memory.h"
#include "memory/pool_segment.h"
#include "server/capacity.h"

namespace understudy {

class PoolBacking {
 public:
  PoolBacking(Capacity& capacity, PhysicalMemory& physical, AddressSpace& space,
              AddressArena& addresses)
      : capacity_(capacity), physical_(physical), space_(space), addresses_(addresses) {}

  // The most a pool of a device can be given.
  uint64_t device_total(unsigned device) const;

  // A segment of a device for the pool of a number.
  Result<std::unique_ptr<PoolSegment>> open(unsigned device, uint64_t size, uint32_t pool);
  // Closes a segment, of which one part at most has memory.
  void close(std::unique_ptr<PoolSegment> segment, VirtualRange backed) noexcept;

  // Charges memory for a part of a segment and enters it. kOutOfMemory if the device has not
  // enough.
  Result<void> back(const PoolSegment& segment, VirtualRange part);
  // Takes the memory away. False, and nothing done, if the CPU cannot be kept from the bytes.
  bool unback(const PoolSegment& segment, VirtualRange part) noexcept;

 private:
  Charge charge_for(const PoolSegment& segment, VirtualRange part) const;

  Capacity& capacity_;
  PhysicalMemory& physical_;
  AddressSpace& space_;
  AddressArena& addresses_;
};

}  // namespace understudy
