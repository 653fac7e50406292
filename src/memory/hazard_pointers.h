// SPDX-License-Identifier: Apache-2.0
//
// Hazard pointers: how a reader keeps a mapping, and the bytes behind it, from being taken away
// while it copies, without writing to anything that other readers write to. A reader publishes the
// mapping in a hazard pointer of its own thread; the thread that ends a mapping scans them all and
// leaves the mapping on the retire list while one of them names it.
//
// One registry per process, never destroyed. A thread's record is claimed at its first pin and
// free for another thread after its end. What the threads of its parent pin is nothing to a fork
// child: their records stay taken, and no scan looks at them.
#pragma once

#include <array>
#include <atomic>

#include "base/invariant.h"

namespace understudy {

// The hazard pointers of one thread.
struct alignas(64) HazardRecord {
  static constexpr unsigned kSlots = 4;

  std::array<std::atomic<const void*>, kSlots> slots{};
  std::atomic<bool> taken{false};
  std::atomic<unsigned> process{0};  // whose thread it is
  unsigned slots_in_use = 0;         // bit per slot; only its thread looks at it
  HazardRecord* next = nullptr;      // constant once the record is in the list
};

// That of the calling thread; null before its first pin.
extern constinit thread_local HazardRecord* own_hazard_record [[gnu::tls_model("initial-exec")]];
[[gnu::cold]] HazardRecord& claim_hazard_record();

// One of the calling thread's hazard pointers (there are kSlotsPerThread), for its lifetime.
class HazardPin {
 public:
  static constexpr unsigned kSlotsPerThread = HazardRecord::kSlots;

  HazardPin()
      : record_(own_hazard_record != nullptr ? *own_hazard_record : claim_hazard_record()),
        slot_(static_cast<unsigned>(__builtin_ctz(~record_.slots_in_use))) {
    US_INVARIANT(slot_ < kSlotsPerThread, "a thread pins more than %u mappings at once",
                 kSlotsPerThread);
    record_.slots_in_use |= 1U << slot_;
  }
  ~HazardPin() {
    clear();
    record_.slots_in_use &= ~(1U << slot_);
  }
  HazardPin(const HazardPin&) = delete;
  HazardPin& operator=(const HazardPin&) = delete;

  // Replaces what this pin holds. The caller then makes sure that the mapping was still entered.
  void publish(const void* mapping) {
    // An exchange, not a store: the second look at the table must not happen before it.
    record_.slots[slot_].exchange(mapping);
  }
  void clear() { record_.slots[slot_].store(nullptr, std::memory_order_release); }

 private:
  HazardRecord& record_;
  const unsigned slot_;
};

// From now on the calling thread's pins need no memory.
void prepare_pins();

// Whether any thread of this process pins it at this moment.
bool is_pinned(const void* mapping);
// Whether any thread pins something that lies in [begin, end).
bool is_any_pinned(const void* begin, const void* end);
// Waits until no thread does. REQUIRES: the caller pins nothing there itself.
void wait_until_unpinned(const void* begin, const void* end);

}  // namespace understudy
