// SPDX-License-Identifier: Apache-2.0
#include "memory/transfer.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "base/size_text.h"
#include "memory/address_errors.h"
#include "memory/address_layout.h"
#include "memory/byte_kernels.h"
#include "observe/unwritten_memory.h"

namespace understudy {

namespace {

// A range begins in a mapping or an allocation and does not end there.
Error past_the_end(VirtualRange range, VirtualRange inside, bool is_mapping) {
  return Error::format(
      ErrorCode::kInvalidParam, "the range of %s at %p runs past the end of the %s of %s at %p",
      SizeText(range.size).c_str(), to_pointer(range.base), is_mapping ? "mapping" : "allocation",
      SizeText(inside.size).c_str(), to_pointer(inside.base));
}

Error no_access(VirtualAddress address) {
  return Error::format(ErrorCode::kInvalidParam, "%p is mapped without access",
                       to_pointer(address));
}

// The end of the granule around an address, or of the range if that comes first.
uint64_t bytes_to_granule_end(VirtualAddress address, uint64_t limit) {
  return std::min(limit, kGranule - address % kGranule);
}
// The same backwards: bytes of the granule that ends at or behind `end`.
uint64_t bytes_from_granule_start(VirtualAddress end) { return (end - 1) % kGranule + 1; }

// Longer ones gain by a copy method of their own.
constexpr uint64_t kLongestQuickRow = 64 * kKiB;

// How many bytes to move before the token is asked again.
uint64_t step_of(const TransferOptions& options, uint64_t left) {
  constexpr uint64_t kStep = 64 * kMiB;
  return options.cancel != nullptr ? std::min(left, kStep) : left;
}

Result<void> check_stop(const TransferOptions& options, uint64_t done, uint64_t count) {
  if (options.cancel == nullptr || !options.cancel->is_cancelled()) [[likely]]
    return {};
  return Error::format(ErrorCode::kStreamAborted, "stopped after %s of %s", SizeText(done).c_str(),
                       SizeText(count).c_str());
}

}  // namespace

bool Transfer::is_plainly_host(VirtualRange range) const {
  return range.base >= kHostBegin && range.base < kHostEnd && range.size <= kHostEnd - range.base &&
         reservations_.is_plainly_host(range.base) &&
         reservations_.is_plainly_host(range.end() - 1);
}

bool Transfer::copy_quickly(VirtualAddress to, VirtualAddress from, uint64_t count,
                            const TransferOptions& options) {
  if (count > kGranule || is_init_checked()) [[unlikely]]
    return false;
  PageTable::Look look = translation_.look_at(to);
  const bool to_device = look.entry().present();
  if (!to_device) look = translation_.look_at(from);
  const VirtualAddress host = to_device ? from : to;
  if (!look.entry().commit()) return false;
  if (!is_plainly_host({host, count}))
    return to_device && copy_within_quickly(to, look, from, count);
  // A device's side is not on the host, whatever the host has there.
  if (options.sides == Sides::kDevices) return false;
  HazardPin pin;
  const VirtualAddress bytes =
      translation_.resolve_quickly(to_device ? to : from, count, look, pin);
  if (bytes == 0) return false;
  engine_.copy(to_pointer(to_device ? bytes : host), to_pointer(to_device ? host : bytes), count);
  return true;
}

bool Transfer::copy_within_quickly(VirtualAddress to, const PageTable::Look& into,
                                   VirtualAddress from, uint64_t count) {
  const PageTable::Look out = translation_.look_at(from);
  // What overlaps is copied in an order of its own; between devices not every copy is allowed.
  if (!out.entry().commit() || out.entry().owner() != into.entry().owner() ||
      !into.entry().on_device() || VirtualRange{from, count}.overlaps({to, count})) {
    return false;
  }
  HazardPin into_pin;
  HazardPin out_pin;
  const VirtualAddress target = translation_.resolve_quickly(to, count, into, into_pin);
  if (target == 0) [[unlikely]]
    return false;
  const VirtualAddress source = translation_.resolve_quickly(from, count, out, out_pin);
  if (source == 0) [[unlikely]]
    return false;
  engine_.copy(to_pointer(target), to_pointer(source), count);
  return true;
}

bool Transfer::set_quickly(VirtualAddress to, uint8_t value, uint64_t count) {
  if (count > kGranule || is_init_checked()) [[unlikely]]
    return false;
  const PageTable::Look look = translation_.look_at(to);
  if (!look.entry().commit()) return false;
  HazardPin pin;
  const VirtualAddress bytes = translation_.resolve_quickly(to, count, look, pin);
  if (bytes == 0) return false;
  fill_bytes(to_pointer(bytes), value, count);
  return true;
}

Result<Transfer::Range> Transfer::check(VirtualRange range, unsigned device, Use use,
                                        const SideOptions& options) {
  if (translation_.look_up(range.base).present()) {
    return check_on_device(range, device, use, options.view);
  }
  if (options.is_mapped) return no_memory_at(translation_, reservations_, range.base);
  US_TRY(check_host(range));
  return Range{};
}

Result<Transfer::Range> Transfer::check_on_device(VirtualRange range, unsigned device, Use use,
                                                  PoolView view) {
  HazardPin pin;
  std::optional<Place> place;
  const Reservation* reservation = nullptr;
  VirtualRange before;
  uint64_t devices = 0;
  for (VirtualAddress at = range.base; at < range.end(); at = place->range.end()) {
    place = translation_.locate(at, pin, view);
    const bool goes_on = place && place->joins != nullptr && place->joins == reservation;
    if (before.size != 0 && !goes_on) return past_the_end(range, before, reservation != nullptr);
    if (!place) return no_memory_at(translation_, reservations_, at);
    if (!place->may_access(device)) return no_access(at);
    if (use == Use::kWrite && place->read_only) {
      return Error::format(ErrorCode::kNoPermission, "%p is read-only memory", to_pointer(at));
    }
    reservation = place->joins;
    before = place->range;
    if (place->entry.on_device()) devices |= uint64_t{1} << place->entry.owner();
  }
  return Range{.on_device = true,
               .mapped = reservation != nullptr,
               .managed = place->entry.is_managed(),
               .devices = devices,
               .whole = reservation != nullptr ? to_address(reservation) : place->range.base};
}

Result<void> Transfer::check_host(VirtualRange range) {
  // Beside so many bytes the question costs nothing. Fewer are trusted where the host has memory.
  constexpr uint64_t kAlwaysAsked = kMiB;
  for (const VirtualAddress address : {range.base, range.end() - 1}) {
    if (range.size < kAlwaysAsked && address < kHostEnd && reservations_.is_plainly_host(address)) {
      continue;
    }
    if (!reservations_.has_host_memory(address)) {
      return no_memory_at(translation_, reservations_, address);
    }
  }
  return {};
}

Result<Transfer::Piece> Transfer::piece_at(VirtualAddress address, uint64_t limit,
                                           const Range& range, HazardPin& pin) {
  if (!range.on_device) return Piece{address, limit, nullptr, 0, {}};
  const std::optional<Place> place = translation_.locate(address, pin, PoolView::kSegments);
  if (!place) {
    return Error::format(ErrorCode::kInvalidParam, "%p lost its memory while it was copied",
                         to_pointer(address));
  }
  const VirtualAddress host = place->entry.host() + address % kGranule;
  const uint64_t offset = address - place->range.base;
  const uint64_t size = std::min(limit, place->range.size - offset);
  if (place->entry.commit() && bytes_to_granule_end(address, size) == size) {
    return Piece{host, size, nullptr, 0, place->entry};
  }
  return Piece{host, size, place->backing, place->file_offset + offset, place->entry};
}

Result<void> Transfer::commit_managed(VirtualAddress address, const Piece& piece) {
  if (piece.entry.commit() && bytes_to_granule_end(address, piece.size) == piece.size) return {};
  US_TRY(managed_.commit({address, piece.size}));
  if (!piece.entry.commit()) {
    translation_.note_committed(address, piece.entry, [&] {
      return managed_.is_committed({align_down(address, kGiB), kGiB});
    });
  }
  return {};
}

Result<void> Transfer::commit(VirtualAddress address, const Piece& piece) {
  if (piece.entry.is_managed()) return commit_managed(address, piece);
  if (piece.backing == nullptr) return {};
  US_TRY(pools_.commit(*piece.backing, piece.file_offset, piece.size));
  note_committed(address, piece);
  return {};
}

// Of a granule that is committed in parts, each access has to ask for its own.
void Transfer::note_committed(VirtualAddress address, const Piece& piece) {
  if (piece.entry.commit() || !piece.backing->is_committed_at(piece.file_offset)) return;
  const uint64_t into_gib = address % kGiB;
  translation_.note_committed(address, piece.entry, [&] {
    return piece.backing->is_all_committed(piece.file_offset - into_gib, kGiB);
  });
}

void Transfer::note_read(VirtualAddress address, const Piece& piece) {
  if (piece.backing == nullptr || piece.entry.commit()) return;
  piece.backing->note_read(piece.file_offset);
  note_committed(address, piece);
}

// What is cold reads as fresh memory without becoming committed.
void Transfer::read_piece(VirtualAddress to_host, const Piece& from, uint64_t count) {
  if (from.backing == nullptr) {
    engine_.copy(to_pointer(to_host), to_pointer(from.host), count);
    return;
  }
  const BackingFile& backing = *from.backing;
  for (uint64_t done = 0; done < count;) {
    const BackingFile::Run run = backing.run_at(from.file_offset + done, count - done);
    if (run.is_committed) {
      engine_.copy(to_pointer(to_host + done), to_pointer(from.host + done), run.size);
    } else {
      fill_bytes(to_pointer(to_host + done), backing.fresh_byte(), run.size);
    }
    done += run.size;
  }
}

Result<void> Transfer::copy_carefully(VirtualAddress to, VirtualAddress from, uint64_t count,
                                      unsigned device, const TransferOptions& options) {
  if (is_init_checked()) [[unlikely]]
    return copy_noted(to, from, count, device, options);
  return copy_in_pieces(to, from, count, device, options);
}

Result<void> Transfer::copy_noted(VirtualAddress to, VirtualAddress from, uint64_t count,
                                  unsigned device, const TransferOptions& options) {
  if (!options.is_look && check_pair(to, from, count, device, options).ok()) {
    uses_.note_read({from, count}, options.task);
    uses_.note_written({to, count});
  }
  return copy_in_pieces(to, from, count, device, options);
}

Result<void> Transfer::set_noted(VirtualAddress to, uint8_t value, uint64_t count, unsigned device,
                                 const TransferOptions& options) {
  note_fill(to, count, device, options);
  return set_in_pieces(to, value, count, device, options);
}

void Transfer::note_fill(VirtualAddress to, uint64_t count, unsigned device,
                         const TransferOptions& options) {
  const auto target = VirtualRange::make(to, count);
  if (!target || !check(*target, device, Use::kWrite, target_options(options)).ok()) return;
  uses_.note_written({to, count});
}

Result<void> Transfer::copy_in_pieces(VirtualAddress to, VirtualAddress from, uint64_t count,
                                      unsigned device, const TransferOptions& options) {
  US_TRY_ASSIGN(const Pair pair, check_pair(to, from, count, device, options));
  const auto& [into, out] = pair;
  if (!VirtualRange{from, count}.contains(to)) {
    for (uint64_t done = 0; done < count;) {
      US_TRY(check_stop(options, done, count));
      US_TRY_ASSIGN(const uint64_t moved,
                    copy_piece(to + done, into, from + done, out, step_of(options, count - done)));
      done += moved;
    }
    return {};
  }
  // Forwards, the destination would overwrite what is yet to be read. Backwards in steps that stay
  // within one granule on either side, so that each of them is one piece.
  for (uint64_t left = count; left > 0;) {
    US_TRY(check_stop(options, count - left, count));
    const uint64_t step = std::min(
        {left, bytes_from_granule_start(to + left), bytes_from_granule_start(from + left)});
    left -= step;
    US_TRY(copy_piece(to + left, into, from + left, out, step));
  }
  return {};
}

Result<Transfer::Pair> Transfer::check_pair(VirtualAddress to, VirtualAddress from, uint64_t count,
                                            unsigned device, const TransferOptions& options) {
  const auto target = VirtualRange::make(to, count);
  const auto source = VirtualRange::make(from, count);
  if (!target || !source) {
    return Error::format(ErrorCode::kInvalidParam, "count %s runs past the end of all addresses",
                         SizeText(count).c_str());
  }
  US_TRY_ASSIGN(const Range into, check(*target, device, Use::kWrite, target_options(options)));
  US_TRY_ASSIGN(const Range out, check(*source, device, Use::kRead, source_options(options)));
  const uint64_t devices = into.devices | out.devices;
  const bool between_devices =
      into.devices != 0 && out.devices != 0 && !std::has_single_bit(devices);
  // RESV-19, RESV-20
  if (!options.is_queued() && between_devices && (into.mapped || out.mapped) &&
      settings_.sync_device_copy == SyncDeviceCopy::kReject) {
    return Error::format(ErrorCode::kNotSupported,
                         "mapped memory of devices %d and %d cannot be copied synchronously",
                         std::countr_zero(devices), static_cast<int>(std::bit_width(devices)) - 1);
  }
  return Pair{into, out};
}

Result<uint64_t> Transfer::copy_piece(VirtualAddress to, const Range& into, VirtualAddress from,
                                      const Range& out, uint64_t count) {
  HazardPin into_pin;
  HazardPin out_pin;
  US_TRY_ASSIGN(const Piece source, piece_at(from, count, out, out_pin));
  US_TRY_ASSIGN(const Piece target, piece_at(to, source.size, into, into_pin));
  US_TRY(commit(to, target));
  read_piece(target.host, source, target.size);
  note_read(from, source);
  return target.size;
}

Result<void> Transfer::set_carefully(VirtualAddress to, uint8_t value, uint64_t count,
                                     unsigned device, const TransferOptions& options) {
  if (is_init_checked()) [[unlikely]]
    return set_noted(to, value, count, device, options);
  return set_in_pieces(to, value, count, device, options);
}

Result<void> Transfer::set_in_pieces(VirtualAddress to, uint8_t value, uint64_t count,
                                     unsigned device, const TransferOptions& options) {
  return fill(to, count, device, options, [&](VirtualAddress host, uint64_t bytes) {
    fill_bytes(to_pointer(host), value, bytes);
  });
}

Result<void> Transfer::set_words(VirtualAddress to, uint32_t value, uint64_t count, unsigned device,
                                 const TransferOptions& options) {
  if (is_init_checked()) [[unlikely]]
    note_fill(to, count * sizeof value, device, options);
  return fill(to, count * sizeof value, device, options, [&](VirtualAddress host, uint64_t bytes) {
    fill_words(to_pointer(host), value, bytes / sizeof value);
  });
}

template <typename Fill>
Result<void> Transfer::fill(VirtualAddress to, uint64_t bytes, unsigned device,
                            const TransferOptions& options, Fill fill) {
  const auto target = VirtualRange::make(to, bytes);
  if (!target) {
    return Error::format(ErrorCode::kInvalidParam, "count %s runs past the end of all addresses",
                         SizeText(bytes).c_str());
  }
  US_TRY_ASSIGN(const Range into, check(*target, device, Use::kWrite, target_options(options)));
  HazardPin pin;
  for (uint64_t done = 0; done < bytes;) {
    US_TRY(check_stop(options, done, bytes));
    US_TRY_ASSIGN(const Piece piece,
                  piece_at(to + done, step_of(options, bytes - done), into, pin));
    US_TRY(commit(to + done, piece));
    fill(piece.host, piece.size);
    done += piece.size;
  }
  return {};
}

Result<Transfer::Range> Transfer::check_rows(VirtualAddress base, uint64_t pitch,
                                             const PlaneCopy& copy, unsigned device, Use use,
                                             const SideOptions& options) {
  uint64_t last = 0;
  uint64_t extent = 0;
  if (__builtin_mul_overflow(pitch, copy.height - 1, &last) ||
      __builtin_add_overflow(last, copy.width, &extent) || !VirtualRange::make(base, extent)) {
    return Error::format(ErrorCode::kInvalidParam,
                         "the rows at %p run past the end of all addresses", to_pointer(base));
  }
  US_TRY_ASSIGN(const Range first, check({base, copy.width}, device, use, options));
  if (!first.on_device) {
    // The host's side is trusted between its ends.
    US_TRY(check_host({base, extent}));
    return first;
  }
  {
    HazardPin pin;
    const std::optional<Place> place = translation_.locate(base, pin, options.view);
    if (place && place->range.contains(VirtualRange{base, extent})) return first;
  }
  for (uint64_t row = 1; row < copy.height; ++row) {
    US_TRY_ASSIGN(const Range range, check({base + row * pitch, copy.width}, device, use, options));
    if (!range.on_device || range.whole != first.whole) {
      return Error::format(ErrorCode::kInvalidParam,
                           "row %llu at %p leaves the memory of the first row",
                           static_cast<unsigned long long>(row), to_pointer(base + row * pitch));
    }
  }
  return first;
}

Result<uint64_t> Transfer::copy_first_rows(const PlaneCopy& rows, const Range& into,
                                           const Range& out) {
  const auto side_at = [&](VirtualAddress base, uint64_t pitch, const Range& range,
                           HazardPin& pin) {
    const uint64_t extent = (rows.height - 1) * pitch + rows.width;
    return piece_at(base, range.on_device ? bytes_to_granule_end(base, extent) : extent, range,
                    pin);
  };
  const auto rows_in = [&](const Piece& piece, uint64_t pitch) {
    const bool is_there = !piece.entry.present() || piece.entry.commit();
    return is_there && piece.size >= rows.width ? (piece.size - rows.width) / pitch + 1 : 0;
  };
  HazardPin into_pin;
  HazardPin out_pin;
  US_TRY_ASSIGN(const Piece source, side_at(rows.from, rows.from_pitch, out, out_pin));
  US_TRY_ASSIGN(const Piece target, side_at(rows.to, rows.to_pitch, into, into_pin));
  const uint64_t count = std::min(rows_in(source, rows.from_pitch), rows_in(target, rows.to_pitch));
  for (uint64_t row = 0; row < count; ++row) {
    copy_bytes(to_pointer(target.host + row * rows.to_pitch),
               to_pointer(source.host + row * rows.from_pitch), rows.width);
  }
  return count;
}

Result<void> Transfer::copy_rows(const PlaneCopy& asked, unsigned device,
                                 const TransferOptions& options) {
  PlaneCopy copy = asked;
  // Rows without gaps are one long row. The caller bounds both, so their product is a number.
  if (copy.to_pitch == copy.width && copy.from_pitch == copy.width) {
    copy.width *= std::exchange(copy.height, 1);
    copy.to_pitch = copy.from_pitch = copy.width;
  }
  US_TRY_ASSIGN(const Range into, check_rows(copy.to, copy.to_pitch, copy, device, Use::kWrite,
                                             target_options(options)));
  US_TRY_ASSIGN(const Range out, check_rows(copy.from, copy.from_pitch, copy, device, Use::kRead,
                                            source_options(options)));
  const bool is_managed = into.managed || out.managed;  // fits every direction
  if (into.on_device == out.on_device && !is_managed && !(into.on_device && options.is_queued())) {
    return Error::format(ErrorCode::kInvalidParam, "%p and %p are %s", to_pointer(copy.from),
                         to_pointer(copy.to),
                         into.on_device ? "both device memory" : "both host memory");
  }
  const bool is_noted = is_init_checked();
  if (is_noted) [[unlikely]] {
    uses_.note_read({copy.from, copy.width, copy.from_pitch, copy.height}, options.task);
    uses_.note_written({copy.to, copy.width, copy.to_pitch, copy.height});
  }
  const uint64_t bytes = copy.width * copy.height;
  while (copy.height > 0) {
    uint64_t rows = 0;
    if (!is_noted && copy.width <= kLongestQuickRow) {
      US_TRY(check_stop(options, bytes - copy.width * copy.height, bytes));
      US_TRY_ASSIGN(rows, copy_first_rows(copy, into, out));
    }
    if (rows == 0) {
      US_TRY(is_noted ? copy_in_pieces(copy.to, copy.from, copy.width, device, options)
                      : this->copy(copy.to, copy.from, copy.width, device, options));
      rows = 1;
    }
    copy.to += rows * copy.to_pitch;
    copy.from += rows * copy.from_pitch;
    copy.height -= rows;
  }
  return {};
}

// ---- Reductions ----

namespace {

// Small enough for the first cache, and for the stack of a thread of the program.
constexpr uint64_t kReduceChunk = 16 * kKiB;

// How much of a reduction to do at a time: whole elements that end in the granule they begin in, or
// one element that does not.
uint64_t reduce_step(VirtualAddress to, uint64_t left, uint64_t element) {
  const uint64_t room = std::min({left, kReduceChunk, kGranule - to % kGranule});
  return std::max(align_down(room, element), element);
}

}  // namespace

Result<void> Transfer::check_on_own_device(VirtualAddress base, uint64_t size, unsigned device,
                                           Use use, PoolView view) {
  const auto range = VirtualRange::make(base, size);
  if (!range) {
    return Error::format(ErrorCode::kInvalidParam, "count %s runs past the end of all addresses",
                         SizeText(size).c_str());
  }
  if (!translation_.look_up(base).present()) {
    if (reservations_.has_host_memory(base)) {
      return Error::format(ErrorCode::kInvalidParam, "%p is not device memory", to_pointer(base));
    }
    return no_memory_at(translation_, reservations_, base);
  }
  US_TRY(check_on_device(*range, device, use, view));
  HazardPin pin;
  std::optional<Place> place;
  for (VirtualAddress at = range->base; at < range->end(); at = place->range.end()) {
    place = translation_.locate(at, pin, view);
    if (!place || place->location != Location{LocationKind::kDevice, device}) {
      return Error::format(ErrorCode::kInvalidParam, "%p is not memory of device %u",
                           to_pointer(at), device);
    }
  }
  return {};
}

Result<void> Transfer::check_reduction(const Reduction& reduction, unsigned device,
                                       const TransferOptions& options) {
  const PoolView view = view_of(options);
  US_TRY(check_on_own_device(reduction.to, reduction.count, device, Use::kWrite, view));
  return check_on_own_device(reduction.from, reduction.count, device, Use::kRead, view);
}

Result<void> Transfer::reduce(const Reduction& reduction, unsigned device,
                              const TransferOptions& options) {
  US_TRY(check_reduction(reduction, device, options));
  if (is_init_checked()) [[unlikely]] {
    uses_.note_read({reduction.from, reduction.count}, options.task);
    uses_.note_read({reduction.to, reduction.count}, options.task, AccessUse::kReduce);
    uses_.note_written({reduction.to, reduction.count});
  }
  alignas(64) std::byte source[kReduceChunk];
  uint64_t until_stop_is_asked = 0;
  for (uint64_t done = 0; done < reduction.count;) {
    if (until_stop_is_asked == 0) {
      US_TRY(check_stop(options, done, reduction.count));
      until_stop_is_asked = step_of(options, reduction.count - done);
    }
    const uint64_t step =
        reduce_step(reduction.to + done, reduction.count - done, size_of(reduction.operation.type));
    US_TRY(read(reduction.from + done, step, Range{.on_device = true}, source));
    US_TRY(reduce_chunk(reduction.to + done, source, step, reduction.operation));
    done += step;
    until_stop_is_asked -= std::min(until_stop_is_asked, step);
  }
  return {};
}

Result<void> Transfer::read(VirtualAddress from, uint64_t count, const Range& range, void* to) {
  for (uint64_t done = 0; done < count;) {
    HazardPin pin;
    US_TRY_ASSIGN(const Piece piece, piece_at(from + done, count - done, range, pin));
    read_piece(to_address(to) + done, piece, piece.size);
    note_read(from + done, piece);
    done += piece.size;
  }
  return {};
}

Result<void> Transfer::reduce_chunk(VirtualAddress to, const void* source, uint64_t count,
                                    const ReduceOperation& operation) {
  const Range into{.on_device = true};
  HazardPin first_pin;
  HazardPin second_pin;
  US_TRY_ASSIGN(const Piece first, piece_at(to, count, into, first_pin));
  Piece second;
  if (first.size < count) {
    US_TRY_ASSIGN(second, piece_at(to + first.size, count - first.size, into, second_pin));
  }
  US_TRY(commit(to, first));
  US_TRY(commit(to + first.size, second));
  alignas(64) std::byte target[kReduceChunk];
  // One lock for all memory: the same bytes can be at several addresses, and on several devices.
  MutexLock lock(reduce_mutex_);
  const bool is_divided = second.size != 0;
  copy_bytes(target, to_pointer(first.host), first.size);
  if (is_divided) copy_bytes(target + first.size, to_pointer(second.host), second.size);
  reduce_elements(operation, target, source, count);
  copy_bytes(to_pointer(first.host), target, first.size);
  if (is_divided) copy_bytes(to_pointer(second.host), target + first.size, second.size);
  return {};
}

}  // namespace understudy
