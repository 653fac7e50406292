// SPDX-License-Identifier: Apache-2.0
//
// The device addresses of the process: reservations, the mappings in them, and who may use them.
// The address space leads: it takes references to blocks, enters mappings into the translation
// table and, where the CPU may look, maps the store at the address for real.
//
// Each call plans (may refuse, changes nothing), acts (system calls), commits (cannot fail).
// Rules: RESV, RESVN, REL, MAP, NOACC, UNMAP, ACCESS, RETAIN, RANGE, LINK. Any thread may call
// anything. Order of locks: index, reservation, limbo.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "base/mutex.h"
#include "base/result.h"
#include "base/virtual_range.h"
#include "device/settings.h"
#include "memory/hazard_slots.h"
#include "memory/mapping.h"
#include "memory/object_pool.h"
#include "memory/page_table.h"
#include "memory/physical_memory.h"
#include "memory/place.h"
#include "memory/reservation.h"
#include "memory/reservation_index.h"
#include "memory/slab.h"
#include "platform/address_window.h"

namespace understudy {

// Whether the owner of a block may use a mapping from the start or only once granted.
enum class InitialAccess : uint8_t { kOwner, kNone };

struct MapRequest {
  VirtualRange range;
  uint64_t offset = 0;
  BlockHandle handle = 0;
  InitialAccess access = InitialAccess::kOwner;
};

// What may be used of the block of an allocation.
struct UsablePart {
  uint64_t offset = 0;  // less than a granule
  uint64_t size = 0;
  bool read_only = false;
};

// What is known of an address inside a mapping.
struct MappingView {
  VirtualRange range;
  Location location;
  PageKind page_kind = PageKind::kHuge;
  bool is_allocation = false;
};

// What is alive.
struct AddressCount {
  uint64_t reservations = 0;
  uint64_t mappings = 0;     // in reservations
  uint64_t allocations = 0;  // large, small and imported ones
};

class AddressSpace {
 public:
  AddressSpace(const Settings& settings, PhysicalMemory& physical, StorageSet& storages);

  Result<VirtualAddress> reserve(uint64_t size, ReservedPages pages,
                                 std::optional<VirtualAddress> expected);
  // For addresses outside the L2 cache; the caller always chooses.
  Result<VirtualAddress> reserve_uncached(uint64_t size, VirtualAddress expected);
  Result<void> release(VirtualAddress base);

  Result<void> map(const MapRequest& request);
  Result<void> unmap(VirtualAddress base);
  // Maps the blocks behind `source` a second time at `destination`. On failure, the blocks mapped
  // so far stay (LINK-09).
  Result<void> map_again(VirtualRange destination, VirtualAddress source);

  // Read and write access for each location in turn; on failure the ones before stay granted.
  Result<void> grant(VirtualRange range, std::span<const Location> locations);
  Result<bool> has_access(VirtualAddress base, Location location);

  // Places the block of an allocation. Takes the caller's reference to the block over if it
  // succeeds.
  Result<void> place_allocation(const Arena& place, Block& block, const UsablePart& part);
  // Ends the large or imported allocation that starts at an address, if it is on the device that is
  // named. Gives back the addresses it had.
  enum class Origin : uint8_t { kOwn, kImported };
  Result<VirtualRange> end_allocation(VirtualAddress base, std::optional<unsigned> device,
                                      Origin origin = Origin::kOwn);
  // The block of the large allocation that starts at an address, with a reference of the mapping
  // kind for the caller; and what may be used of it.
  struct FoundAllocation {
    Block* block;
    UsablePart part;
  };
  Result<FoundAllocation> find_allocation(VirtualAddress base);
  // The same for a granule of small allocations, which the slab describes.
  Result<void> enter_slab(const Arena& place, Slab& slab, unsigned device);
  // False, and nothing done, if the CPU cannot be kept from looking at it.
  bool leave_slab(Slab& slab) noexcept;
  ObjectPool<Slab>& slabs() { return slabs_; }
  // Why an address cannot be freed.
  Error not_an_allocation(VirtualAddress address);

  Result<BlockHandle> retain(VirtualAddress base);
  std::optional<MappingView> find(VirtualAddress address);
  bool is_reserved(VirtualAddress address);
  AddressCount count() const;
  bool is_any_reserved(VirtualRange range) { return reservations_.overlaps(range); }

