// SPDX-License-Identifier: Apache-2.0
#include "memory/reservation_index.h"

#include <algorithm>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "platform/address_window.h"
#include "platform/memory_map.h"
#include "platform/system_number.h"

namespace understudy {

namespace {

// How often a place that turns out to be occupied by the host is given up for the next one.
constexpr int kMaxForeignRanges = 64;

Error no_addresses(uint64_t size) {
  return Error::format(ErrorCode::kOutOfMemory, "no free range of %s of device addresses is left",
                       SizeText(size).c_str());
}

// Whether the host refused a range because something lives there. Out of map entries it does not
// even look, and says something else.
bool is_foreign(VirtualRange range, const Error& error) {
  if (platform::means_occupied(error)) return true;
  const bool host_could_map_it = range.base < kHostEnd && !platform::means_impossible(error);
  return host_could_map_it && platform::is_anything_mapped(range);
}

}  // namespace

Result<VirtualRange> ReservationIndex::add_anywhere(uint64_t size, uint64_t alignment,
                                                    ReservedPages pages) {
  const std::optional<uint64_t> rounded = align_up(size, kGranule);
  if (!rounded || *rounded > kFarWindow.size) return no_addresses(size);
  MutexLock lock(mutex_);
  retry_vacating_locked();
  US_TRY_ASSIGN(const Placement placement, place_anywhere_locked(*rounded, alignment));
  US_TRY(enter_locked(placement, pages, ReservationUse::kProgram, ReservationMix::kOneOwner));
  return placement.range;
}

Result<Arena> ReservationIndex::add_arena(uint64_t size, uint64_t least, ArenaHold hold) {
  const std::optional<uint64_t> least_rounded = align_up(least, kGiB);
  if (!least_rounded || *least_rounded > kFarWindow.size) return no_addresses(least);
  MutexLock lock(mutex_);
  retry_vacating_locked();
  for (size = std::max(size, *least_rounded);;) {
    US_TRY_ASSIGN(const Placement placement, place_anywhere_locked(size, kGiB));
    if (placement.hold == Hold::kNobody && size > *least_rounded) {
      size = std::max(align_down(size / 2, kGiB), *least_rounded);
      continue;
    }
    if (placement.hold == Hold::kNobody && hold == ArenaHold::kHost) {
      return Error::format(ErrorCode::kNotSupported,
                           "the host has no %s of addresses for memory that the CPU uses as well",
                           SizeText(least).c_str());
    }
    US_TRY_ASSIGN(Reservation* const reservation,
                  enter_locked(placement, ReservedPages::kCommon, ReservationUse::kAllocations,
                               ReservationMix::kAll));
    return Arena{placement.range, reservation};
  }
}

Result<ReservationIndex::Placement> ReservationIndex::place_anywhere_locked(uint64_t size,
                                                                            uint64_t alignment) {
  std::optional<VirtualRange> in_table_only;
  VirtualAddress from = cursor_;
  for (int tries = 0; tries < kMaxForeignRanges; ++tries) {
    const std::optional<VirtualRange> gap = next_gap_locked(kNearWindow, from, size, alignment);
    if (!gap) {
      if (from == kNearWindow.base) break;
      from = kNearWindow.base;
      continue;
    }
    const Result<void> occupied = platform::occupy(*gap);
    if (occupied.ok()) {
      cursor_ = gap->end();
      return Placement{*gap, Hold::kHost};
    }
    if (!is_foreign(*gap, occupied.error())) {
      in_table_only = gap;
      break;
    }
    from = gap->base + std::max(alignment, kGiB);
  }
  // Where the host keeps the near window for itself (sanitizers), the kernel knows a place.
  if (chosen_by_host_ < kMaxChosenByHost) {
    if (Result<VirtualRange> range = platform::occupy_anywhere(size, alignment); range.ok()) {
      if (overlapping_locked(range.value()) == nullptr) {
        return Placement{range.value(), Hold::kHostByItsChoice};
      }
      platform::vacate(range.value());
    }
  }
  if (!in_table_only) in_table_only = next_gap_locked(kFarWindow, kFarWindow.base, size, alignment);
  if (!in_table_only) return no_addresses(size);
  if (kNearWindow.contains(in_table_only->base)) cursor_ = in_table_only->end();
  return Placement{*in_table_only, Hold::kNobody};
}

std::optional<VirtualRange> ReservationIndex::next_gap_locked(VirtualRange window,
                                                              VirtualAddress from, uint64_t size,
                                                              uint64_t alignment) {
  VirtualRange candidate{*align_up(from, alignment), size};
  const auto behind = by_base_.upper_bound(candidate.base);
  if (behind != by_base_.begin()) {
    candidate.base = *align_up(std::max(candidate.base, std::prev(behind)->second.end), alignment);
  }
  while (window.contains(candidate)) {
    const auto next = by_base_.lower_bound(candidate.base);
    if (next == by_base_.end() || next->first >= candidate.end()) return candidate;
    candidate.base = *align_up(next->second.end, alignment);
  }
  return std::nullopt;
}

Result<VirtualRange> ReservationIndex::add_at(VirtualRange range, ReservedPages pages,
                                              ReservationMix mix) {
  MutexLock lock(mutex_);
  retry_vacating_locked();
  if (overlapping_locked(range) != nullptr) {
    return Error::format(ErrorCode::kInvalidParam,
                         "the range of %s at %p overlaps a live reservation",
                         SizeText(range.size).c_str(), to_pointer(range.base));
  }
  const Result<void> occupied = platform::occupy(range);
  if (!occupied.ok() && is_foreign(range, occupied.error())) {
    return Error::format(ErrorCode::kInvalidParam,
                         "the range of %s at %p is occupied by host memory",
                         SizeText(range.size).c_str(), to_pointer(range.base));
  }
  // Any other failure: the host cannot map it, which the software MMU does not mind.
  US_TRY(enter_locked({range, occupied.ok() ? Hold::kHost : Hold::kNobody}, pages,
                      ReservationUse::kProgram, mix));
  return range;
}

const Reservation* ReservationIndex::overlapping_locked(VirtualRange range) {
  auto next = by_base_.lower_bound(range.base);
  if (next != by_base_.end() && next->first < range.end()) return next->second.reservation;
  if (next == by_base_.begin()) return nullptr;
  const Entry& previous = std::prev(next)->second;
  return previous.end > range.base ? previous.reservation : nullptr;
}

Result<Reservation*> ReservationIndex::enter_locked(Placement placement, ReservedPages pages,
                                                    ReservationUse use, ReservationMix mix) {
  ScopeExit undo_place([&] {
    if (placement.hold != Hold::kNobody) (void)platform::vacate(placement.range);
  });
  const std::optional<uint32_t> index = pool_.take();
  if (!index) return Error::format(ErrorCode::kOutOfResources, "too many live reservations");
  ScopeExit undo_slot([&] { pool_.give_back(*index); });
  Reservation& reservation = pool_.at(*index);
  directory_.prepare();
  by_base_.emplace(placement.range.base,
                   Entry{placement.range.end(), &reservation, placement.hold});
  undo_slot.dismiss();
  undo_place.dismiss();
  {
    MutexLock lock(reservation.mutex);
    reservation.index = *index;
    reservation.occupied = placement.hold != Hold::kNobody;
    reservation.use = use;
    reservation.pages = pages;
    reservation.mix = mix;
    reservation.range = placement.range;
    reservation.mappings = 0;
    reservation.owner = {};
  }
  directory_.enter(placement.range, reservation);
  if (placement.hold == Hold::kHostByItsChoice) ++chosen_by_host_;
  kinds_.note_device(placement.range);
  return &reservation;
}

Result<void> ReservationIndex::remove(VirtualAddress base) {
  MutexLock lock(mutex_);
  retry_vacating_locked();
  still_occupied_.reserve(still_occupied_.size() + 1);  // past this point nothing may fail
  const auto entry = by_base_.find(base);
  if (entry == by_base_.end()) {
    const Reservation* around = overlapping_locked({base, 1});
    return Error::format(ErrorCode::kInvalidParam, "%p is %s", to_pointer(base),
                         around != nullptr ? "inside a reservation, not its start"
                         : kinds_.was_device(base) || is_in_device_window(base)
                             ? "a device address that is not reserved"
                             : "not a device address");
  }
  Reservation& reservation = *entry->second.reservation;
  {
    MutexLock reservation_lock(reservation.mutex);
    if (reservation.use == ReservationUse::kAllocations) {
      return Error::format(ErrorCode::kInvalidParam,
                           "%p is where allocations are, not a reservation", to_pointer(base));
    }
    if (reservation.mappings != 0) {
      return Error::format(ErrorCode::kInvalidParam,
                           reservation.mappings == 1
                               ? "%llu mapping is still inside the reservation at %p"
                               : "%llu mappings are still inside the reservation at %p",
                           static_cast<unsigned long long>(reservation.mappings), to_pointer(base));
    }
    reservation.range = {};
  }
  // Under the index lock, or a new reservation could meet the old occupation of its range.
  const Hold hold = entry->second.hold;
  const VirtualRange range{base, entry->second.end - base};
  directory_.leave(range);
  if (hold != Hold::kNobody && !platform::vacate(range)) still_occupied_.push_back(range);
  if (hold == Hold::kHostByItsChoice) --chosen_by_host_;
  by_base_.erase(entry);
  pool_.give_back(reservation.index);
  return {};
}

void ReservationIndex::retry_vacating_locked() {
  std::erase_if(still_occupied_, [](VirtualRange range) { return platform::vacate(range); });
}

bool ReservationIndex::overlaps(VirtualRange range) {
  MutexLock lock(mutex_);
  return overlapping_locked(range) != nullptr;
}

bool ReservationIndex::is_occupied(VirtualAddress address) {
  MutexLock lock(mutex_);
  return overlapping_locked({address, 1}) != nullptr ||
         std::any_of(still_occupied_.begin(), still_occupied_.end(),
                     [&](VirtualRange range) { return range.contains(address); });
}

ReservationCount ReservationIndex::count() const {
  ReservationCount found;
  MutexLock lock(mutex_);
  for (const auto& [base, entry] : by_base_) {
    Reservation& reservation = *entry.reservation;
    MutexLock reservation_lock(reservation.mutex);
    if (reservation.use == ReservationUse::kAllocations) {
      found.in_arenas += reservation.mappings;
    } else {
      ++found.reservations;
      found.mappings += reservation.mappings;
    }
  }
  return found;
}

}  // namespace understudy
