// SPDX-License-Identifier: Apache-2.0
#include "memory/segment_placement.h"

#include <algorithm>

#include "memory/hazard_pointers.h"
#include "memory/host_mapping.h"

namespace understudy {

Result<PoolSegment> SegmentPlacement::open(const Arena& place, Block& block,
                                           std::unique_ptr<SubAllocations> parts) {
  // Leaves for all of it, also where whole GiB could do with an entry of the root: parts of them
  // come and go.
  for (VirtualAddress at = place.range.base; at < place.range.end();
       at = align_down(at, kGiB) + kGiB) {
    tables_.table().prepare({at, kGranule});
  }
  const std::optional<uint32_t> index = tables_.mappings().take();
  if (!index) return out_of_numbers("mapping");
  Mapping& mapping = tables_.mappings().at(*index);
  mapping.index = *index;
  mapping.range = place.range;
  mapping.block = &block;
  mapping.reservation = place.reservation;
  mapping.device_access.store(1U << block.traits.location.id, std::memory_order_relaxed);
  mapping.host_access.store(false, std::memory_order_relaxed);
  mapping.has_host_mapping = settings_.cpu_sees_devices();
  mapping.is_allocation = true;
  mapping.is_internal = false;
  mapping.read_only = false;
  mapping.parts = parts.release();
  MutexLock lock(place.reservation->mutex);
  ++place.reservation->mappings;
  return PoolSegment{place.range, &mapping, mapping.parts};
}

void SegmentPlacement::close(const PoolSegment& segment) noexcept {
  retired_.reclaim();
  {
    Reservation& arena = *segment.mapping->reservation;
    MutexLock lock(arena.mutex);
    --arena.mappings;
  }
  retired_.retire(*segment.mapping);
}

Result<void> SegmentPlacement::enter(const PoolSegment& segment, VirtualRange part) {
  const Mapping& mapping = *segment.mapping;
  const Extent extent = segment.extent_of(part);
  const BackingFile& backing = *extent.backing;
  if (mapping.has_host_mapping || settings_.commit == Commit::kEager) {
    US_TRY(pools_.commit(*extent.backing, extent.offset, extent.size));
  }
  MutexLock lock(mapping.reservation->mutex);
  if (mapping.has_host_mapping) {
    US_TRY(place_host_mapping(*mapping.reservation, part.base, extent,
                              platform::CpuAccess::kReadWrite));
  }
  tables_.table().set(
      part,
      PageEntry::make(backing.alias(extent.offset), mapping.index,
                      mapping.block->traits.location.id, true)
          .with_restriction(),
      [&](uint64_t n) { return backing.is_committed_at(extent.offset + n * kGranule); });
  return {};
}

bool SegmentPlacement::leave(const PoolSegment& segment, VirtualRange part,
                             HostMemory host_memory) noexcept {
  const Mapping& mapping = *segment.mapping;
  {
    MutexLock lock(mapping.reservation->mutex);
    if (mapping.has_host_mapping && !remove_host_mapping(part).ok()) return false;
    tables_.table().clear(part);
  }
  // A copy may be under way, of these bytes or of others in the segment. They then keep their host
  // memory until they are used again, or the segment is closed.
  if (host_memory == HostMemory::kGiveBack && !is_pinned(&mapping)) {
    const Extent extent = segment.extent_of(part);
    extent.backing->decommit(extent.offset, extent.size);
  }
  return true;
}

}  // namespace understudy