  // For the copy engine. Pins what is at an address; nothing if it has no memory.
  std::optional<Place> locate(VirtualAddress address, HazardPin& pin) const;
  // Pins the mapping at an address; null if there is none. A large allocation is a mapping, too.
  const Mapping* pin(VirtualAddress address, HazardPin& pin, PageEntry& entry) const {
    while (true) {
      entry = table_.look_up(address);
      if (!entry.present() || entry.divided()) return nullptr;
      if (try_pin(address, pin, entry)) return &mappings_.at(entry.mapping());
    }
  }
  // Pins the mapping of an entry that was just looked up, unless it has changed since.
  bool try_pin(VirtualAddress address, HazardPin& pin, PageEntry entry) const {
    pin.publish(&mappings_.at(entry.mapping()));
    // The warm bit may have been set meanwhile; everything else must be as it was.
    return table_.look_up(address).with_warm() == entry.with_warm();
  }
  // The host address of `count` bytes, pinned, in the common case: they lie in one granule, are
  // warm, and the owner may read and write them all. 0 if it is not that.
  VirtualAddress resolve_quickly(VirtualAddress address, uint64_t count, PageEntry entry,
                                 HazardPin& pin) const {
    if (!entry.warm() || count > kGranule - address % kGranule) return 0;
    const bool pinned = entry.divided() ? try_pin_slot(address, count, pin, entry)
                                        : entry.whole() && try_pin(address, pin, entry);
    return pinned ? entry.host() + address % kGranule : 0;
  }
  PageTable& table() { return table_; }
  ReservationIndex& reservations() { return reservations_; }

  // Ends mappings that were in use when they were unmapped and no longer are.
  void drain_limbo();

 private:
  Result<VirtualAddress> reserve_at(VirtualRange range, uint64_t alignment, VirtualRange window,
                                    ReservedPages pages);
  Reservation* find_reservation(VirtualAddress address);
  // Pins the small allocation around `count` bytes; false if they are not all in one.
  bool try_pin_slot(VirtualAddress address, uint64_t count, HazardPin& pin, PageEntry entry) const {
    const Slab& slab = slabs_.at(entry.mapping());
    const uint32_t slot = slab.slot_around(address);
    const SlotRecord record = slab.record(slot);
    const uint64_t offset = address % kGranule - slot * slab.slot_bytes();
    // The two may be of different times: nothing is known before the second look.
    if (!record.live() || offset >= record.usable() || count > record.usable() - offset) {
      return false;
    }
    pin.publish(&slab.records[slot]);
    return slab.record(slot) == record && table_.look_up(address).with_warm() == entry.with_warm();
  }
  std::optional<Place> locate_slot(VirtualAddress address, HazardPin& pin, PageEntry entry) const;
  // Everything but the reference to the block, which it takes over.
  Result<void> map_block(VirtualRange range, Block& block, InitialAccess access);
  Result<void> check_place_locked(const Reservation& reservation, VirtualRange range,
                                  const Block& block) US_REQUIRES(reservation.mutex);
  // Lets the CPU look at an extent at its device address.
  Result<void> place_window_locked(const Reservation& reservation, VirtualAddress base,
                                   const Extent& extent, platform::CpuAccess access)
      US_REQUIRES(reservation.mutex);
  void enter_locked(Reservation& reservation, Mapping& mapping) US_REQUIRES(reservation.mutex);
  Result<void> grant_locked(Reservation& reservation, Mapping& mapping, Location location)
      US_REQUIRES(reservation.mutex);
  // The mapping or allocation that starts at `base`, seen under its reservation's lock; null if
  // there is none.
  Mapping* mapping_at_locked(const Reservation& reservation, VirtualAddress base,
                             ReservationUse use = ReservationUse::kProgram)
      US_REQUIRES(reservation.mutex);
  Error not_a_mapping(VirtualAddress address);
  Error unfit(VirtualAddress address, ReservationUse wanted, const char* otherwise);
  static Result<void> close_window(VirtualRange range);
  void retire(Mapping& mapping);
  void push_limbo_locked(Mapping& mapping) US_REQUIRES(limbo_mutex_);
  void finish(Mapping& mapping);

  const Settings& settings_;
  PhysicalMemory& physical_;
  StorageSet& storages_;
  const uint64_t id_;  // tells address spaces apart in per-thread hints
  PageTable table_;
  ReservationIndex reservations_;
  ObjectPool<Mapping> mappings_;
  ObjectPool<Slab> slabs_;
  // A list, changed under the lock; looked at without it to see that it is empty.
  Mutex limbo_mutex_{LockRank::kLimbo};
  std::atomic<Mapping*> limbo_{nullptr};
};

}  // namespace understudy
