// SPDX-License-Identifier: Apache-2.0
//
// The software MMU as its readers see it: from a device address to the mapping or the small
// allocation there, pinned by a hazard pointer so that its bytes stay. No lock is taken. Copies
// run through here.
//
// TranslationTables is the same for its writers: they hold the lock that covers the
// range (that of its reservation, or of the slab's home). Any thread may read at any time.
// Rules: MAP-13, COPY-13, RANGE.
#pragma once

#include <cstdint>
#include <optional>

#include "base/object_pool.h"
#include "base/virtual_range.h"
#include "memory/hazard_pointers.h"
#include "memory/mapping.h"
#include "memory/page_table.h"
#include "memory/place.h"
#include "memory/reservation.h"
#include "memory/slab.h"

namespace understudy {

// What is known of an address inside a mapping.
struct MappingView {
  VirtualRange range;
  Location location;
  PageKind page_kind = PageKind::kHuge;
  bool is_allocation = false;
};

// Segments of pools are one mapping with many allocations. What a call may name is an allocation
// that the program has at that moment. A task was checked so when it was queued; when it runs, the
// allocation may have been freed behind it, and be another one by now.
enum class PoolView : uint8_t { kAllocations, kSegments };

class Translation {
 public:
  Translation(const Translation&) = delete;
  Translation& operator=(const Translation&) = delete;

  // The entry of the granule around an address; not present if there is none.
  PageEntry look_up(VirtualAddress address) const { return table_.look_up(address); }
  PageTable::Look look_at(VirtualAddress address) const { return table_.look_at(address); }
  // Calls visit(address of the granule) for the granules of a range that have an entry; once for
  // an entry that covers a whole GiB.
  template <typename Visit>
  void for_each(VirtualRange range, Visit visit) const {
    table_.for_each(range, visit);
  }

  std::optional<MappingView> find(VirtualAddress address) const;
  // Of an address without memory where allocations are: whether one was there and was freed.
  bool was_freed(VirtualAddress address) const;
  // The allocation whose pages an address is on, although it is none of its bytes.
  std::optional<VirtualRange> allocation_beside(VirtualAddress address) const;
  // Pins what is at an address; nothing if it has no memory.
  std::optional<Place> locate(VirtualAddress address, HazardPin& pin,
                              PoolView view = PoolView::kAllocations) const;
  // The number of the pool that an address is memory of.
  std::optional<uint32_t> pool_of(VirtualAddress address) const;
  // Pins the mapping at an address; null if there is none. A large allocation is a mapping, too.
  const Mapping* pin(VirtualAddress address, HazardPin& pin, PageEntry& entry) const {
    while (true) {
      const PageTable::Look look = table_.look_at(address);
      entry = look.entry();
      if (!entry.present() || entry.divided()) return nullptr;
      if (try_pin(look, pin)) return &mappings_.at(entry.mapping());
    }
  }
  // Pins the mapping of an entry that was just looked at, unless it has changed since.
  [[gnu::always_inline]] bool try_pin(const PageTable::Look& look, HazardPin& pin) const {
    pin.publish(&mappings_.at(look.entry().mapping()));
    return look.still_holds();
  }
  // The host address of `count` bytes, pinned, in the common case: they lie in one granule, are
  // committed, and the owner may read and write them all. 0 if it is not that. Part of each copy,
  // so that the pin is kept in registers.
  [[gnu::always_inline]] VirtualAddress resolve_quickly(VirtualAddress address, uint64_t count,
                                                        const PageTable::Look& look,
                                                        HazardPin& pin) const {
    const PageEntry entry = look.entry();
    if (!entry.commit() || count > kGranule - address % kGranule) return 0;
    const bool pinned = entry.divided()
                            ? try_pin_slot(address, count, look, pin)
                            : entry.owner_access() && try_pin(look, pin) &&
                                  (!entry.restricted() || is_open(address, count, entry));
    return pinned ? entry.host() + address % kGranule : 0;
  }
  // Remembers that the granule at an address is committed, so that the next reader need not ask
  // its backing file. For readers, too: no translation changes by it.
  template <typename WholeIsCommitted>
  void note_committed(VirtualAddress address, PageEntry seen,
                      WholeIsCommitted whole_is_committed) const {
    table_.note_committed(address, seen, whole_is_committed);
  }

 protected:
  Translation() = default;
  ~Translation() = default;

  mutable PageTable table_;  // mutable for the committed bits alone
  ObjectPool<Mapping> mappings_;
  ObjectPool<Slab> slabs_;

 private:
  // Pins the small allocation around `count` bytes; false if they are not all in one.
  [[gnu::always_inline]] bool try_pin_slot(VirtualAddress address, uint64_t count,
                                           const PageTable::Look& look, HazardPin& pin) const {
    const Slab& slab = slabs_.at(look.entry().mapping());
    const uint32_t slot = slab.slot_around(address);
    const SlotRecord record = slab.record(slot);
    const uint64_t offset = address % kGranule - slot * slab.slot_bytes();
    // The two may be of different times: nothing is known before the second look.
    if (!record.live() || offset >= record.usable() || count > record.usable() - offset) {
      return false;
    }
    pin.publish(&slab.records[slot]);
    return slab.record(slot) == record && look.still_holds();
  }
  // Whether the bytes may be read and written, in a granule of which not all may be: the last one
  // of an allocation, mostly. REQUIRES: the mapping of the entry is pinned.
  bool is_open(VirtualAddress address, uint64_t count, PageEntry entry) const {
    const Mapping& mapping = mappings_.at(entry.mapping());
    return !mapping.read_only && mapping.parts == nullptr &&
           mapping.range.contains(VirtualRange{address, count});
  }
  std::optional<Place> locate_slot(VirtualAddress address, HazardPin& pin, PageEntry entry) const;
};

class TranslationTables final : public Translation {
 public:
  PageTable& table() { return table_; }
  ObjectPool<Mapping>& mappings() { return mappings_; }
  ObjectPool<Slab>& slabs() { return slabs_; }

  // The mapping or allocation that starts at `base` in a reservation of that use; null if there is
  // none.
  Mapping* mapping_in(const Reservation& reservation, ReservationUse use, VirtualAddress base)
      US_REQUIRES(reservation.mutex);
};

}  // namespace understudy
