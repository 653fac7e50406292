// SPDX-License-Identifier: Apache-2.0
#include "memory/translation.h"

#include "memory/sub_allocations.h"

namespace understudy {

std::optional<Place> Translation::locate(VirtualAddress address, HazardPin& hazard,
                                         PoolView view) const {
  PageEntry entry;
  const Mapping* mapping = pin(address, hazard, entry);
  if (mapping == nullptr) {
    return entry.divided() ? locate_slot(address, hazard, entry) : std::nullopt;
  }
  if (!mapping->range.contains(address)) return std::nullopt;  // behind the end of an allocation
  const Block& block = *mapping->block;
  VirtualRange range = mapping->range;
  if (mapping->parts != nullptr && view == PoolView::kAllocations) {
    const auto part = mapping->parts->around((address - range.base) / kGranule);
    if (!part) return std::nullopt;  // free, or freed behind tasks that have yet to run
    range = {range.base + part->first * kGranule, part->count * kGranule};
  }
  return Place{.range = range,
               .location = block.traits.location,
               .page_kind = block.traits.page_kind(),
               .owner_access = mapping->owner_access(),
               .read_only = mapping->read_only,
               .device_access = mapping->device_access.load(std::memory_order_relaxed),
               .joins = mapping->is_allocation ? nullptr : mapping->reservation,
               .backing = block.extent.backing,
               .file_offset = block.extent.offset + (range.base - mapping->range.base),
               .entry = entry};
}

std::optional<uint32_t> Translation::pool_of(VirtualAddress address) const {
  HazardPin hazard;
  PageEntry entry;
  const Mapping* const mapping = pin(address, hazard, entry);
  if (mapping == nullptr || mapping->parts == nullptr) return std::nullopt;
  return mapping->parts->pool();
}

std::optional<Place> Translation::locate_slot(VirtualAddress address, HazardPin& hazard,
                                              PageEntry entry) const {
  for (; entry.present() && entry.divided(); entry = table_.look_up(address)) {
    const Slab& slab = slabs_.at(entry.mapping());
    const uint32_t slot = slab.slot_around(address);
    const SlotRecord record = slab.record(slot);
    const VirtualAddress offset = slot * slab.slot_bytes();
    if (!record.live() || address % kGranule - offset >= record.usable()) return std::nullopt;
    hazard.publish(&slab.records[slot]);
    if (slab.record(slot) != record ||
        table_.look_up(address).with_committed() != entry.with_committed()) {
      continue;
    }
    return Place{.range = {align_down(address, kGranule) + offset, record.usable()},
                 .location = {LocationKind::kDevice, entry.owner()},
                 .page_kind = PageKind::kNormal,
                 .backing = slab.extent.backing,
                 .file_offset = slab.extent.offset + offset,
                 .entry = entry};
  }
  return std::nullopt;
}

std::optional<MappingView> Translation::find(VirtualAddress address) const {
  HazardPin hazard;
  const std::optional<Place> place = locate(address, hazard);
  if (!place) return std::nullopt;
  return MappingView{place->range, place->location, place->page_kind, place->joins == nullptr};
}

bool Translation::was_freed(VirtualAddress address) const {
  const PageEntry entry = table_.look_up(address);
  if (!entry.present() || !entry.divided()) return entry.has_ended();
  const Slab& slab = slabs_.at(entry.mapping());
  return slab.record(slab.slot_around(address)).was_freed();
}

std::optional<VirtualRange> Translation::allocation_beside(VirtualAddress address) const {
  HazardPin hazard;
  PageEntry entry;
  std::optional<VirtualRange> range;
  if (const Mapping* const mapping = pin(address, hazard, entry)) {
    range = mapping->range;
  } else if (entry.present()) {
    const Slab& slab = slabs_.at(entry.mapping());
    const uint32_t slot = slab.slot_around(address);
    const SlotRecord record = slab.record(slot);
    if (record.live()) {
      range =
          VirtualRange{align_down(address, kGranule) + slot * slab.slot_bytes(), record.usable()};
    }
  }
  if (range && range->contains(address)) range.reset();
  return range;
}

Mapping* TranslationTables::mapping_in(const Reservation& reservation, ReservationUse use,
                                       VirtualAddress base) {
  if (reservation.use != use || !reservation.range.contains(base)) return nullptr;
  const PageEntry entry = table_.look_up(base);
  if (!entry.present() || entry.divided()) return nullptr;
  Mapping& mapping = mappings_.at(entry.mapping());
  return mapping.range.base == base ? &mapping : nullptr;
}

}  // namespace understudy
