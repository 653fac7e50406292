// SPDX-License-Identifier: Apache-2.0
//
// How mappings begin and end.
#include <cinttypes>
#include <utility>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "memory/address_space.h"

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

}  // namespace

Result<void> AddressSpace::map(const MapRequest& request) {
  const VirtualRange range = request.range;
  if (request.offset != 0) {
    return Error::format(ErrorCode::kRefused, "offset is %" PRIu64 " and must be 0",
                         request.offset);
  }
  if (!is_aligned(range.base, kGranule)) {
    return Error::format(ErrorCode::kRefused, "%p is not a multiple of 2 MiB",
                         to_pointer(range.base));
  }
  drain_limbo();
  US_TRY_ASSIGN(Block* const block, physical_.add_mapping(request.handle));
  ScopeExit undo([&] { physical_.drop_mapping(*block); });
  if (range.size != block->extent.size) {
    return Error::format(ErrorCode::kRefused, "size %" PRIu64 " is not that of the block, %" PRIu64,
                         range.size, block->extent.size);
  }
  US_TRY(map_block(range, *block, request.access));
  undo.dismiss();
  return {};
}

Result<void> AddressSpace::map_block(VirtualRange range, Block& block, InitialAccess access) {
  Reservation* const reservation = find_reservation(range.base);
  if (reservation == nullptr) {
    return Error::format(ErrorCode::kRefused, "%p is not inside a reservation",
                         to_pointer(range.base));
  }
  MutexLock lock(reservation->mutex);
  US_TRY(check_place_locked(*reservation, range, block));
  const std::optional<uint32_t> index = mappings_.take();
  if (!index) return out_of_numbers("mapping");
  ScopeExit undo([&] { mappings_.give_back(*index); });
  table_.prepare(range);
  const bool on_device = block.traits.location.on_device();
  const bool cpu_may_look = !on_device || settings_.cpu_sees_devices();
  const bool window = cpu_may_look && access == InitialAccess::kOwner;
  if (window) {
    US_TRY(place_window_locked(*reservation, range.base, block.extent,
                               platform::CpuAccess::kReadWrite));
  }
  undo.dismiss();

  Mapping& mapping = mappings_.at(*index);
  mapping.index = *index;
  mapping.range = range;
  mapping.block = &block;
  mapping.reservation = reservation;
  const bool owner = access == InitialAccess::kOwner;
  mapping.device_access.store(owner && on_device ? 1U << block.traits.location.id : 0,
                              std::memory_order_relaxed);
  mapping.host_access.store(owner && !on_device, std::memory_order_relaxed);
  mapping.has_window = window;
  mapping.is_allocation = false;
  mapping.read_only = false;
  enter_locked(*reservation, mapping);
  return {};
}

Result<void> AddressSpace::check_place_locked(const Reservation& reservation, VirtualRange range,
                                              const Block& block) {
  if (reservation.use == ReservationUse::kAllocations) {
    return Error::format(ErrorCode::kRefused, "%p is where allocations are, not in a reservation",
                         to_pointer(range.base));
  }
  if (!reservation.range.contains(range)) {
    return Error::format(ErrorCode::kRefused, "%s at %p are not wholly inside one reservation",
                         SizeText(range.size).c_str(), to_pointer(range.base));
  }
  if (!is_aligned(range.base, block.traits.granularity())) {
    return Error::format(ErrorCode::kRefused, "%p is not a multiple of %s, the block's page size",
                         to_pointer(range.base), SizeText(block.traits.granularity()).c_str());
  }
  if (settings_.reserve_flag == ReserveFlag::kMatch &&
      !fits_page_flag(reservation.pages, block.traits.attribute)) {
    return Error::format(ErrorCode::kRefused,
                         "the reservation at %p was made for %s pages, the block has %s ones",
                         to_pointer(reservation.range.base),
                         reservation.pages == ReservedPages::kHuge ? "huge" : "common",
                         name_of(block.traits.page_kind()));
  }
  if (reservation.owner != ReservationOwner{} && reservation.owner != owner_of(block)) {
    const bool mixed = reservation.owner.imported != block.is_imported();
    return Error::format(ErrorCode::kRefused, "the reservation at %p belongs to %s blocks",
                         to_pointer(reservation.range.base),
                         !mixed                ? "another device's"
                         : block.is_imported() ? "this process's own"
                                               : "imported");
  }
  if (!table_.is_empty(range)) {
    return Error::format(ErrorCode::kRefused, "%s at %p overlap an existing mapping",
                         SizeText(range.size).c_str(), to_pointer(range.base));
  }
  return {};
}

Result<void> AddressSpace::place_window_locked(const Reservation& reservation, VirtualAddress base,
                                               const Extent& extent, platform::CpuAccess access) {
  if (!reservation.occupied) {
    return Error::format(ErrorCode::kNotSupported,
                         "the host cannot map %p, so the CPU cannot have access there",
                         to_pointer(base));
  }
  // A CPU touch of memory that the host does not have would be a signal: get it first.
  US_TRY(storages_.warm(*extent.store, extent.offset, extent.size));
  return platform::place_file({base, extent.size}, extent.store->file(), extent.offset, access);
}

