// SPDX-License-Identifier: Apache-2.0
//
// Which address ranges are reserved. Places new reservations so that none overlaps another or
// anything of the host's, in time that does not depend on their size. Rules: RESV, RESVN, REL.
// Any thread may call anything.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/object_pool.h"
#include "base/result.h"
#include "base/virtual_range.h"
#include "memory/address_kinds.h"
#include "memory/address_layout.h"
#include "memory/page_table.h"
#include "memory/reservation.h"
#include "memory/reservation_directory.h"

namespace understudy {

// Whether the addresses of an arena may exist in the software MMU alone, or the host must be able
// to map memory there.
enum class ArenaHold : uint8_t { kAnyone, kHost };

struct Arena {
  VirtualRange range;
  Reservation* reservation = nullptr;
};

// How much there is: of the program's reservations, the mappings in them, and of mappings in
// arenas.
struct ReservationCount {
  uint64_t reservations = 0;
  uint64_t mappings = 0;
  uint64_t in_arenas = 0;
};

class ReservationIndex {
 public:
  // A free range of the library's choice. Sizes are rounded up to the granule.
  Result<VirtualRange> add_anywhere(uint64_t size, uint64_t alignment, ReservedPages pages);
  // A place for allocations: no reservation of the program's, which can neither map into it nor
  // release it. Never ends. Smaller than asked for, but not than `least`, where the host cannot
  // occupy so much.
  Result<Arena> add_arena(uint64_t size, uint64_t least, ArenaHold hold = ArenaHold::kAnyone);
  // Exactly this range or nothing.
  // REQUIRES: a multiple of the granule, inside the table's addresses.
  Result<VirtualRange> add_at(VirtualRange range, ReservedPages pages,
                              ReservationMix mix = ReservationMix::kOneOwner);
  // Ends a reservation that has no mappings.
  Result<void> remove(VirtualAddress base);

  // The reservation or the arena around an address; null if there is none. Takes no lock: it may
  // end at any time, so the caller takes its lock and looks whether it is still the one.
  Reservation* find(VirtualAddress address) const { return directory_.find(address); }
  bool overlaps(VirtualRange range);
  // Whether the host holds the address for a reservation, or for one that was released and whose
  // range it kept.
  bool is_occupied(VirtualAddress address);
  ReservationCount count() const;
  AddressKinds& kinds() { return kinds_; }
  const AddressKinds& kinds() const { return kinds_; }

 private:
  // Who holds a range besides the table.
  enum class Hold : uint8_t { kNobody, kHost, kHostByItsChoice };
  struct Placement {
    VirtualRange range;
    Hold hold = Hold::kNobody;
  };

  Result<Placement> place_anywhere_locked(uint64_t size, uint64_t alignment) US_REQUIRES(mutex_);
  // The next gap of a window that the index knows nothing in, from `from` on.
  std::optional<VirtualRange> next_gap_locked(VirtualRange window, VirtualAddress from,
                                              uint64_t size, uint64_t alignment)
      US_REQUIRES(mutex_);
  const Reservation* overlapping_locked(VirtualRange range) US_REQUIRES(mutex_);
  Result<Reservation*> enter_locked(Placement placement, ReservedPages pages, ReservationUse use,
                                    ReservationMix mix) US_REQUIRES(mutex_);
  // Gives ranges back that the host did not take when they were released.
  void retry_vacating_locked() US_REQUIRES(mutex_);

  mutable Mutex mutex_{LockRank::kReservationIndex};
  ObjectPool<Reservation> pool_;
  // Base address -> (end address, slot): ranges are read here without the reservation's lock.
  struct Entry {
    VirtualAddress end;
    Reservation* reservation;
    Hold hold;
  };
  std::map<VirtualAddress, Entry> by_base_ US_GUARDED_BY(mutex_);
  ReservationDirectory directory_;  // changed under the lock, read without
  // Ranges that the kernel placed do not merge into one map entry as our own do, and map entries
  // are few: past a bound such reservations exist in the table alone.
  static constexpr unsigned kMaxChosenByHost = 4096;
  unsigned chosen_by_host_ US_GUARDED_BY(mutex_) = 0;
  // Released, but the host was out of map entries and still has them.
  std::vector<VirtualRange> still_occupied_ US_GUARDED_BY(mutex_);
  // Next fit: an address is used again late, so that stale pointers stay stale for long.
  VirtualAddress cursor_ US_GUARDED_BY(mutex_) = kNearWindow.base;
  AddressKinds kinds_;
};

}  // namespace understudy
