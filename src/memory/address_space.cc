// SPDX-License-Identifier: Apache-2.0
//
// Reservations, and what the other parts of the address space share. Mappings are in
// address_space_map.cc, rights in address_space_access.cc.
#include "memory/address_space.h"

#include <array>
#include <bit>
#include <cinttypes>

#include "base/size_text.h"
#include "memory/slab_heap.h"

namespace understudy {

namespace {

std::atomic<uint64_t> next_id{1};

// RESV-15: the alignment of an expected address grows with the size.
uint64_t expected_alignment(uint64_t size) {
  return size >= kGiB ? kGiB : std::max(std::bit_ceil(size), kGranule);
}

}  // namespace

AddressSpace::AddressSpace(const Settings& settings, PhysicalMemory& physical, StorageSet& storages)
    : settings_(settings),
      physical_(physical),
      storages_(storages),
      id_(next_id.fetch_add(1, std::memory_order_relaxed)) {}

Result<VirtualAddress> AddressSpace::reserve(uint64_t size, ReservedPages pages,
                                             std::optional<VirtualAddress> expected) {
  if (!expected) {
    const uint64_t alignment = size >= kGiB ? kGiB : kGranule;
    US_TRY_ASSIGN(const VirtualRange range, reservations_.add_anywhere(size, alignment, pages));
    return range.base;
  }
  if (settings_.expected_address == ExpectedAddress::kNullOnly ||
      !settings_.product.has(Feature::kExpectedAddress)) {
    return Error::format(ErrorCode::kRefused,
                         "expectPtr is %p and must be NULL with this product and configuration",
                         to_pointer(*expected));
  }
  return reserve_at({*expected, size}, expected_alignment(size), kExpectedWindow, pages);
}

Result<VirtualAddress> AddressSpace::reserve_uncached(uint64_t size, VirtualAddress expected) {
  return reserve_at({expected, size}, kGiB, kUncachedWindow, ReservedPages::kCommon);
}

Result<VirtualAddress> AddressSpace::reserve_at(VirtualRange range, uint64_t alignment,
                                                VirtualRange window, ReservedPages pages) {
  if (!is_aligned(range.base, alignment)) {
    return Error::format(ErrorCode::kRefused, "expectPtr %p is not a multiple of %s",
                         to_pointer(range.base), SizeText(alignment).c_str());
  }
  const std::optional<uint64_t> size = align_up(range.size, kGranule);
  if (!size || !window.contains(VirtualRange{range.base, *size})) {
    return Error::format(ErrorCode::kRefused, "%s at %p are not inside [%p, %p)",
                         SizeText(range.size).c_str(), to_pointer(range.base),
                         to_pointer(window.base), to_pointer(window.end()));
  }
  US_TRY_ASSIGN(const VirtualRange added, reservations_.add_at({range.base, *size}, pages));
  return added.base;
}

Result<void> AddressSpace::release(VirtualAddress base) {
  if (const std::optional<MappingView> inside = find(base); inside && inside->is_allocation) {
    return Error::format(ErrorCode::kRefused, "%p is allocated, not reserved", to_pointer(base));
  }
  return reservations_.remove(base);
}

Reservation* AddressSpace::find_reservation(VirtualAddress address) {
  // Programs map block after block into the same reservation. A hint from another address space or
  // to a reservation that ended meanwhile does no harm: the caller looks again under its lock.
  struct Hint {
    uint64_t space = 0;
    ReservationReference found;
  };
  static constexpr size_t kHints = 4;
  thread_local std::array<Hint, kHints> hints [[gnu::tls_model("initial-exec")]];
  Hint& hint = hints[address / kGiB % kHints];
  if (hint.space == id_ && hint.found.is_still_around(address)) return hint.found.reservation;
  const std::optional<ReservationReference> found = reservations_.find(address);
  if (!found) return nullptr;
  hint = {id_, *found};
  return found->reservation;
}

std::optional<Place> AddressSpace::locate(VirtualAddress address, HazardPin& hazard) const {
  PageEntry entry;
  const Mapping* mapping = pin(address, hazard, entry);
  if (mapping == nullptr) {
    return entry.divided() ? locate_slot(address, hazard, entry) : std::nullopt;
  }
  if (!mapping->range.contains(address)) return std::nullopt;  // behind the end of an allocation
  const Block& block = *mapping->block;
  return Place{.range = mapping->range,
               .location = block.traits.location,
               .page_kind = block.traits.page_kind(),
               .owner_access = mapping->owner_access(),
               .read_only = mapping->read_only,
               .device_access = mapping->device_access.load(std::memory_order_relaxed),
               .joins = mapping->is_allocation ? nullptr : mapping->reservation,
               .store = block.extent.store,
               .store_offset = block.extent.offset,
               .entry = entry};
}

std::optional<Place> AddressSpace::locate_slot(VirtualAddress address, HazardPin& hazard,
                                               PageEntry entry) const {
  for (; entry.present() && entry.divided(); entry = table_.look_up(address)) {
    const Slab& slab = slabs_.at(entry.mapping());
    const uint32_t slot = slab.slot_around(address);
    const SlotRecord record = slab.record(slot);
    const VirtualAddress offset = slot * slab.slot_bytes();
    if (!record.live() || address % kGranule - offset >= record.usable()) return std::nullopt;
    hazard.publish(&slab.records[slot]);
    if (slab.record(slot) != record || table_.look_up(address).with_warm() != entry.with_warm()) {
      continue;
    }
    return Place{.range = {align_down(address, kGranule) + offset, record.usable()},
                 .location = {LocationKind::kDevice, entry.owner()},
                 .page_kind = PageKind::kNormal,
                 .store = slab.extent.store,
                 .store_offset = slab.extent.offset + offset,
                 .entry = entry};
  }
  return std::nullopt;
}

std::optional<MappingView> AddressSpace::find(VirtualAddress address) {
  HazardPin hazard;
  const std::optional<Place> place = locate(address, hazard);
  if (!place) return std::nullopt;
  return MappingView{place->range, place->location, place->page_kind, place->joins == nullptr};
}

AddressCount AddressSpace::count() const {
  const ReservationCount found = reservations_.count();
  return {found.reservations, found.mappings, found.in_arenas + count_live_slots(slabs_)};
}

bool AddressSpace::is_reserved(VirtualAddress address) {
  return reservations_.was_ever_near(address) && reservations_.find(address).has_value();
}

Error AddressSpace::not_a_mapping(VirtualAddress address) {
  return unfit(address, ReservationUse::kProgram,
               is_reserved(address) ? "reserved but not mapped" : "not a device address");
}

Error AddressSpace::not_an_allocation(VirtualAddress address) {
  return unfit(address, ReservationUse::kAllocations, "not the start of an allocation");
}

Error AddressSpace::unfit(VirtualAddress address, ReservationUse wanted, const char* otherwise) {
  const std::optional<MappingView> inside = find(address);
  if (!inside) {
    return Error::format(ErrorCode::kRefused, "%p is %s", to_pointer(address), otherwise);
  }
  const bool right_kind = inside->is_allocation == (wanted == ReservationUse::kAllocations);
  return Error::format(ErrorCode::kRefused, "%p is inside the %s of %s at %p, not %s",
                       to_pointer(address), inside->is_allocation ? "allocation" : "mapping",
                       SizeText(inside->range.size).c_str(), to_pointer(inside->range.base),
                       right_kind              ? "its start"
                       : inside->is_allocation ? "a mapping"
                                               : "an allocation");
}

}  // namespace understudy
