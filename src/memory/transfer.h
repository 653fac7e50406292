// SPDX-License-Identifier: Apache-2.0
//
// Copies and sets between device memory, host memory and anything in between. The direction
// follows from the addresses: an address that the MMU knows is device memory. Any other one is
// host memory, and trusted where the host was seen to have memory; in doubt the kernel is asked, so
// that device addresses without memory are refused (GEN-09). The whole range is checked
// before the first byte moves; while bytes move, the mapping they belong to is pinned.
// Rules: COPY, COPY2D, SET, RESV-18, RESV-20, NOACC-02. Any thread may call anything.
#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "base/result.h"
#include "base/virtual_range.h"
#include "device/settings.h"
#include "memory/address_space.h"
#include "memory/backing_pools.h"
#include "memory/copy_engine.h"
#include "memory/reduction.h"
#include "memory/transfer_uses.h"
#include "observe/access_map.h"

namespace understudy {

// Rows of `width` bytes, `height` of them, whose starts are a pitch apart on either side.
struct PlaneCopy {
  VirtualAddress to = 0;
  uint64_t to_pitch = 0;
  VirtualAddress from = 0;
  uint64_t from_pitch = 0;
  uint64_t width = 0;
  uint64_t height = 0;
};

// `count` bytes of elements that are combined with others.
struct Reduction {
  VirtualAddress to = 0;
  VirtualAddress from = 0;
  uint64_t count = 0;
  ReduceOperation operation{};
};

// What is known of the two sides of a transfer.
enum class Sides : uint8_t {
  kAsFound,   // nothing: whatever the addresses are when the bytes move
  kDevices,   // what the software MMU translates, on both sides or on the one there is
  kFromHost,  // the source is host memory that the caller keeps
  kToHost,    // the target is
};

// Tells a transfer to end early.
class CancelToken {
 public:
  virtual bool is_cancelled() const = 0;

 protected:
  ~CancelToken() = default;
};

// The default is a synchronous transfer. Streams know the sides of their tasks, and may move bytes
// between devices that a synchronous transfer may not (RESV-19, RESV-20).
struct TransferOptions {
  Sides sides = Sides::kAsFound;
  const CancelToken* cancel = nullptr;  // asked every 64 MiB or so
  StreamTask task = {};                 // that it is for, as checks know it; of a call: none
  // It only looks whether something was written yet, and checks do not hear of it.
  bool is_look = false;

  bool is_queued() const { return sides != Sides::kAsFound; }
  bool target_is_mapped() const { return sides == Sides::kDevices || sides == Sides::kFromHost; }
  bool source_is_mapped() const { return sides == Sides::kDevices || sides == Sides::kToHost; }
};

// Those of a call.
inline constexpr TransferOptions kCallTransfer;

class Transfer {
 public:
  Transfer(const Settings& settings, AddressSpace& space, BackingPools& pools)
      : settings_(settings),
        translation_(space.translation()),
        reservations_(space.reservations()),
        managed_(space.managed()),
        pools_(pools),
        uses_(space.translation()) {}

  // `device` is the one on whose behalf it happens. REQUIRES: count > 0.
  Result<void> copy(VirtualAddress to, VirtualAddress from, uint64_t count, unsigned device,
                    const TransferOptions& options = kCallTransfer) {
    if (copy_quickly(to, from, count, options)) [[likely]]
      return {};
    return copy_carefully(to, from, count, device, options);
  }
  Result<void> set(VirtualAddress to, uint8_t value, uint64_t count, unsigned device,
                   const TransferOptions& options = kCallTransfer) {
    if (set_quickly(to, value, count)) [[likely]]
      return {};
    return set_carefully(to, value, count, device, options);
  }
  // Sets `count` words of 32 bits. REQUIRES: `to` is a multiple of 4.
  Result<void> set_words(VirtualAddress to, uint32_t value, uint64_t count, unsigned device,
                         const TransferOptions& options = kCallTransfer);
  // Copies rows between a device and the host; queued, also between devices.
  // REQUIRES: width and height > 0, width <= pitches, width * height is a number.
  Result<void> copy_rows(const PlaneCopy& asked, unsigned device,
                         const TransferOptions& options = kCallTransfer);

  // Whether both sides of a reduction are memory of that device (RED-06).
  Result<void> check_reduction(const Reduction& reduction, unsigned device,
                               const TransferOptions& options = kCallTransfer);
  // Reductions of several threads into the same elements lose nothing (RED-10).
  // REQUIRES: whole elements.
  Result<void> reduce(const Reduction& reduction, unsigned device, const TransferOptions& options);

  CopyEngine& copy_engine() { return engine_; }

 private:
  enum class Use : uint8_t { kRead, kWrite };

  // One side of a transfer, as far as its bytes lie together on the host.
  struct Piece {
    VirtualAddress host = 0;
    uint64_t size = 0;
    // Null: ordinary host memory, managed memory, or known to be committed.
    BackingFile* backing = nullptr;
    uint64_t file_offset = 0;  // of `host`, if there is a backing file
    PageEntry entry;           // not present: ordinary host memory
  };

  // What a whole range is, found before anything moves.
  struct Range {
    bool on_device = false;
    bool mapped = false;   // by the program, not allocated
    bool managed = false;  // a host's memory as much as a device's
    uint64_t devices = 0;  // bit per device that memory is on; none for memory of the host
    uint64_t whole = 0;    // tells allocations and reservations apart
  };

