// SPDX-License-Identifier: Apache-2.0
#include "memory/transfer.h"

#include <algorithm>
#include <utility>

#include "base/size_text.h"
#include "memory/address_layout.h"
#include "memory/byte_kernels.h"
#include "platform/address_window.h"

namespace understudy {

namespace {

Error no_access(VirtualAddress address) {
  return Error::format(ErrorCode::kRefused, "%p is mapped without access", to_pointer(address));
}

// The end of the granule around an address, or of the range if that comes first.
uint64_t bytes_to_granule_end(VirtualAddress address, uint64_t limit) {
  return std::min(limit, kGranule - address % kGranule);
}
// The same backwards: bytes of the granule that ends at or behind `end`.
uint64_t bytes_from_granule_start(VirtualAddress end) { return (end - 1) % kGranule + 1; }

// How many bytes to move before the stopper is asked again.
uint64_t step_of(const Conduct& conduct, uint64_t left) {
  constexpr uint64_t kStep = 64 * kMiB;
  return conduct.stopper != nullptr ? std::min(left, kStep) : left;
}

Result<void> check_stop(const Conduct& conduct, uint64_t done, uint64_t count) {
  if (conduct.stopper == nullptr || !conduct.stopper->wants_stop()) [[likely]]
    return {};
  return Error::format(ErrorCode::kStreamAborted, "stopped after %s of %s", SizeText(done).c_str(),
                       SizeText(count).c_str());
}

}  // namespace

bool Transfer::is_plainly_host(VirtualRange range) const {
  const ReservationIndex& reservations = space_.reservations();
  return range.base >= kHostBegin && range.base < kHostEnd && range.size <= kHostEnd - range.base &&
         !reservations.was_ever_near(range.base) && !reservations.was_ever_near(range.end() - 1);
}

bool Transfer::copy_quickly(VirtualAddress to, VirtualAddress from, uint64_t count) {
  PageEntry entry = space_.table().look_up(to);
  const bool to_device = entry.present();
  if (!to_device) entry = space_.table().look_up(from);
  const VirtualAddress host = to_device ? from : to;
  if (!entry.warm() || !is_plainly_host({host, count})) return false;
  HazardPin pin;
  const VirtualAddress bytes = space_.resolve_quickly(to_device ? to : from, count, entry, pin);
  if (bytes == 0) return false;
  copy_bytes(to_pointer(to_device ? bytes : host), to_pointer(to_device ? host : bytes), count);
  return true;
}

bool Transfer::set_quickly(VirtualAddress to, uint8_t value, uint64_t count) {
  const PageEntry entry = space_.table().look_up(to);
  if (!entry.warm()) return false;
  HazardPin pin;
  const VirtualAddress bytes = space_.resolve_quickly(to, count, entry, pin);
  if (bytes == 0) return false;
  fill_bytes(to_pointer(bytes), value, count);
  return true;
}

Result<Transfer::Range> Transfer::check(VirtualRange range, unsigned device, Use use,
                                        bool is_mapped) {
  if (space_.table().look_up(range.base).present()) return check_on_device(range, device, use);
  if (is_mapped) {
    return Error::format(ErrorCode::kRefused, "%s at %p have no memory any more",
                         SizeText(range.size).c_str(), to_pointer(range.base));
  }
  US_TRY(check_host(range));
  return Range{};
}

Result<Transfer::Range> Transfer::check_on_device(VirtualRange range, unsigned device, Use use) {
  HazardPin pin;
  std::optional<Place> place;
  const Reservation* reservation = nullptr;
  for (VirtualAddress at = range.base; at < range.end(); at = place->range.end()) {
    place = space_.locate(at, pin);
    const bool begins = at == range.base;
    if (!place || (!begins && (place->joins == nullptr || place->joins != reservation))) {
      return Error::format(ErrorCode::kRefused, "%s at %p leave %s device memory at %p",
                           SizeText(range.size).c_str(), to_pointer(range.base),
                           reservation != nullptr ? "mapped" : "allocated", to_pointer(at));
    }
    if (!place->may_access(device)) return no_access(at);
    if (use == Use::kWrite && place->read_only) {
      return Error::format(ErrorCode::kNoPermission, "%p is read-only memory", to_pointer(at));
    }
    reservation = place->joins;
  }
  return Range{.on_device = true,
               .mapped = reservation != nullptr,
               .owner = place->entry.owner(),
               .whole = reservation != nullptr ? to_address(reservation) : place->range.base};
}

Result<void> Transfer::check_host(VirtualRange range) {
  const VirtualAddress last = range.end() - 1;
  if (range.base < kHostBegin || range.end() > kHostEnd) {
    return Error::format(ErrorCode::kRefused, "%p is neither device nor host memory",
                         to_pointer(range.base));
  }
  const ReservationIndex& reservations = space_.reservations();
  if (!reservations.was_ever_near(range.base) && !reservations.was_ever_near(last)) return {};
  // Near device addresses a stale one is more likely than host memory: look before touching.
  for (const VirtualAddress address : {range.base, last}) {
    if (space_.is_reserved(address)) {
      return Error::format(ErrorCode::kRefused, "%p is reserved but not mapped",
                           to_pointer(address));
    }
    if (!platform::is_mapped(address)) {
      return Error::format(ErrorCode::kRefused, "%p is neither mapped device nor host memory",
                           to_pointer(address));
    }
  }
  return {};
}

Result<Transfer::Piece> Transfer::piece_at(VirtualAddress address, uint64_t limit,
                                           const Range& range, HazardPin& pin) {
  if (!range.on_device) return Piece{address, limit, nullptr, 0, {}};
  const std::optional<Place> place = space_.locate(address, pin);
  if (!place) {
    return Error::format(ErrorCode::kRefused, "%p lost its memory while it was copied",
                         to_pointer(address));
  }
  const VirtualAddress host = place->entry.host() + address % kGranule;
  const uint64_t offset = address - place->range.base;
  const uint64_t size = std::min(limit, place->range.size - offset);
  if (place->entry.warm() && bytes_to_granule_end(address, size) == size) {
    return Piece{host, size, nullptr, 0, place->entry};
  }
  return Piece{host, size, place->store, place->store_offset + offset, place->entry};
}

Result<void> Transfer::warm(VirtualAddress address, const Piece& piece) {
  if (piece.store == nullptr) return {};
  US_TRY(storages_.warm(*piece.store, piece.store_offset, piece.size));
  if (!piece.entry.warm()) {
    const uint64_t into_gib = address % kGiB;
    space_.table().note_warm(address, piece.entry, [&] {
      return piece.store->is_all_warm(piece.store_offset - into_gib, kGiB);
    });
  }
  return {};
}

// Cold granules read as fresh memory without becoming warm.
void Transfer::read_piece(VirtualAddress to_host, const Piece& from, uint64_t count) {
  if (from.store == nullptr) {
    copy_bytes(to_pointer(to_host), to_pointer(from.host), count);
    return;
  }
  const Store& store = *from.store;
  for (uint64_t done = 0; done < count;) {
    const bool is_warm = store.is_warm_at(from.store_offset + done);
    uint64_t run = bytes_to_granule_end(from.store_offset + done, count - done);
    while (done + run < count && store.is_warm_at(from.store_offset + done + run) == is_warm) {
      run += std::min(count - done - run, kGranule);
    }
    if (is_warm) {
      copy_bytes(to_pointer(to_host + done), to_pointer(from.host + done), run);
    } else {
      fill_bytes(to_pointer(to_host + done), store.fresh_byte(), run);
    }
    done += run;
  }
}

Result<void> Transfer::copy(VirtualAddress to, VirtualAddress from, uint64_t count, unsigned device,
                            const Conduct& conduct) {
  // Between devices the quick way has nothing to offer, and would take one of them for the host.
  if (count <= kGranule && conduct.sides != Sides::kDevices && copy_quickly(to, from, count)) {
    return {};
  }
  US_TRY_ASSIGN(const Pair pair, check_pair(to, from, count, device, conduct));
  const auto& [into, out] = pair;
  if (!VirtualRange{from, count}.contains(to)) {
    for (uint64_t done = 0; done < count;) {
      US_TRY(check_stop(conduct, done, count));
      US_TRY_ASSIGN(const uint64_t moved,
                    copy_piece(to + done, into, from + done, out, step_of(conduct, count - done)));
      done += moved;
    }
    return {};
  }
  // Forwards, the destination would overwrite what is yet to be read. Backwards in steps that stay
  // within one granule on either side, so that each of them is one piece.
  for (uint64_t left = count; left > 0;) {
    US_TRY(check_stop(conduct, count - left, count));
    const uint64_t step = std::min(
        {left, bytes_from_granule_start(to + left), bytes_from_granule_start(from + left)});
    left -= step;
    US_TRY(copy_piece(to + left, into, from + left, out, step));
  }
  return {};
}

Result<Transfer::Pair> Transfer::check_pair(VirtualAddress to, VirtualAddress from, uint64_t count,
                                            unsigned device, const Conduct& conduct) {
  const auto target = VirtualRange::make(to, count);
  const auto source = VirtualRange::make(from, count);
  if (!target || !source) {
    return Error::format(ErrorCode::kRefused, "count %s runs past the end of all addresses",
                         SizeText(count).c_str());
  }
  US_TRY_ASSIGN(const Range into, check(*target, device, Use::kWrite, conduct.target_is_mapped()));
  US_TRY_ASSIGN(const Range out, check(*source, device, Use::kRead, conduct.source_is_mapped()));
  const bool between_devices = into.on_device && out.on_device && into.owner != out.owner &&
                               into.owner != PageEntry::kHostOwner &&
                               out.owner != PageEntry::kHostOwner;
  // RESV-19, RESV-20
  if (!conduct.is_queued() && between_devices && (into.mapped || out.mapped) &&
      settings_.sync_device_copy == SyncDeviceCopy::kReject) {
    return Error::format(ErrorCode::kNotSupported,
                         "mapped memory of devices %u and %u cannot be copied synchronously",
                         out.owner, into.owner);
  }
  return Pair{into, out};
}

Result<uint64_t> Transfer::copy_piece(VirtualAddress to, const Range& into, VirtualAddress from,
                                      const Range& out, uint64_t count) {
  HazardPin into_pin;
  HazardPin out_pin;
  US_TRY_ASSIGN(const Piece source, piece_at(from, count, out, out_pin));
  US_TRY_ASSIGN(const Piece target, piece_at(to, source.size, into, into_pin));
  US_TRY(warm(to, target));
  read_piece(target.host, source, target.size);
  return target.size;
}

Result<void> Transfer::set(VirtualAddress to, uint8_t value, uint64_t count, unsigned device,
                           const Conduct& conduct) {
  if (count <= kGranule && set_quickly(to, value, count)) return {};
  return fill(to, count, device, conduct, [&](VirtualAddress host, uint64_t bytes) {
    fill_bytes(to_pointer(host), value, bytes);
  });
}

Result<void> Transfer::set_words(VirtualAddress to, uint32_t value, uint64_t count, unsigned device,
                                 const Conduct& conduct) {
  return fill(to, count * sizeof value, device, conduct, [&](VirtualAddress host, uint64_t bytes) {
    fill_words(to_pointer(host), value, bytes / sizeof value);
  });
}

template <typename Fill>
Result<void> Transfer::fill(VirtualAddress to, uint64_t bytes, unsigned device,
                            const Conduct& conduct, Fill fill) {
  const auto target = VirtualRange::make(to, bytes);
  if (!target) {
    return Error::format(ErrorCode::kRefused, "count %s runs past the end of all addresses",
                         SizeText(bytes).c_str());
  }
  US_TRY_ASSIGN(const Range into, check(*target, device, Use::kWrite, conduct.target_is_mapped()));
  HazardPin pin;
  for (uint64_t done = 0; done < bytes;) {
    US_TRY(check_stop(conduct, done, bytes));
    US_TRY_ASSIGN(const Piece piece,
                  piece_at(to + done, step_of(conduct, bytes - done), into, pin));
    US_TRY(warm(to + done, piece));
    fill(piece.host, piece.size);
    done += piece.size;
  }
  return {};
}

Result<Transfer::Range> Transfer::check_rows(VirtualAddress base, uint64_t pitch,
                                             const PlaneCopy& copy, unsigned device, Use use,
                                             bool is_mapped) {
  uint64_t last = 0;
  uint64_t extent = 0;
  if (__builtin_mul_overflow(pitch, copy.height - 1, &last) ||
      __builtin_add_overflow(last, copy.width, &extent) || !VirtualRange::make(base, extent)) {
    return Error::format(ErrorCode::kRefused, "the rows at %p run past the end of all addresses",
                         to_pointer(base));
  }
  // The host's side is trusted as a whole.
  US_TRY_ASSIGN(const Range first, check({base, copy.width}, device, use, is_mapped));
  if (!first.on_device) return first;
  for (uint64_t row = 1; row < copy.height; ++row) {
    US_TRY_ASSIGN(const Range range,
                  check({base + row * pitch, copy.width}, device, use, is_mapped));
    if (!range.on_device || range.whole != first.whole) {
      return Error::format(ErrorCode::kRefused, "row %llu at %p leaves the memory of the first row",
                           static_cast<unsigned long long>(row), to_pointer(base + row * pitch));
    }
  }
  return first;
}

Result<void> Transfer::copy_rows(const PlaneCopy& asked, unsigned device, const Conduct& conduct) {
  PlaneCopy copy = asked;
  // Rows without gaps are one long row. The caller bounds both, so their product is a number.
  if (copy.to_pitch == copy.width && copy.from_pitch == copy.width) {
    copy.width *= std::exchange(copy.height, 1);
    copy.to_pitch = copy.from_pitch = copy.width;
  }
  US_TRY_ASSIGN(const Range into, check_rows(copy.to, copy.to_pitch, copy, device, Use::kWrite,
                                             conduct.target_is_mapped()));
  US_TRY_ASSIGN(const Range out, check_rows(copy.from, copy.from_pitch, copy, device, Use::kRead,
                                            conduct.source_is_mapped()));
  if (into.on_device == out.on_device && !(into.on_device && conduct.is_queued())) {
    return Error::format(ErrorCode::kRefused, "%p and %p are %s", to_pointer(copy.from),
                         to_pointer(copy.to),
                         into.on_device ? "both device memory" : "both host memory");
  }
  for (uint64_t row = 0; row < copy.height; ++row) {
    US_TRY(this->copy(copy.to + row * copy.to_pitch, copy.from + row * copy.from_pitch, copy.width,
                      device, conduct));
  }
  return {};
}

}  // namespace understudy