void AddressSpace::enter_locked(Reservation& reservation, Mapping& mapping) {
  const Block& block = *mapping.block;
  const Store& store = *block.extent.store;
  const unsigned owner =
      block.traits.location.on_device() ? block.traits.location.id : PageEntry::kHostOwner;
  reservation.owner = owner_of(block);
  ++reservation.mappings;
  table_.set(mapping.range,
             PageEntry::make(store.alias(block.extent.offset), mapping.index, owner,
                             mapping.owner_access()),
             [&](uint64_t n) { return store.is_warm_at(block.extent.offset + n * kGranule); });
}

Result<void> AddressSpace::unmap(VirtualAddress base) {
  drain_limbo();
  Reservation* const reservation = find_reservation(base);
  if (reservation == nullptr) return not_a_mapping(base);
  Mapping* mapping = nullptr;
  {
    MutexLock lock(reservation->mutex);
    mapping = mapping_at_locked(*reservation, base);
    if (mapping != nullptr) {
      if (mapping->has_window) US_TRY(close_window(mapping->range));
      table_.clear(mapping->range);
      --reservation->mappings;
      if (reservation->mappings == 0 && settings_.device_binding == DeviceBinding::kWhileMapped) {
        reservation->owner = {};
      }
    }
  }
  if (mapping == nullptr) return not_a_mapping(base);
  retire(*mapping);
  return {};
}

// While the CPU can look at the bytes they cannot be given to anyone else.
Result<void> AddressSpace::close_window(VirtualRange range) {
  const Result<void> covered = platform::cover(range);
  if (covered.ok()) return {};
  // Out of map entries: the window may stay, if nobody can look through it.
  if (platform::change_access(range, platform::CpuAccess::kNone).ok()) return {};
  return covered.error();
}

Mapping* AddressSpace::mapping_at_locked(const Reservation& reservation, VirtualAddress base,
                                         ReservationUse use) {
  if (reservation.use != use || !reservation.range.contains(base)) return nullptr;
  const PageEntry entry = table_.look_up(base);
  if (!entry.present() || entry.divided()) return nullptr;
  Mapping& mapping = mappings_.at(entry.mapping());
  return mapping.range.base == base ? &mapping : nullptr;
}

void AddressSpace::retire(Mapping& mapping) {
  Block& block = *mapping.block;
  if (!is_pinned(&mapping)) {
    finish(mapping);
    physical_.drop_mapping(block);
    return;
  }
  // A copy is under way. The block may end now, and its capacity is credited; its bytes stay until
  // the copy is done.
  physical_.hold_storage(block);
  {
    MutexLock lock(limbo_mutex_);
    push_limbo_locked(mapping);
  }
  physical_.drop_mapping(block);
}

void AddressSpace::push_limbo_locked(Mapping& mapping) {
  mapping.next_in_limbo = limbo_.load(std::memory_order_relaxed);
  limbo_.store(&mapping, std::memory_order_relaxed);
}

void AddressSpace::drain_limbo() {
  if (limbo_.load(std::memory_order_relaxed) == nullptr) return;
  Mapping* mapping = nullptr;
  Mapping* done = nullptr;
  {
    MutexLock lock(limbo_mutex_);
    mapping = limbo_.exchange(nullptr, std::memory_order_relaxed);
    while (mapping != nullptr) {
      Mapping* const next = mapping->next_in_limbo;
      if (is_pinned(mapping)) {
        push_limbo_locked(*mapping);
      } else {
        mapping->next_in_limbo = std::exchange(done, mapping);
      }
      mapping = next;
    }
  }
  while (done != nullptr) {
    Mapping& ended = *std::exchange(done, done->next_in_limbo);
    Block& block = *ended.block;
    finish(ended);
    physical_.drop_storage(block);
  }
}

void AddressSpace::finish(Mapping& mapping) { mappings_.give_back(mapping.index); }

Result<void> AddressSpace::map_again(VirtualRange destination, VirtualAddress source) {
  Reservation* const target = find_reservation(destination.base);
  bool fits = false;
  if (target != nullptr) {
    MutexLock lock(target->mutex);
    fits = target->range.base == destination.base && target->range.contains(destination);
  }
  if (!fits) {
    return Error::format(ErrorCode::kRefused, "%p does not start a reservation of %s or more",
                         to_pointer(destination.base), SizeText(destination.size).c_str());
  }
  const Reservation* origin = nullptr;
  for (uint64_t done = 0; done < destination.size;) {
    Block* block = nullptr;
    VirtualRange piece;
    {
      HazardPin hazard;
      PageEntry entry;
      const Mapping* mapping = pin(source + done, hazard, entry);
      if (mapping == nullptr || mapping->is_allocation || mapping->range.base != source + done) {
        return not_a_mapping(source + done);
      }
      // A neighbouring reservation is not part of the source.
      if (origin != nullptr && mapping->reservation != origin) {
        return Error::format(ErrorCode::kRefused, "%p is in another reservation than %p",
                             to_pointer(source + done), to_pointer(source));
      }
      origin = mapping->reservation;
      piece = {destination.base + done, mapping->range.size};
      if (!destination.contains(piece)) {
        return Error::format(ErrorCode::kRefused,
                             "size %" PRIu64 " ends inside the block mapped at %p",
                             destination.size, to_pointer(mapping->range.base));
      }
      US_TRY(physical_.add_mapping_of_mapped(*mapping->block));
      block = mapping->block;
    }
    ScopeExit undo([&] { physical_.drop_mapping(*block); });
    US_TRY(map_block(piece, *block, InitialAccess::kOwner));
    undo.dismiss();
    done += piece.size;
  }
  return {};
}

}  // namespace understudy
