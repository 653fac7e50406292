// SPDX-License-Identifier: Apache-2.0
#include "memory/reservations.h"

#include <algorithm>
#include <bit>

#include "base/size_text.h"
#include "platform/address_window.h"

namespace understudy {

namespace {

// RESV-15: the alignment of an expected address grows with the size.
uint64_t expected_alignment(uint64_t size) {
  return size >= kGiB ? kGiB : std::max(std::bit_ceil(size), kGranule);
}

}  // namespace

Reservations::Reservations(const Settings& settings, const Translation& translation)
    : settings_(settings), translation_(translation) {}

Result<VirtualAddress> Reservations::reserve(uint64_t size, ReservedPages pages,
                                             std::optional<VirtualAddress> expected) {
  if (!expected) {
    const uint64_t alignment = size >= kGiB ? kGiB : kGranule;
    US_TRY_ASSIGN(const VirtualRange range, index_.add_anywhere(size, alignment, pages));
    return range.base;
  }
  if (settings_.expected_address == ExpectedAddress::kNullOnly ||
      !settings_.product.has(Feature::kExpectedAddress)) {
    return Error::format(ErrorCode::kInvalidParam,
                         "expectPtr is %p and must be NULL with this product and configuration",
                         to_pointer(*expected));
  }
  return reserve_at({*expected, size}, expected_alignment(size), kExpectedWindow, pages,
                    ReservationMix::kOneOwner);
}

Result<VirtualAddress> Reservations::reserve_uncached(uint64_t size, VirtualAddress expected) {
  return reserve_at({expected, size}, kGiB, kUncachedWindow, ReservedPages::kCommon,
                    ReservationMix::kAll);
}

Result<VirtualAddress> Reservations::reserve_at(VirtualRange range, uint64_t alignment,
                                                VirtualRange window, ReservedPages pages,
                                                ReservationMix mix) {
  if (!is_aligned(range.base, alignment)) {
    return Error::format(ErrorCode::kInvalidParam, "expectPtr %p is not a multiple of %s",
                         to_pointer(range.base), SizeText(alignment).c_str());
  }
  const std::optional<uint64_t> size = align_up(range.size, kGranule);
  if (!size || !window.contains(VirtualRange{range.base, *size})) {
    return Error::format(ErrorCode::kInvalidParam, "the range of %s at %p is not inside [%p, %p)",
                         SizeText(range.size).c_str(), to_pointer(range.base),
                         to_pointer(window.base), to_pointer(window.end()));
  }
  US_TRY_ASSIGN(const VirtualRange added, index_.add_at({range.base, *size}, pages, mix));
  return added.base;
}

Result<void> Reservations::release(VirtualAddress base) {
  const std::optional<MappingView> inside = translation_.find(base);
  if (inside && inside->is_allocation) {
    return Error::format(ErrorCode::kInvalidParam, "%p is allocated, not reserved",
                         to_pointer(base))
        .about(base);
  }
  if (const Result<void> removed = index_.remove(base); !removed.ok()) {
    return removed.error().about(base);
  }
  return {};
}

ReservationUse Reservations::use_of(VirtualAddress address) {
  Reservation* const found = find(address);
  if (found == nullptr) return ReservationUse::kNone;
  MutexLock lock(found->mutex);
  return found->range.contains(address) ? found->use : ReservationUse::kNone;
}

bool Reservations::has_host_memory(VirtualAddress address) {
  if (address < kHostBegin || address >= kHostEnd) return false;
  if (was_device(address) && index_.is_occupied(address)) return false;
  if (!platform::is_mapped(address)) return false;
  // Among device addresses one page says nothing about the next.
  if (!is_in_device_window(address)) index_.kinds().note_host(address);
  return true;
}

}  // namespace understudy
