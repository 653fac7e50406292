// SPDX-License-Identifier: Apache-2.0
//
// Copies and sets between device memory, host memory and anything in between. The direction
// follows from the addresses: an address that the MMU knows is device memory, any other one is
// ordinary host memory and trusted, unless no host memory can be there. The whole range is checked
// before the first byte moves; while bytes move, the mapping they belong to is pinned.
// Rules: COPY, COPY2D, SET, RESV-18, RESV-20, NOACC-02. Any thread may call anything.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/virtual_range.h"
#include "device/settings.h"
#include "memory/address_space.h"
#include "memory/storage_set.h"

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

// What is known of the two sides of a transfer.
enum class Sides : uint8_t {
  kAsFound,   // nothing: whatever the addresses are when the bytes move
  kDevices,   // what the software MMU translates, on both sides or on the one there is
  kFromHost,  // the source is host memory that the caller keeps
  kToHost,    // the target is
};

// Someone who may want a transfer to end early.
class Stopper {
 public:
  virtual bool wants_stop() const = 0;

 protected:
  ~Stopper() = default;
};

// How bytes are moved. The default is what a caller does who waits for them; streams know the sides
// of their tasks, and may move bytes between devices that a caller may not (RESV-19, RESV-20).
struct Conduct {
  Sides sides = Sides::kAsFound;
  const Stopper* stopper = nullptr;  // asked every 64 MiB or so

  bool is_queued() const { return sides != Sides::kAsFound; }
  bool target_is_mapped() const { return sides == Sides::kDevices || sides == Sides::kFromHost; }
  bool source_is_mapped() const { return sides == Sides::kDevices || sides == Sides::kToHost; }
};

class Transfer {
 public:
  Transfer(const Settings& settings, AddressSpace& space, StorageSet& storages)
      : settings_(settings), space_(space), storages_(storages) {}

  // `device` is the one on whose behalf it happens. REQUIRES: count > 0.
  Result<void> copy(VirtualAddress to, VirtualAddress from, uint64_t count, unsigned device,
                    const Conduct& conduct = {});
  Result<void> set(VirtualAddress to, uint8_t value, uint64_t count, unsigned device,
                   const Conduct& conduct = {});
  // Sets `count` words of 32 bits. REQUIRES: `to` is a multiple of 4.
  Result<void> set_words(VirtualAddress to, uint32_t value, uint64_t count, unsigned device,
                         const Conduct& conduct = {});
  // Copies rows between a device and the host; queued, also between devices.
  // REQUIRES: width and height > 0, width <= pitches, width * height is a number.
  Result<void> copy_rows(const PlaneCopy& asked, unsigned device, const Conduct& conduct = {});

 private:
  enum class Use : uint8_t { kRead, kWrite };

  // One side of a transfer, as far as its bytes lie together on the host.
  struct Piece {
    VirtualAddress host = 0;
    uint64_t size = 0;
    Store* store = nullptr;     // null: ordinary host memory, or known to be warm
    uint64_t store_offset = 0;  // of `host`, if there is a store
    PageEntry entry;            // not present: ordinary host memory
  };

  // What a whole range is, found before anything moves.
  struct Range {
    bool on_device = false;
    bool mapped = false;  // by the program, not allocated
    unsigned owner = 0;
    uint64_t whole = 0;  // tells allocations and reservations apart
  };

  // The common case: a device's bytes in one granule that the MMU resolves quickly, and the other
  // side ordinary host memory. False, and nothing done, if it is not that.
  bool copy_quickly(VirtualAddress to, VirtualAddress from, uint64_t count);
  bool set_quickly(VirtualAddress to, uint8_t value, uint64_t count);
  // Whether the range is host memory without a doubt.
  bool is_plainly_host(VirtualRange range) const;

  // `is_mapped`: the software MMU must know it.
  Result<Range> check(VirtualRange range, unsigned device, Use use, bool is_mapped);
  // The same for each row of one side.
  Result<Range> check_rows(VirtualAddress base, uint64_t pitch, const PlaneCopy& copy,
                           unsigned device, Use use, bool is_mapped);
  Result<Range> check_on_device(VirtualRange range, unsigned device, Use use);
  Result<void> check_host(VirtualRange range);
  struct Pair {
    Range into;
    Range out;
  };
  Result<Pair> check_pair(VirtualAddress to, VirtualAddress from, uint64_t count, unsigned device,
                          const Conduct& conduct);
  // The piece at an address, at most `limit` bytes. Pinned until the pin is used again.
  Result<Piece> piece_at(VirtualAddress address, uint64_t limit, const Range& range,
                         HazardPin& pin);
  // Moves the first bytes of what is left to move, at most `count`. Returns how many.
  Result<uint64_t> copy_piece(VirtualAddress to, const Range& into, VirtualAddress from,
                              const Range& out, uint64_t count);
  // Makes sure that the bytes of a piece exist, before they are written.
  Result<void> warm(VirtualAddress address, const Piece& piece);
  void read_piece(VirtualAddress to_host, const Piece& from, uint64_t count);
  // Calls fill(host address, bytes) for the pieces of a range that may be written.
  template <typename Fill>
  Result<void> fill(VirtualAddress to, uint64_t bytes, unsigned device, const Conduct& conduct,
                    Fill fill);

  const Settings& settings_;
  AddressSpace& space_;
  StorageSet& storages_;
};

}  // namespace understudy
