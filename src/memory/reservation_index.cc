// SPDX-License-Identifier: Apache-2.0
#include "memory/reservation_index.h"

#include <algorithm>

#include "base/size_text.h"
#include "platform/address_window.h"
#include "platform/system_number.h"

namespace understudy {

namespace {

// How often a place that turns out to be occupied by the host is given up for the next one.
constexpr int kMaxForeignRanges = 64;

Error no_addresses(uint64_t size) {
  return Error::format(ErrorCode::kOutOfMemory, "no free range of %s of device addresses is left",
                       SizeText(size).c_str());
}

}  // namespace

Result<VirtualRange> ReservationIndex::add_anywhere(uint64_t size, uint64_t alignment,
                                                    ReservedPages pages) {
  const std::optional<uint64_t> rounded = align_up(size, kGranule);
  if (!rounded || *rounded > kFarWindow.size) return no_addresses(size);
  MutexLock lock(mutex_);
  US_TRY_ASSIGN(const Placement placement, place_anywhere_locked(*rounded, alignment));
  return enter_locked(placement, pages);
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
      return Placement{*gap, true};
    }
    if (!platform::means_occupied(occupied.error())) {
      in_table_only = gap;
      break;
    }
    from = gap->base + std::max(alignment, kGiB);
  }
  // Where the host keeps the near window for itself (sanitizers), the kernel knows a place.
  if (Result<VirtualRange> range = platform::occupy_anywhere(size, alignment); range.ok()) {
    if (overlapping_locked(range.value()) == nullptr) return Placement{range.value(), true};
    platform::vacate(range.value());
  }
  if (!in_table_only) in_table_only = next_gap_locked(kFarWindow, kFarWindow.base, size, alignment);
  if (!in_table_only) return no_addresses(size);
  if (kNearWindow.contains(in_table_only->base)) cursor_ = in_table_only->end();
  return Placement{*in_table_only, false};
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

Result<VirtualRange> ReservationIndex::add_at(VirtualRange range, ReservedPages pages) {
  MutexLock lock(mutex_);
  if (overlapping_locked(range) != nullptr) {
    return Error::format(ErrorCode::kRefused, "%s at %p overlap a live reservation",
                         SizeText(range.size).c_str(), to_pointer(range.base));
  }
  const Result<void> occupied = platform::occupy(range);
  if (!occupied.ok() && platform::means_occupied(occupied.error())) {
    return Error::format(ErrorCode::kRefused, "%s at %p are occupied by host memory",
                         SizeText(range.size).c_str(), to_pointer(range.base));
  }
  // Any other failure: the host cannot map it, which the software MMU does not mind.
  return enter_locked({range, occupied.ok()}, pages);
}

const Reservation* ReservationIndex::overlapping_locked(VirtualRange range) {
  auto next = by_base_.lower_bound(range.base);
  if (next != by_base_.end() && next->first < range.end()) return next->second.reservation;
  if (next == by_base_.begin()) return nullptr;
  const Entry& previous = std::prev(next)->second;
  return previous.end > range.base ? previous.reservation : nullptr;
}

Result<VirtualRange> ReservationIndex::enter_locked(Placement placement, ReservedPages pages) {
  const std::optional<uint32_t> index = pool_.take();
  if (!index) {
    if (placement.occupied) platform::vacate(placement.range);
    return Error::format(ErrorCode::kOutOfResources, "too many live reservations");
  }
  Reservation& reservation = pool_.at(*index);
  {
    MutexLock lock(reservation.mutex);
    reservation.index = *index;
    reservation.alive = true;
    reservation.occupied = placement.occupied;
    reservation.pages = pages;
    reservation.range = placement.range;
    reservation.mappings = 0;
    reservation.owner = {};
  }
  by_base_.emplace(placement.range.base, Entry{placement.range.end(), &reservation});
  for (VirtualAddress at = align_down(placement.range.base, kTiB); at < placement.range.end();
       at += kTiB) {
    near_[at / kTiB].store(true, std::memory_order_relaxed);
  }
  return placement.range;
}

Result<void> ReservationIndex::remove(VirtualAddress base) {
  MutexLock lock(mutex_);
  const auto entry = by_base_.find(base);
  if (entry == by_base_.end()) {
    const Reservation* around = overlapping_locked({base, 1});
    return Error::format(ErrorCode::kRefused, "%p is %s", to_pointer(base),
                         around != nullptr ? "inside a reservation, not its start"
                                           : "not the start of a live reservation");
  }
  Reservation& reservation = *entry->second.reservation;
  bool occupied = false;
  {
    MutexLock reservation_lock(reservation.mutex);
    if (reservation.mappings != 0) {
      return Error::format(ErrorCode::kRefused,
                           "%llu mappings are still inside the reservation at %p",
                           static_cast<unsigned long long>(reservation.mappings), to_pointer(base));
    }
    reservation.alive = false;
    occupied = reservation.occupied;
  }
  // Under the index lock, or a new reservation could meet the old occupation of its range.
  if (occupied) platform::vacate({base, entry->second.end - base});
  by_base_.erase(entry);
  pool_.give_back(reservation.index);
  return {};
}

Reservation* ReservationIndex::find(VirtualAddress address) {
  MutexLock lock(mutex_);
  const auto next = by_base_.upper_bound(address);
  if (next == by_base_.begin()) return nullptr;
  const Entry& entry = std::prev(next)->second;
  return address < entry.end ? entry.reservation : nullptr;
}

uint64_t ReservationIndex::count() const {
  MutexLock lock(mutex_);
  return by_base_.size();
}

}  // namespace understudy
