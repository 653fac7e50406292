// SPDX-License-Identifier: Apache-2.0
#include "memory/allocation_placement.h"

#include "base/scope_exit.h"
#include "memory/address_errors.h"
#include "memory/host_mapping.h"

namespace understudy {

namespace {

// The granules that have bytes to use. Those behind them, up to the end of a giant page, have not.
VirtualRange granules_of(VirtualRange usable) {
  const VirtualAddress base = align_down(usable.base, kGranule);
  return {base, *align_up(usable.end(), kGranule) - base};
}

using Origin = AllocationPlacement::Origin;

Origin origin_of(const Mapping& mapping) {
  if (mapping.is_internal) return Origin::kInternal;
  return mapping.block->is_imported() ? Origin::kImported : Origin::kOwn;
}

Error not_the_callers(const Mapping& mapping) {
  const void* const base = to_pointer(mapping.range.base);
  if (mapping.is_internal) {
    return Error::format(ErrorCode::kInvalidParam, "%p is memory of the library, which frees it",
                         base);
  }
  return Error::format(ErrorCode::kInvalidParam, "%p is imported memory; its key has to be closed",
                       base);
}

// The CPU sees all of an own block, but of a granule that another process exported a part of only
// that part, where the pages of the backing file are small enough.
Extent pages_to_show(const Block& block, const UsablePart& part) {
  const bool has_small_pages = block.extent.backing->kind() == platform::FileKind::kShared;
  if (!block.is_imported() || !has_small_pages) return block.extent;
  const uint64_t begin = align_down(part.offset, kNormalPage);
  const uint64_t end = *align_up(part.offset + part.size, kNormalPage);
  return {block.extent.backing, block.extent.offset + begin, end - begin};
}

}  // namespace

Result<void> AllocationPlacement::place(const Arena& place, Block& block, const UsablePart& part) {
  const std::optional<uint32_t> index = tables_.mappings().take();
  if (!index) return out_of_numbers("mapping");
  ScopeExit undo([&] { tables_.mappings().give_back(*index); });
  const VirtualRange range{place.range.base + part.offset, part.size};
  const VirtualRange granules = granules_of(range);
  // The last granule has an entry of its own if not all of it may be used.
  const VirtualRange last{align_down(range.end(), kGranule), kGranule};
  const bool ends_inside = !is_aligned(range.end(), kGranule);
  tables_.table().prepare(granules);
  if (ends_inside) tables_.table().prepare(last);
  const bool with_host_mapping = settings_.cpu_sees_devices();
  if (with_host_mapping)
    US_TRY(pools_.commit(*block.extent.backing, block.extent.offset, block.extent.size));

  MutexLock lock(place.reservation->mutex);
  if (with_host_mapping) {
    const Extent shown = pages_to_show(block, part);
    US_TRY(place_host_mapping(
        *place.reservation, place.range.base + (shown.offset - block.extent.offset), shown,
        part.read_only ? platform::CpuAccess::kRead : platform::CpuAccess::kReadWrite));
  }
  undo.dismiss();
  ++place.reservation->mappings;

  Mapping& mapping = tables_.mappings().at(*index);
  mapping.index = *index;
  mapping.range = range;
  mapping.block = &block;
  mapping.reservation = place.reservation;
  const unsigned device = block.traits.location.id;
  mapping.device_access.store(1U << device, std::memory_order_relaxed);
  mapping.host_access.store(false, std::memory_order_relaxed);
  mapping.has_host_mapping = with_host_mapping;
  mapping.is_allocation = true;
  mapping.read_only = part.read_only;
  mapping.is_internal = part.is_internal;

  const BackingFile& backing = *block.extent.backing;
  PageEntry first = PageEntry::make(backing.alias(block.extent.offset), *index, device, true);
  if (part.read_only || part.offset != 0) first = first.with_restriction();
  const uint64_t whole = ends_inside ? granules.size - kGranule : granules.size;
  const auto is_committed = [&](uint64_t n) {
    return backing.is_committed_at(block.extent.offset + n * kGranule);
  };
  if (whole > 0) tables_.table().set({granules.base, whole}, first, is_committed);
  if (ends_inside) {
    tables_.table().set(last, first.advanced(whole / kGranule).with_restriction(),
                        [&](uint64_t) { return is_committed(whole / kGranule); });
  }
  return {};
}

Result<void> AllocationPlacement::place_managed(const Arena& place, Block& block) {
  const std::optional<uint32_t> index = tables_.mappings().take();
  if (!index) return out_of_numbers("mapping");
  ScopeExit undo([&] { tables_.mappings().give_back(*index); });
  tables_.table().prepare(place.range);
  undo.dismiss();

  MutexLock lock(place.reservation->mutex);
  ++place.reservation->mappings;
  Mapping& mapping = tables_.mappings().at(*index);
  mapping.index = *index;
  mapping.range = place.range;
  mapping.block = &block;
  mapping.reservation = place.reservation;
  mapping.device_access.store(~0U, std::memory_order_relaxed);
  mapping.host_access.store(true, std::memory_order_relaxed);
  mapping.has_host_mapping = false;
  mapping.is_allocation = true;
  mapping.is_internal = false;
  mapping.read_only = false;
  tables_.table().set(
      place.range,
      PageEntry::make(place.range.base, *index, PageEntry::kManagedOwner, /*owner_access=*/true),
      [](uint64_t) { return false; });
  return {};
}

Result<AllocationPlacement::Found> AllocationPlacement::find(VirtualAddress base) {
  HazardPin hazard;
  PageEntry entry;
  const Mapping* const mapping = tables_.pin(base, hazard, entry);
  if (mapping != nullptr && mapping->parts != nullptr) {
    return Error::format(ErrorCode::kInvalidParam,
                         "%p is memory of a pool, which has no block of its own", to_pointer(base));
  }
  if (mapping == nullptr || !mapping->is_allocation || mapping->is_internal ||
      mapping->range.base != base) {
    return not_an_allocation(tables_, reservations_, base);
  }
  if (entry.is_managed()) {
    return Error::format(ErrorCode::kInvalidParam, "%p is managed memory, which cannot be shared",
                         to_pointer(base));
  }
  US_TRY(physical_.add_internal_ref_to_mapped(*mapping->block));
  return Found{mapping->block, {base % kGranule, mapping->range.size, mapping->read_only}};
}

Result<VirtualRange> AllocationPlacement::end(VirtualAddress base, std::optional<unsigned> device,
                                              Origin origin) {
  retired_.reclaim();
  // A block and its mapping are made together, so their numbers are mostly the same: both are
  // fetched at a time, although it is the mapping that tells which block it is.
  if (const PageEntry entry = tables_.look_up(base); entry.present()) {
    tables_.mappings().prefetch(entry.mapping());
    physical_.prefetch_slot(entry.mapping());
  }
  Reservation* const arena = reservations_.find(base);
  Mapping* mapping = nullptr;
  VirtualRange addresses;
  if (arena != nullptr) {
    MutexLock lock(arena->mutex);
    mapping = tables_.mapping_in(*arena, ReservationUse::kAllocations, base);
    if (mapping != nullptr && device && mapping->block->traits.location.id != *device) {
      mapping = nullptr;  // of another device by now
    }
    if (mapping != nullptr && mapping->parts != nullptr) mapping = nullptr;  // of a pool
    if (mapping != nullptr && origin_of(*mapping) != origin) return not_the_callers(*mapping);
    if (mapping != nullptr) {
      const Block& block = *mapping->block;
      if (block.traits.location.kind != LocationKind::kManaged) {
        addresses = {align_down(base, kGranule), block.extent.size};
      }
      if (mapping->has_host_mapping) US_TRY(remove_host_mapping(addresses));
      tables_.table().clear(granules_of(mapping->range));
      --arena->mappings;
    }
  }
  if (mapping == nullptr) return not_an_allocation(tables_, reservations_, base);
  retired_.retire(*mapping);
  return addresses;
}

Result<void> AllocationPlacement::enter(const Arena& place, Slab& slab, unsigned device) {
  tables_.table().prepare(place.range);
  slab.has_host_mapping = settings_.cpu_sees_devices();
  if (slab.has_host_mapping) {
    US_TRY(pools_.commit(*slab.extent.backing, slab.extent.offset, slab.extent.size));
    MutexLock lock(place.reservation->mutex);
    US_TRY(place_host_mapping(*place.reservation, place.range.base, slab.extent,
                              platform::CpuAccess::kReadWrite));
  }
  const BackingFile& backing = *slab.extent.backing;
  tables_.table().set(
      place.range,
      PageEntry::make(backing.alias(slab.extent.offset), slab.index, device, true).with_division(),
      [&](uint64_t) { return backing.is_committed_at(slab.extent.offset); });
  return {};
}

bool AllocationPlacement::leave(Slab& slab) noexcept {
  const VirtualRange range{slab.base.load(std::memory_order_relaxed), kGranule};
  if (slab.has_host_mapping && !remove_host_mapping(range).ok()) return false;
  tables_.table().clear(range);
  return true;
}

}  // namespace understudy
