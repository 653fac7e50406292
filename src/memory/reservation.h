// SPDX-License-Identifier: Apache-2.0
//
// A range of device addresses that holds nothing itself. Its lock covers every change to the
// mappings inside it. Slots are type-stable: a thread with an old pointer takes the lock and sees
// that the reservation is not alive, or not the one it looked for.
#pragma once

#include <cstdint>

#include "base/mutex.h"
#include "base/virtual_range.h"

namespace understudy {

// The page type a reservation was made for; it counts only where the configuration says so.
enum class ReservedPages : uint8_t { kCommon, kHuge };

// Whether the program reserved a range, or it is where allocations are placed, or neither.
enum class ReservationUse : uint8_t { kNone, kProgram, kAllocations };

// Which blocks may lie side by side in a reservation.
enum class ReservationMix : uint8_t {
  kOneOwner,  // those of one device or of the host, and either own or imported ones
  kAll,
};

// Whose blocks are mapped into a reservation: one device's, or the host's; this process's own or
// imported ones.
struct ReservationOwner {
  static constexpr uint32_t kNobody = ~0U;
  static constexpr uint32_t kHost = ~1U;
  uint32_t value = kNobody;
  bool imported = false;
  friend bool operator==(const ReservationOwner&, const ReservationOwner&) = default;
};

// In a cache line of its own: a call finds it by its address, and looks at nothing beside it.
struct alignas(64) Reservation {
  Mutex mutex{LockRank::kReservation};
  uint32_t index = 0;
  uint32_t pool_next = 0;
  VirtualRange range US_GUARDED_BY(mutex);     // empty when dead
  bool occupied US_GUARDED_BY(mutex) = false;  // the host's address space holds the range as well
  ReservationUse use US_GUARDED_BY(mutex) = ReservationUse::kNone;
  ReservedPages pages US_GUARDED_BY(mutex) = ReservedPages::kCommon;
  ReservationMix mix US_GUARDED_BY(mutex) = ReservationMix::kOneOwner;
  uint64_t mappings US_GUARDED_BY(mutex) = 0;
  ReservationOwner owner US_GUARDED_BY(mutex);
};
static_assert(sizeof(Reservation) == 64);

}  // namespace understudy
