// SPDX-License-Identifier: Apache-2.0
#include "memory/reservations.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>

#include "base/size_text.h"
#include "platform/address_window.h"

namespace understudy {

namespace {

std::atomic<uint64_t> next_id{1};

// RESV-15: the alignment of an expected address grows with the size.
uint64_t expected_alignment(uint64_t size) {
  return size >= kGiB ? kGiB : std::max(std::bit_ceil(size), kGranule);
}

}  // namespace

Reservations::Reservations(const Settings& settings, const Translation& translation)
    : settings_(settings),
      translation_(translation),
      id_(next_id.fetch_add(1, std::memory_order_relaxed)) {}

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

Reservation* Reservations::find(VirtualAddress address) {
  // Programs map block after block into the same reservation. A hint from another object or to a
  // reservation that ended meanwhile does no harm: the caller looks again under its lock.
  struct Hint {
    uint64_t id = 0;
    ReservationReference found;
  };
  static constexpr size_t kHints = 4;
  thread_local std::array<Hint, kHints> hints [[gnu::tls_model("initial-exec")]];
  Hint& hint = hints[address / kGiB % kHints];
  if (hint.id == id_ && hint.found.is_still_around(address)) return hint.found.reservation;
  const std::optional<ReservationReference> found = index_.find(address);
  if (!found) return nullptr;
  hint = {id_, *found};
  return found->reservation;
}

bool Reservations::contains(VirtualAddress address) {
  return was_device(address) && index_.find(address).has_value();
}

ReservationUse Reservations::use_of(VirtualAddress address) {
  const std::optional<ReservationReference> found = index_.find(address);
  if (!found) return ReservationUse::kNone;
  MutexLock lock(found->reservation->mutex);
  return found->reservation->range.contains(address) ? found->reservation->use
                                                     : ReservationUse::kNone;
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
