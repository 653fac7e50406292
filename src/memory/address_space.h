// SPDX-License-Identifier: Apache-2.0
//
// The device addresses of the process. Owns the parts, each of which does one thing:
//
//   Reservations         which ranges the program reserved
//   Mapper               blocks at reserved addresses, and which locations may use them
//   AllocationPlacement  allocations at addresses of the library's choice
//   SegmentPlacement     segments of pools, which get their memory part by part
//   ManagedMemory        memory at addresses that CPU and devices share
//   Translation          from an address to its bytes, for readers, without a lock
//
// Order of locks: reservation index, reservation, retire list.
#pragma once

#include <cstdint>

#include "device/settings.h"
#include "memory/allocation_placement.h"
#include "memory/backing_pools.h"
#include "memory/managed_memory.h"
#include "memory/mapper.h"
#include "memory/physical_memory.h"
#include "memory/reservations.h"
#include "memory/retire_list.h"
#include "memory/segment_placement.h"
#include "memory/translation.h"

namespace understudy {

// What is alive.
struct AddressCount {
  uint64_t reservations = 0;
  uint64_t mappings = 0;     // in reservations
  uint64_t allocations = 0;  // large, small, imported and managed ones
};

class AddressSpace {
 public:
  AddressSpace(const Settings& settings, PhysicalMemory& physical, BackingPools& pools);

  const Translation& translation() const { return tables_; }
  Reservations& reservations() { return reservations_; }
  Mapper& mapper() { return mapper_; }
  AllocationPlacement& allocations() { return allocations_; }
  SegmentPlacement& segments() { return segments_; }
  ManagedMemory& managed() { return managed_; }
  // Mappings that a reader held when they ended.
  RetireList& retired() { return retired_; }

  AddressCount count();

 private:
  TranslationTables tables_;
  Reservations reservations_;
  RetireList retired_;
  Mapper mapper_;
  AllocationPlacement allocations_;
  SegmentPlacement segments_;
  ManagedMemory managed_;
};

}  // namespace understudy
