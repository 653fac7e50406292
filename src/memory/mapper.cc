// SPDX-License-Identifier: Apache-2.0
#include "memory/mapper.h"

#include <cinttypes>
#include <cstdio>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "memory/address_errors.h"
#include "memory/host_mapping.h"
#include "observe/history.h"
#include "observe/order.h"

namespace understudy {

namespace {

ReservationOwner owner_of(const Block& block) {
  return {block.traits.location.on_device() ? block.traits.home : ReservationOwner::kHost,
          block.is_imported()};
}

bool fits_page_flag(ReservedPages pages, BlockAttribute attribute) {
  if (attribute == BlockAttribute::kHbmNormal) return true;  // asked for as normal, made of huge
  const bool huge = page_kind_of(attribute) != PageKind::kNormal;
  return huge == (pages == ReservedPages::kHuge);
}

// "device 3", "the host"
class OwnerText {
 public:
  explicit OwnerText(ReservationOwner owner) {
    if (owner.value == ReservationOwner::kHost) {
      snprintf(text_, sizeof text_, "the host");
    } else {
      snprintf(text_, sizeof text_, "device %u", owner.value);
    }
  }
  const char* c_str() const { return text_; }

 private:
  char text_[24];
};

// The life of a mapping begins, where that is of interest.
[[gnu::cold]] void note_mapping(VirtualRange range, const Block& block, BlockHandle handle) {
  const Location location = block.traits.location;
  History::begin({ObjectKind::kMapping, range.base, range.size,
                  location.on_device() ? static_cast<int32_t>(location.id) : kNoDevice, handle});
}

bool is_owner(const Mapping& mapping, Location location) {
  const Location owner = mapping.block->traits.location;
  return location.on_device() ? location == owner : !owner.on_device();
}

}  // namespace

Result<void> Mapper::map(const MapRequest& request) {
  const VirtualRange range = request.range;
  if (request.offset != 0) {
    return Error::format(ErrorCode::kInvalidParam, "offset is %" PRIu64 " and must be 0",
                         request.offset);
  }
  if (!is_aligned(range.base, kGranule)) {
    return Error::format(ErrorCode::kInvalidParam, "%p is not a multiple of 2 MiB",
                         to_pointer(range.base));
  }
  // What is known of the place is fetched at a time, and while the block is found.
  tables_.table().prefetch(range.base);
  __builtin_prefetch(reservations_.find(range.base), 1);
  retired_.reclaim();
  US_TRY_ASSIGN(Block* const block, physical_.add_internal_ref(request.handle));
  ScopeExit undo([&] { physical_.drop_internal_ref(*block); });
  if (range.size != block->extent.size) {
    return Error::format(ErrorCode::kInvalidParam,
                         "size %" PRIu64 " is not that of the block, %" PRIu64, range.size,
                         block->extent.size);
  }
  US_TRY(map_block(range, *block, request.access));
  undo.dismiss();
  return {};
}

Result<void> Mapper::map_block(VirtualRange range, Block& block, InitialAccess access) {
  Reservation* const reservation = reservations_.find(range.base);
  if (reservation == nullptr) {
    return Error::format(ErrorCode::kInvalidParam, "%p is not inside a reservation",
                         to_pointer(range.base))
        .about(range.base);
  }
  const bool on_device = block.traits.location.on_device();
  const bool cpu_may_look = !on_device || settings_.cpu_sees_devices();
  const bool with_host_mapping = cpu_may_look && access == InitialAccess::kOwner;
  if (with_host_mapping) {
    // A refusal costs no memory, so the place is checked first. It is checked again below: other
    // threads may change the reservation while the block's memory is obtained.
    {
      MutexLock lock(reservation->mutex);
      US_TRY(check_place_locked(*reservation, range, block));
      US_TRY(check_host_can_map(*reservation, range.base));
    }
    US_TRY(pools_.commit(*block.extent.backing, block.extent.offset, block.extent.size));
  }
  MutexLock lock(reservation->mutex);
  US_TRY(check_place_locked(*reservation, range, block));
  const std::optional<uint32_t> index = tables_.mappings().take();
  if (!index) return out_of_numbers("mapping");
  ScopeExit undo([&] { tables_.mappings().give_back(*index); });
  tables_.table().prepare(range);
  if (with_host_mapping) {
    US_TRY(place_host_mapping(*reservation, range.base, block.extent,
                              platform::CpuAccess::kReadWrite));
  }
  undo.dismiss();

  Mapping& mapping = tables_.mappings().at(*index);
  mapping.index = *index;
  mapping.range = range;
  mapping.block = &block;
  mapping.reservation = reservation;
  const bool owner = access == InitialAccess::kOwner;
  mapping.device_access.store(owner && on_device ? 1U << block.traits.location.id : 0,
                              std::memory_order_relaxed);
  mapping.host_access.store(owner && !on_device, std::memory_order_relaxed);
  mapping.has_host_mapping = with_host_mapping;
  mapping.is_allocation = false;
  mapping.read_only = false;
  enter_locked(*reservation, mapping);
  if (is_observed()) [[unlikely]]
    note_mapping(range, block, physical_.handle_of(block));
  return {};
}

Result<void> Mapper::check_place_locked(const Reservation& reservation, VirtualRange range,
                                        const Block& block) {
  if (reservation.use == ReservationUse::kAllocations) {
    return Error::format(ErrorCode::kInvalidParam,
                         "%p is where allocations are, not in a reservation",
                         to_pointer(range.base));
  }
  if (!reservation.range.contains(range)) {
    return Error::format(ErrorCode::kInvalidParam,
                         "the range of %s at %p is not wholly inside one reservation",
                         SizeText(range.size).c_str(), to_pointer(range.base));
  }
  if (!is_aligned(range.base, block.traits.granularity())) {
    return Error::format(ErrorCode::kInvalidParam,
                         "%p is not a multiple of %s, the block's page size",
                         to_pointer(range.base), SizeText(block.traits.granularity()).c_str());
  }
  if (settings_.reserve_flag == ReserveFlag::kMatch &&
      !fits_page_flag(reservation.pages, block.traits.attribute)) {
    return Error::format(ErrorCode::kInvalidParam,
                         "the reservation at %p was made for %s pages, the block has %s ones",
                         to_pointer(reservation.range.base),
                         reservation.pages == ReservedPages::kHuge ? "huge" : "common",
                         name_of(block.traits.page_kind()));
  }
  if (reservation.owner != owner_of(block)) {
    US_TRY(check_owner_locked(reservation, owner_of(block)));
  }
  if (!tables_.table().is_empty(range)) {
    return Error::format(ErrorCode::kInvalidParam,
                         "the range of %s at %p overlaps an existing mapping",
                         SizeText(range.size).c_str(), to_pointer(range.base));
  }
  return {};
}

// MAP-15 to MAP-18
Result<void> Mapper::check_owner_locked(const Reservation& reservation, ReservationOwner owner) {
  const ReservationOwner bound = reservation.owner;
  if (reservation.mix == ReservationMix::kAll || bound.value == ReservationOwner::kNobody) {
    return {};
  }
  if (bound.value != owner.value) {
    return Error::format(
        ErrorCode::kInvalidParam, "the reservation at %p belongs to %s %s, and the block to %s",
        to_pointer(reservation.range.base), OwnerText(bound).c_str(),
        settings_.device_binding == DeviceBinding::kForLife ? "until it is released"
                                                            : "while it has mappings",
        OwnerText(owner).c_str());
  }
  if (reservation.mappings != 0 && bound.imported != owner.imported) {
    return Error::format(
        ErrorCode::kInvalidParam, "the reservation at %p holds %s blocks, and this one is %s",
        to_pointer(reservation.range.base), bound.imported ? "imported" : "the process's own",
        owner.imported ? "imported" : "its own");
  }
  return {};
}

void Mapper::enter_locked(Reservation& reservation, Mapping& mapping) {
  const Block& block = *mapping.block;
  const BackingFile& backing = *block.extent.backing;
  const unsigned owner =
      block.traits.location.on_device() ? block.traits.location.id : PageEntry::kHostOwner;
  reservation.owner = owner_of(block);
  ++reservation.mappings;
  tables_.table().set(
      mapping.range,
      PageEntry::make(backing.alias(block.extent.offset), mapping.index, owner,
                      mapping.owner_access()),
      [&](uint64_t n) { return backing.is_committed_at(block.extent.offset + n * kGranule); });
}

Result<void> Mapper::unmap(VirtualAddress base) {
  const MemoryEnd end(ObjectKind::kMapping, base);
  retired_.reclaim();
  Reservation* const reservation = reservations_.find(base);
  if (reservation == nullptr) return no_mapping_at(base);
  Mapping* mapping = nullptr;
  {
    MutexLock lock(reservation->mutex);
    mapping = tables_.mapping_in(*reservation, ReservationUse::kProgram, base);
    if (mapping != nullptr) {
      if (mapping->has_host_mapping) US_TRY(remove_host_mapping(mapping->range));
      tables_.table().clear(mapping->range);
      --reservation->mappings;
      if (reservation->mappings == 0 && settings_.device_binding == DeviceBinding::kWhileMapped) {
        reservation->owner = {};
      }
    }
  }
  if (mapping == nullptr) return no_mapping_at(base);
  retired_.retire(*mapping);
  end.confirm();
  return {};
}

Result<void> Mapper::map_alias(VirtualRange destination, VirtualAddress source) {
  Reservation* const target = reservations_.find(destination.base);
  bool fits = false;
  if (target != nullptr) {
    MutexLock lock(target->mutex);
    fits = target->range.base == destination.base && target->range.contains(destination);
  }
  if (!fits) {
    return Error::format(ErrorCode::kInvalidParam, "%p does not start a reservation of %s or more",
                         to_pointer(destination.base), SizeText(destination.size).c_str());
  }
  const Reservation* origin = nullptr;
  for (uint64_t done = 0; done < destination.size;) {
    Block* block = nullptr;
    VirtualRange piece;
    {
      HazardPin hazard;
      PageEntry entry;
      const Mapping* mapping = tables_.pin(source + done, hazard, entry);
      if (mapping == nullptr || mapping->is_allocation || mapping->range.base != source + done) {
        return no_mapping_at(source + done);
      }
      // A neighbouring reservation is not part of the source.
      if (origin != nullptr && mapping->reservation != origin) {
        return Error::format(ErrorCode::kInvalidParam, "%p is in another reservation than %p",
                             to_pointer(source + done), to_pointer(source));
      }
      origin = mapping->reservation;
      piece = {destination.base + done, mapping->range.size};
      if (!destination.contains(piece)) {
        return Error::format(ErrorCode::kInvalidParam,
                             "size %" PRIu64 " ends inside the block mapped at %p",
                             destination.size, to_pointer(mapping->range.base));
      }
      US_TRY(physical_.add_internal_ref_to_mapped(*mapping->block));
      block = mapping->block;
    }
    ScopeExit undo([&] { physical_.drop_internal_ref(*block); });
    US_TRY(map_block(piece, *block, InitialAccess::kOwner));
    undo.dismiss();
    done += piece.size;
  }
  return {};
}

Result<void> Mapper::grant(VirtualRange range, std::span<const Location> locations) {
  Block* committed = nullptr;  // with a reference: its extent stays committed
  ScopeExit drop([&] {
    if (committed != nullptr) physical_.drop_internal_ref(*committed);
  });
  // Once more after memory was obtained, which is done without the lock, and again if another
  // block is mapped there by then.
  while (true) {
    Reservation* const reservation = reservations_.find(range.base);
    if (reservation == nullptr) return no_mapping_at(range.base);
    Block* cold = nullptr;
    {
      MutexLock lock(reservation->mutex);
      Mapping* const mapping =
          tables_.mapping_in(*reservation, ReservationUse::kProgram, range.base);
      if (mapping == nullptr) break;
      if (mapping->range != range) {
        return Error::format(ErrorCode::kInvalidParam,
                             "size %" PRIu64 " is not that of the mapping at %p, %" PRIu64,
                             range.size, to_pointer(range.base), mapping->range.size);
      }
      US_TRY_ASSIGN(cold, grant_locked(*reservation, *mapping, locations, committed));
    }
    if (cold == nullptr) return {};
    if (committed != nullptr) physical_.drop_internal_ref(*committed);
    committed = cold;
    US_TRY(pools_.commit(*cold->extent.backing, cold->extent.offset, cold->extent.size));
  }
  return no_mapping_at(range.base);
}

Result<Block*> Mapper::grant_locked(Reservation& reservation, Mapping& mapping,
                                    std::span<const Location> locations, const Block* committed) {
  for (const Location location : locations) {
    US_TRY(check_reach(mapping, location));
    if (needs_host_mapping(mapping, location) && mapping.block != committed) {
      US_TRY(check_host_can_map(reservation, mapping.range.base));
      US_TRY(physical_.add_internal_ref_to_mapped(*mapping.block));
      return mapping.block;
    }
    US_TRY(grant_one_locked(reservation, mapping, location));
  }
  return nullptr;
}

Result<void> Mapper::check_reach(const Mapping& mapping, Location location) const {
  const Location owner = mapping.block->traits.location;
  if (!location.on_device() || !owner.on_device() || location == owner ||
      settings_.product.has(Feature::kPeerAccess)) {
    return {};
  }
  return Error::format(ErrorCode::kNotSupported, "device %u cannot reach memory of device %u",
                       location.id, owner.id);
}

bool Mapper::needs_host_mapping(const Mapping& mapping, Location location) const {
  const bool for_cpu =
      !location.on_device() || (is_owner(mapping, location) && settings_.cpu_sees_devices());
  return for_cpu && !mapping.has_host_mapping;
}

Result<void> Mapper::grant_one_locked(Reservation& reservation, Mapping& mapping,
                                      Location location) {
  if (needs_host_mapping(mapping, location)) {
    US_TRY(place_host_mapping(reservation, mapping.range.base, mapping.block->extent,
                              platform::CpuAccess::kReadWrite));
    mapping.has_host_mapping = true;
  }
  if (location.on_device()) {
    mapping.device_access.fetch_or(1U << location.id, std::memory_order_relaxed);
  } else {
    mapping.host_access.store(true, std::memory_order_relaxed);
  }
  if (is_owner(mapping, location)) tables_.table().grant_owner_access(mapping.range);
  return {};
}

Result<bool> Mapper::has_access(VirtualAddress base, Location location) {
  {
    HazardPin hazard;
    PageEntry entry;
    const Mapping* mapping = tables_.pin(base, hazard, entry);
    if (mapping != nullptr && !mapping->is_allocation && mapping->range.base == base) {
      if (!location.on_device()) return mapping->host_access.load(std::memory_order_relaxed);
      return (mapping->device_access.load(std::memory_order_relaxed) >> location.id & 1) != 0;
    }
  }
  return no_mapping_at(base);
}

Result<BlockHandle> Mapper::retain(VirtualAddress base) {
  Reservation* const reservation = reservations_.find(base);
  if (reservation != nullptr) {
    // The lock keeps the mapping, and with it the block, until the reference is taken.
    MutexLock lock(reservation->mutex);
    Mapping* const mapping = tables_.mapping_in(*reservation, ReservationUse::kProgram, base);
    if (mapping != nullptr) return physical_.retain(*mapping->block);
  }
  return no_mapping_at(base);
}

Error Mapper::no_mapping_at(VirtualAddress address) {
  return not_a_mapping(tables_, reservations_, address);
}

}  // namespace understudy