  // The check `init` hears what a transfer will read and write, if it is a legal one.
  [[gnu::cold]] Result<void> copy_noted(VirtualAddress to, VirtualAddress from, uint64_t count,
                                        unsigned device, const TransferOptions& options);
  [[gnu::cold]] Result<void> set_noted(VirtualAddress to, uint8_t value, uint64_t count,
                                       unsigned device, const TransferOptions& options);
  [[gnu::cold]] void note_fill(VirtualAddress to, uint64_t count, unsigned device,
                               const TransferOptions& options);

  // The common cases, without a check that is to hear of it: a device's bytes in one granule that
  // the MMU resolves quickly, and on the other side ordinary host memory, or such bytes of the same
  // device. False, and nothing done, if it is neither.
  bool copy_quickly(VirtualAddress to, VirtualAddress from, uint64_t count,
                    const TransferOptions& options);
  bool copy_within_quickly(VirtualAddress to, const PageTable::Look& into, VirtualAddress from,
                           uint64_t count);
  bool set_quickly(VirtualAddress to, uint8_t value, uint64_t count);
  // Everything else, out of the way of the common case.
  [[gnu::noinline]] Result<void> copy_carefully(VirtualAddress to, VirtualAddress from,
                                                uint64_t count, unsigned device,
                                                const TransferOptions& options);
  [[gnu::noinline]] Result<void> set_carefully(VirtualAddress to, uint8_t value, uint64_t count,
                                               unsigned device, const TransferOptions& options);
  Result<void> copy_in_pieces(VirtualAddress to, VirtualAddress from, uint64_t count,
                              unsigned device, const TransferOptions& options);
  Result<void> set_in_pieces(VirtualAddress to, uint8_t value, uint64_t count, unsigned device,
                             const TransferOptions& options);
  // Whether the range is host memory without a doubt.
  bool is_plainly_host(VirtualRange range) const;

  // How a side of a transfer is looked up.
  struct SideOptions {
    bool is_mapped;  // the software MMU must know it
    PoolView view;
  };
  static SideOptions target_options(const TransferOptions& options) {
    return {options.target_is_mapped(), view_of(options)};
  }
  static SideOptions source_options(const TransferOptions& options) {
    return {options.source_is_mapped(), view_of(options)};
  }
  static PoolView view_of(const TransferOptions& options) {
    return options.is_queued() ? PoolView::kSegments : PoolView::kAllocations;
  }
  Result<Range> check(VirtualRange range, unsigned device, Use use, const SideOptions& options);
  // The same for each row of one side.
  Result<Range> check_rows(VirtualAddress base, uint64_t pitch, const PlaneCopy& copy,
                           unsigned device, Use use, const SideOptions& options);
  // Copies the first rows, as many as lie in one committed granule on either side: those are found
  // once. Returns how many, which may be none.
  Result<uint64_t> copy_first_rows(const PlaneCopy& rows, const Range& into, const Range& out);
  Result<Range> check_on_device(VirtualRange range, unsigned device, Use use, PoolView view);
  Result<void> check_host(VirtualRange range);
  struct Pair {
    Range into;
    Range out;
  };
  Result<Pair> check_pair(VirtualAddress to, VirtualAddress from, uint64_t count, unsigned device,
                          const TransferOptions& options);
  // The piece at an address, at most `limit` bytes. Pinned until the pin is used again.
  Result<Piece> piece_at(VirtualAddress address, uint64_t limit, const Range& range,
                         HazardPin& pin);
  // Moves the first bytes of what is left to move, at most `count`. Returns how many.
  Result<uint64_t> copy_piece(VirtualAddress to, const Range& into, VirtualAddress from,
                              const Range& out, uint64_t count);
  // Makes sure that the bytes of a piece exist, before they are written.
  Result<void> commit(VirtualAddress address, const Piece& piece);
  Result<void> commit_managed(VirtualAddress address, const Piece& piece);
  void note_committed(VirtualAddress address, const Piece& piece);
  // Who reads few bytes again and again shall not have to ask for them each time.
  void note_read(VirtualAddress address, const Piece& piece);
  void read_piece(VirtualAddress to_host, const Piece& from, uint64_t count);
  Result<void> check_on_own_device(VirtualAddress base, uint64_t size, unsigned device, Use use,
                                   PoolView view);
  Result<void> read(VirtualAddress from, uint64_t count, const Range& range, void* to);
  // Combines at most a few KiB, of which all but one element lie in one granule.
  Result<void> reduce_chunk(VirtualAddress to, const void* source, uint64_t count,
                            const ReduceOperation& operation);
  // Calls fill(host address, bytes) for the pieces of a range that may be written.
  template <typename Fill>
  Result<void> fill(VirtualAddress to, uint64_t bytes, unsigned device,
                    const TransferOptions& options, Fill fill);

  const Settings& settings_;
  const Translation& translation_;
  Reservations& reservations_;
  ManagedMemory& managed_;
  BackingPools& pools_;
  TransferUses uses_;
  CopyEngine engine_;
  Mutex reduce_mutex_{LockRank::kReduction};
};

}  // namespace understudy
