// SPDX-License-Identifier: Apache-2.0
//
// Who may use a mapping, and the handle behind it.
#include <cinttypes>

#include "base/size_text.h"
#include "memory/address_space.h"

namespace understudy {

Result<void> AddressSpace::grant(VirtualRange range, std::span<const Location> locations) {
  Reservation* const reservation = find_reservation(range.base);
  if (reservation == nullptr) return not_a_mapping(range.base);
  {
    MutexLock lock(reservation->mutex);
    Mapping* const mapping = mapping_at_locked(*reservation, range.base);
    if (mapping != nullptr) {
      if (mapping->range != range) {
        return Error::format(ErrorCode::kRefused,
                             "size %" PRIu64 " is not that of the mapping at %p, %" PRIu64,
                             range.size, to_pointer(range.base), mapping->range.size);
      }
      for (const Location location : locations) {
        US_TRY(grant_locked(*reservation, *mapping, location));
      }
      return {};
    }
  }
  return not_a_mapping(range.base);
}

Result<void> AddressSpace::grant_locked(Reservation& reservation, Mapping& mapping,
                                        Location location) {
  const Location owner = mapping.block->traits.location;
  const bool is_owner = location.on_device() ? location == owner : !owner.on_device();
  if (location.on_device() && owner.on_device() && !is_owner &&
      !settings_.product.has(Feature::kPeerAccess)) {
    return Error::format(ErrorCode::kNotSupported, "device %u cannot reach memory of device %u",
                         location.id, owner.id);
  }
  // The CPU gets what the host is granted, and what the owner is where it sees devices.
  const bool for_cpu = !location.on_device() || (is_owner && settings_.cpu_sees_devices());
  if (for_cpu && !mapping.has_window) {
    US_TRY(place_window_locked(reservation, mapping.range.base, mapping.block->extent,
                               platform::CpuAccess::kReadWrite));
    mapping.has_window = true;
  }
  if (location.on_device()) {
    mapping.device_access.fetch_or(1U << location.id, std::memory_order_relaxed);
  } else {
    mapping.host_access.store(true, std::memory_order_relaxed);
  }
  if (is_owner) table_.grant_owner_access(mapping.range);
  return {};
}

Result<bool> AddressSpace::has_access(VirtualAddress base, Location location) {
  {
    HazardPin hazard;
    PageEntry entry;
    const Mapping* mapping = pin(base, hazard, entry);
    if (mapping != nullptr && !mapping->is_allocation && mapping->range.base == base) {
      if (!location.on_device()) return mapping->host_access.load(std::memory_order_relaxed);
      return (mapping->device_access.load(std::memory_order_relaxed) >> location.id & 1) != 0;
    }
  }
  return not_a_mapping(base);
}

Result<BlockHandle> AddressSpace::retain(VirtualAddress base) {
  Reservation* const reservation = find_reservation(base);
  if (reservation != nullptr) {
    // The lock keeps the mapping, and with it the block, until the reference is taken.
    MutexLock lock(reservation->mutex);
    Mapping* const mapping = mapping_at_locked(*reservation, base);
    if (mapping != nullptr) return physical_.retain(*mapping->block);
  }
  return not_a_mapping(base);
}

}  // namespace understudy
