// SPDX-License-Identifier: Apache-2.0
//
// The address ranges that the program reserved: where they may lie, and which one is around an
// address. What the ranges hold is Mapper's affair. Rules: RESV, RESVN, REL. Any thread may call
// anything.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/virtual_range.h"
#include "device/settings.h"
#include "memory/reservation.h"
#include "memory/reservation_index.h"
#include "memory/translation.h"

namespace understudy {

class Reservations {
 public:
  Reservations(const Settings& settings, const Translation& translation);

  Result<VirtualAddress> reserve(uint64_t size, ReservedPages pages,
                                 std::optional<VirtualAddress> expected);
  // For addresses outside the L2 cache; the caller always chooses. Takes all blocks side by side.
  Result<VirtualAddress> reserve_uncached(uint64_t size, VirtualAddress expected);
  Result<void> release(VirtualAddress base);

  // See ReservationIndex::find.
  Reservation* find(VirtualAddress address) const { return index_.find(address); }
  bool contains(VirtualAddress address) const { return find(address) != nullptr; }
  // What the addresses around one are reserved for.
  ReservationUse use_of(VirtualAddress address);
  bool overlaps(VirtualRange range) { return index_.overlaps(range); }
  // Whether host memory is at an address, without a doubt. REQUIRES: address < AddressKinds::kEnd.
  bool is_plainly_host(VirtualAddress address) const { return index_.kinds().is_host(address); }
  // The same for any address: asks the kernel.
  bool has_host_memory(VirtualAddress address);
  // Whether reservations of this process were near the address, if only once.
  bool was_device(VirtualAddress address) const { return index_.kinds().was_device(address); }

  // For the arenas that allocations are placed in.
  ReservationIndex& index() { return index_; }
  const ReservationIndex& index() const { return index_; }

 private:
  Result<VirtualAddress> reserve_at(VirtualRange range, uint64_t alignment, VirtualRange window,
                                    ReservedPages pages, ReservationMix mix);

  const Settings& settings_;
  const Translation& translation_;
  ReservationIndex index_;
};

}  // namespace understudy
