// SPDX-License-Identifier: Apache-2.0
//
// Places physical blocks at reserved addresses, takes them away, and says which locations may use
// them. The mapper leads: it takes a reference to the block, enters the mapping into the
// translation and, where the CPU has access, maps the backing file at the address.
//
// Each call plans (may refuse, changes nothing), acts (system calls), commits (cannot fail). Host
// memory is obtained before the lock of a reservation is taken.
// Rules: MAP, NOACC, UNMAP, ACCESS, RETAIN, LINK. Any thread may call anything.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/virtual_range.h"
#include "device/settings.h"
#include "memory/backing_pools.h"
#include "memory/physical_memory.h"
#include "memory/reservations.h"
#include "memory/retire_list.h"
#include "memory/translation.h"

namespace understudy {

// Whether the owner of a block may use a mapping from the start or only once granted.
enum class InitialAccess : uint8_t { kOwner, kNone };

struct MapRequest {
  VirtualRange range;
  uint64_t offset = 0;
  BlockHandle handle = 0;
  InitialAccess access = InitialAccess::kOwner;
};

class Mapper {
 public:
  Mapper(const Settings& settings, PhysicalMemory& physical, BackingPools& pools,
         TranslationTables& tables, Reservations& reservations, RetireList& retired)
      : settings_(settings),
        physical_(physical),
        pools_(pools),
        tables_(tables),
        reservations_(reservations),
        retired_(retired) {}

  Result<void> map(const MapRequest& request);
  Result<void> unmap(VirtualAddress base);
  // Maps the blocks behind `source` a second time at `destination`. On failure, the blocks mapped
  // so far stay (LINK-09).
  Result<void> map_alias(VirtualRange destination, VirtualAddress source);

  // Read and write access for each location in turn; on failure the ones before stay granted.
  Result<void> grant(VirtualRange range, std::span<const Location> locations);
  Result<bool> has_access(VirtualAddress base, Location location);

  // One more handle to the block of the mapping that starts at an address.
  Result<BlockHandle> retain(VirtualAddress base);

 private:
  // Everything but the reference to the block, which it takes over.
  Result<void> map_block(VirtualRange range, Block& block, InitialAccess access);
  Result<void> check_place_locked(const Reservation& reservation, VirtualRange range,
                                  const Block& block) US_REQUIRES(reservation.mutex);
  Result<void> check_owner_locked(const Reservation& reservation, ReservationOwner owner)
      US_REQUIRES(reservation.mutex);
  void enter_locked(Reservation& reservation, Mapping& mapping) US_REQUIRES(reservation.mutex);

  // Grants to each location in turn, up to the first that needs a host mapping of a block other
  // than `committed`. Returns that block with a reference for the caller; null if all are granted.
  Result<Block*> grant_locked(Reservation& reservation, Mapping& mapping,
                              std::span<const Location> locations, const Block* committed)
      US_REQUIRES(reservation.mutex);
  Result<void> grant_one_locked(Reservation& reservation, Mapping& mapping, Location location)
      US_REQUIRES(reservation.mutex);
  Result<void> check_reach(const Mapping& mapping, Location location) const;
  // The CPU gets what the host is granted, and what the owner is where it sees devices.
  bool needs_host_mapping(const Mapping& mapping, Location location) const;

  Error no_mapping_at(VirtualAddress address);

  const Settings& settings_;
  PhysicalMemory& physical_;
  BackingPools& pools_;
  TranslationTables& tables_;
  Reservations& reservations_;
  RetireList& retired_;
};

}  // namespace understudy
