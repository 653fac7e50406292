// SPDX-License-Identifier: Apache-2.0
#include "memory/address_space.h"

#include "memory/slab_heap.h"

namespace understudy {

AddressSpace::AddressSpace(const Settings& settings, PhysicalMemory& physical, BackingPools& pools)
    : reservations_(settings, tables_),
      retired_(tables_.mappings(), physical),
      mapper_(settings, physical, pools, tables_, reservations_, retired_),
      allocations_(settings, physical, pools, tables_, reservations_, retired_),
      segments_(settings, pools, tables_, retired_),
      managed_(settings, physical, pools, tables_, reservations_, retired_, allocations_) {}

AddressCount AddressSpace::count() {
  const ReservationCount found = reservations_.index().count();
  return {found.reservations, found.mappings, found.in_arenas + count_live_slots(tables_.slabs())};
}

}  // namespace understudy
