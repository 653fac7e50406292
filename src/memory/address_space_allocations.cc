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
  return {usable.base, *align_up(usable.size, kGranule)};
}

}  // namespace

Result<void> AddressSpace::place_allocation(const Arena& place, Block& block, uint64_t usable,
                                            bool read_only) {
  const std::optional<uint32_t> index = mappings_.take();
  if (!index) return out_of_numbers("mapping");
  ScopeExit undo([&] { mappings_.give_back(*index); });
  const VirtualRange range{place.range.base, usable};
  const VirtualRange granules = granules_of(range);
  // The last granule has an entry of its own if not all of it may be used.
  const VirtualRange last{align_down(range.end(), kGranule), kGranule};
  const bool ends_inside = !is_aligned(usable, kGranule);
  table_.prepare(granules);
  if (ends_inside) table_.prepare(last);
  const bool window = settings_.cpu_sees_devices();
  // This may take long, and nobody else knows of the extent yet: before the lock.
  if (window) US_TRY(storages_.warm(*block.extent.store, block.extent.offset, block.extent.size));

  MutexLock lock(place.reservation->mutex);
  if (window) {
    US_TRY(place_window_locked(
        *place.reservation, range.base, block.extent,
        read_only ? platform::CpuAccess::kRead : platform::CpuAccess::kReadWrite));
  }
  undo.dismiss();

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
  mapping.read_only = read_only;

  const Store& store = *block.extent.store;
  PageEntry first = PageEntry::make(store.alias(block.extent.offset), *index, device, true);
  if (read_only) first = first.with_restriction();
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

Result<VirtualRange> AddressSpace::end_allocation(VirtualAddress base,
                                                  std::optional<unsigned> device) {
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
    if (mapping != nullptr) {
      addresses = {base, mapping->block->extent.size};
      if (mapping->has_window) US_TRY(close_window(addresses));
      table_.clear(granules_of(mapping->range));
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
