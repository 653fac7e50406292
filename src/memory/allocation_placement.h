// SPDX-License-Identifier: Apache-2.0
//
// Where allocations are in the translation: a large one is a mapping of a block of its own in an
// arena, small ones share granules that slabs describe. DeviceMemory and ManagedMemory decide what
// is allocated and take the addresses from an arena. Rules: MALLOC, FREE, IPC. Any thread may call
// anything.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/virtual_range.h"
#include "device/settings.h"
#include "memory/backing_pools.h"
#include "memory/physical_memory.h"
#include "memory/reservations.h"
#include "memory/retire_list.h"
#include "memory/slab.h"
#include "memory/translation.h"

namespace understudy {

// What may be used of the block of an allocation.
struct UsablePart {
  uint64_t offset = 0;  // less than a granule
  uint64_t size = 0;
  bool read_only = false;
  bool is_internal = false;  // the library's own: no call of the program ends it
};

class AllocationPlacement {
 public:
  AllocationPlacement(const Settings& settings, PhysicalMemory& physical, BackingPools& pools,
                      TranslationTables& tables, Reservations& reservations, RetireList& retired)
      : settings_(settings),
        physical_(physical),
        pools_(pools),
        tables_(tables),
        reservations_(reservations),
        retired_(retired) {}

  // Places the block of an allocation. Takes the caller's reference to the block over if it
  // succeeds.
  Result<void> place(const Arena& place, Block& block, const UsablePart& part);
  // Places managed memory, at the address that its bytes have. Takes the reference over as well.
  Result<void> place_managed(const Arena& place, Block& block);
  // Ends the large, imported or internal allocation that starts at an address, if it is on the
  // device that is named. Gives back the addresses it had; none of managed memory, whose addresses
  // go with its bytes.
  enum class Origin : uint8_t { kOwn, kImported, kInternal };
  Result<VirtualRange> end(VirtualAddress base, std::optional<unsigned> device,
                           Origin origin = Origin::kOwn);
  // The block of the large allocation that starts at an address, with an internal reference for the
  // caller; and what may be used of it.
  struct Found {
    Block* block;
    UsablePart part;
  };
  Result<Found> find(VirtualAddress base);

  // Enters a granule of small allocations, which the slab describes, and takes it out again.
  Result<void> enter(const Arena& place, Slab& slab, unsigned device);
  // False, and nothing done, if the CPU cannot be kept from the bytes.
  bool leave(Slab& slab) noexcept;
  ObjectPool<Slab>& slabs() { return tables_.slabs(); }

 private:
  const Settings& settings_;
  PhysicalMemory& physical_;
  BackingPools& pools_;
  TranslationTables& tables_;
  Reservations& reservations_;
  RetireList& retired_;
};

}  // namespace understudy
