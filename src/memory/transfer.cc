// SPDX-License-Identifier: Apache-2.0
#include "memory/transfer.h"

#include <algorithm>

#include "base/size_text.h"
#include "memory/address_layout.h"
#include "memory/byte_kernels.h"
#include "platform/address_window.h"

namespace understudy {

namespace {

bool may_access(const Mapping& mapping, unsigned device) {
  return mapping.owner_access() ||
         (mapping.device_access.load(std::memory_order_relaxed) >> device & 1) != 0;
}

Error no_access(VirtualAddress address) {
  return Error::format(ErrorCode::kRefused, "%p is mapped without access", to_pointer(address));
}

// The end of the granule around an address, or of the range if that comes first.
uint64_t bytes_to_granule_end(VirtualAddress address, uint64_t limit) {
  return std::min(limit, kGranule - address % kGranule);
}

}  // namespace

bool Transfer::is_plainly_host(VirtualRange range) const {
  const ReservationIndex& reservations = space_.reservations();
  return range.base >= kHostBegin && range.base < kHostEnd && range.size <= kHostEnd - range.base &&
         !reservations.was_ever_near(range.base) && !reservations.was_ever_near(range.end() - 1);
}

bool Transfer::copy_within_granule(VirtualAddress to, VirtualAddress from, uint64_t count) {
  PageEntry entry = space_.table().look_up(to);
  const bool to_device = entry.present();
  if (!to_device) entry = space_.table().look_up(from);
  const VirtualAddress device = to_device ? to : from;
  const VirtualAddress host = to_device ? from : to;
  if (!entry.present() || !entry.warm() || !entry.owner_access() ||
      count > kGranule - device % kGranule || !is_plainly_host({host, count})) {
    return false;
  }
  HazardPin pin;
  if (!space_.try_pin(device, pin, entry)) return false;
  void* const bytes = to_pointer(entry.host() + device % kGranule);
  copy_bytes(to_device ? bytes : to_pointer(host), to_device ? to_pointer(host) : bytes, count);
  return true;
}

Result<Transfer::Range> Transfer::check(VirtualRange range, unsigned device) {
  const PageEntry entry = space_.table().look_up(range.base);
  if (entry.present()) {
    // The common case needs no mapping: one granule, whose owner may use it.
    if (entry.owner_access() && bytes_to_granule_end(range.base, range.size) == range.size) {
      return Range{true, entry.owner()};
    }
    return check_mapped(range, device);
  }
  US_TRY(check_host(range));
  return Range{};
}

Result<Transfer::Range> Transfer::check_mapped(VirtualRange range, unsigned device) {
  HazardPin pin;
  PageEntry entry;
  const Reservation* reservation = nullptr;
  unsigned owner = 0;
  for (VirtualAddress at = range.base; at < range.end();) {
    const Mapping* mapping = space_.pin(at, pin, entry);
    // Pieces join across mappings of one reservation only (MAP-13).
    if (mapping == nullptr || (reservation != nullptr && mapping->reservation != reservation)) {
      return Error::format(ErrorCode::kRefused, "%s at %p leave mapped device memory at %p",
                           SizeText(range.size).c_str(), to_pointer(range.base), to_pointer(at));
    }
    if (!may_access(*mapping, device)) return no_access(at);
    reservation = mapping->reservation;
    owner = entry.owner();
    at = mapping->range.end();
  }
  return Range{true, owner};
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
  if (!range.mapped) return Piece{address, limit, nullptr, 0, {}};
  PageEntry entry;
  const Mapping* mapping = space_.pin(address, pin, entry);
  if (mapping == nullptr) {
    return Error::format(ErrorCode::kRefused, "%p was unmapped while it was copied",
                         to_pointer(address));
  }
  const VirtualAddress host = entry.host() + address % kGranule;
  const uint64_t in_granule = bytes_to_granule_end(address, limit);
  if (entry.warm() && in_granule == limit) {
    return Piece{host, limit, nullptr, 0, entry};
  }
  const Extent& extent = mapping->block->extent;
  const uint64_t offset = address - mapping->range.base;
  return Piece{host, std::min(limit, mapping->range.size - offset), extent.store,
               extent.offset + offset, entry};
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

Result<void> Transfer::copy(VirtualAddress to, VirtualAddress from, uint64_t count,
                            unsigned device) {
  if (count <= kGranule && copy_within_granule(to, from, count)) return {};
  const auto target = VirtualRange::make(to, count);
  const auto source = VirtualRange::make(from, count);
  if (!target || !source) {
    return Error::format(ErrorCode::kRefused, "count %s runs past the end of all addresses",
                         SizeText(count).c_str());
  }
  US_TRY_ASSIGN(const Range into, check(*target, device));
  US_TRY_ASSIGN(const Range out, check(*source, device));
  if (into.mapped && out.mapped && into.owner != out.owner && into.owner != PageEntry::kHostOwner &&
      out.owner != PageEntry::kHostOwner && settings_.sync_device_copy == SyncDeviceCopy::kReject) {
    return Error::format(ErrorCode::kNotSupported,
                         "mapped memory of devices %u and %u cannot be copied synchronously",
                         out.owner, into.owner);
  }
  HazardPin into_pin;
  HazardPin out_pin;
  for (uint64_t done = 0; done < count;) {
    US_TRY_ASSIGN(const Piece source_piece, piece_at(from + done, count - done, out, out_pin));
    US_TRY_ASSIGN(const Piece piece, piece_at(to + done, source_piece.size, into, into_pin));
    US_TRY(warm(to + done, piece));
    read_piece(piece.host, source_piece, piece.size);
    done += piece.size;
  }
  return {};
}

Result<void> Transfer::set(VirtualAddress to, uint8_t value, uint64_t count, unsigned device) {
  const auto target = VirtualRange::make(to, count);
  if (!target) {
    return Error::format(ErrorCode::kRefused, "count %s runs past the end of all addresses",
                         SizeText(count).c_str());
  }
  US_TRY_ASSIGN(const Range into, check(*target, device));
  HazardPin pin;
  for (uint64_t done = 0; done < count;) {
    US_TRY_ASSIGN(const Piece piece, piece_at(to + done, count - done, into, pin));
    US_TRY(warm(to + done, piece));
    fill_bytes(to_pointer(piece.host), value, piece.size);
    done += piece.size;
  }
  return {};
}

}  // namespace understudy
