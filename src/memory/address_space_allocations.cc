// SPDX-License-Identifier: Apache-2.0
//
// Allocations in the address space: large ones are mappings of a block of their own in an arena,
// small ones share granules that slabs describe.
#include "base/scope_exit.h"
#include "base/size_text.h"
#include "memory/address_space.h"

namespace understudy {

namespace {

// The granules that have bytes to use. Those behind them, up to the end of a giant page, have not.
VirtualRange granules_of(VirtualRange usable) {
  const VirtualAddress base = align_down(usable.base, kGranule);
  return {base, *align_up(usable.end(), kGranule) - base};
}

// The CPU sees all of an own block, but of a granule that another process exported a part of only
// that part, where the pages of the store are small enough.
Extent pages_to_show(const Block& block, const UsablePart& part) {
  const bool has_small_pages = block.extent.store->kind() == platform::FileKind::kShared;
  if (!block.is_imported() || !has_small_pages) return block.extent;
  const uint64_t begin = align_down(part.offset, kNormalPage);
  const uint64_t end = *align_up(part.offset + part.size, kNormalPage);
  return {block.extent.store, block.extent.offset + begin, end - begin};
}

}  // namespace

Result<void> AddressSpace::place_allocation(const Arena& place, Block& block,
                                            const UsablePart& part) {
  const std::optional<uint32_t> index = mappings_.take();
  if (!index) return out_of_numbers("mapping");
  ScopeExit undo([&] { mappings_.give_back(*index); });
  const VirtualRange range{place.range.base + part.offset, part.size};
  const VirtualRange granules = granules_of(range);
  // The last granule has an entry of its own if not all of it may be used.
  const VirtualRange last{align_down(range.end(), kGranule), kGranule};
  const bool ends_inside = !is_aligned(range.end(), kGranule);
  table_.prepare(granules);
  if (ends_inside) table_.prepare(last);
  const bool window = settings_.cpu_sees_devices();
  // This may take long, and nobody else knows of the extent yet: before the lock.
  if (window) US_TRY(storages_.warm(*block.extent.store, block.extent.offset, block.extent.size));

  MutexLock lock(place.reservation->mutex);
  if (window) {
    const Extent shown = pages_to_show(block, part);
    US_TRY(place_window_locked(
        *place.reservation, place.range.base + (shown.offset - block.extent.offset), shown,
        part.read_only ? platform::CpuAccess::kRead : platform::CpuAccess::kReadWrite));
  }
  undo.dismiss();
  ++place.reservation->mappings;

  Mapping& mapping = mappings_.at(*index);
  mapping.index = *index;
  mapping.range = range;
  mapping.block = &block;
  mapping.reservation = place.reservation;
  const unsigned device = block.traits.location.id;
  mapping.device_access.store(1U << device, std::memory_order_relaxed);
  mapping.host_access.store(false, std::memory_order_relaxed);
  mapping.has_window = window;
  mapping.is_allocation = true;
  mapping.read_only = part.read_only;

  const Store& store = *block.extent.store;
  PageEntry first = PageEntry::make(store.alias(block.extent.offset), *index, device, true);
  if (part.read_only || part.offset != 0) first = first.with_restriction();
  const uint64_t whole = ends_inside ? granules.size - kGranule : granules.size;
  const auto is_warm = [&](uint64_t n) {
    return store.is_warm_at(block.extent.offset + n * kGranule);
  };
  if (whole > 0) table_.set({granules.base, whole}, first, is_warm);
  if (ends_inside) {
    table_.set(last, first.advanced(whole / kGranule).with_restriction(),
               [&](uint64_t) { return is_warm(whole / kGranule); });
  }
  return {};
}

Result<AddressSpace::FoundAllocation> AddressSpace::find_allocation(VirtualAddress base) {
  HazardPin hazard;
  PageEntry entry;
  const Mapping* const mapping = pin(base, hazard, entry);
  if (mapping == nullptr || !mapping->is_allocation || mapping->range.base != base) {
    return not_an_allocation(base);
  }
  US_TRY(physical_.add_mapping_of_mapped(*mapping->block));
  return FoundAllocation{mapping->block,
                         {base % kGranule, mapping->range.size, mapping->read_only}};
}

Result<VirtualRange> AddressSpace::end_allocation(VirtualAddress base,
                                                  std::optional<unsigned> device, Origin origin) {
  drain_limbo();
  Reservation* const arena = find_reservation(base);
  Mapping* mapping = nullptr;
  VirtualRange addresses;
  if (arena != nullptr) {
    MutexLock lock(arena->mutex);
    mapping = mapping_at_locked(*arena, base, ReservationUse::kAllocations);
    if (mapping != nullptr && device && mapping->block->traits.location.id != *device) {
      mapping = nullptr;  // of another device by now
    }
    if (mapping != nullptr && mapping->block->is_imported() != (origin == Origin::kImported)) {
      return Error::format(ErrorCode::kRefused, "%p is imported memory; its key has to be closed",
                           to_pointer(base));
    }
    if (mapping != nullptr) {
      addresses = {align_down(base, kGranule), mapping->block->extent.size};
      if (mapping->has_window) US_TRY(close_window(addresses));
      table_.clear(granules_of(mapping->range));
      --arena->mappings;
    }
  }
  if (mapping == nullptr) return not_an_allocation(base);
  retire(*mapping);
  return addresses;
}

Result<void> AddressSpace::enter_slab(const Arena& place, Slab& slab, unsigned device) {
  table_.prepare(place.range);
  slab.has_window = settings_.cpu_sees_devices();
  if (slab.has_window) {
    US_TRY(storages_.warm(*slab.extent.store, slab.extent.offset, slab.extent.size));
    MutexLock lock(place.reservation->mutex);
    US_TRY(place_window_locked(*place.reservation, place.range.base, slab.extent,
                               platform::CpuAccess::kReadWrite));
  }
  const Store& store = *slab.extent.store;
  table_.set(
      place.range,
      PageEntry::make(store.alias(slab.extent.offset), slab.index, device, true).with_division(),
      [&](uint64_t) { return store.is_warm_at(slab.extent.offset); });
  return {};
}

bool AddressSpace::leave_slab(Slab& slab) noexcept {
  const VirtualRange range{slab.base.load(std::memory_order_relaxed), kGranule};
  if (slab.has_window && !close_window(range).ok()) return false;
  table_.clear(range);
  return true;
}

}  // namespace understudy
