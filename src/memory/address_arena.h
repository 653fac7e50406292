// SPDX-License-Identifier: Apache-2.0
//
// Device addresses for allocations. They come from a few large ranges that the reservation index
// keeps out of everyone's way, so that an allocation costs no system call and never meets a
// reservation. Any thread may call anything.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/virtual_range.h"
#include "memory/extent_map.h"
#include "memory/reservation_index.h"

namespace understudy {

class AddressArena {
 public:
  explicit AddressArena(ReservationIndex& reservations, ArenaHold hold = ArenaHold::kAnyone)
      : reservations_(reservations), hold_(hold) {}

  // A range of whole granules at a multiple of `alignment`, and the arena it lies in.
  Result<Arena> take(uint64_t size, uint64_t alignment);
  void give_back(VirtualRange range) noexcept;
  // Calls visit(range) for each range that allocations may lie in, without a lock.
  template <typename Visit>
  void for_each_range(Visit visit) const {
    for (size_t n = 0;; ++n) {
      const std::optional<VirtualRange> range = range_at(n);
      if (!range) return;
      visit(*range);
    }
  }

 private:
  struct Part {
    Arena arena;
    ExtentMap free;
  };

  // Ranges are added, never taken away.
  std::optional<VirtualRange> range_at(size_t n) const;
  std::optional<Arena> take_from_parts(uint64_t size, uint64_t alignment);

  ReservationIndex& reservations_;
  const ArenaHold hold_;
  Mutex growth_mutex_{LockRank::kArenaGrowth};
  mutable Mutex mutex_{LockRank::kArena};
  std::vector<Part> parts_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
