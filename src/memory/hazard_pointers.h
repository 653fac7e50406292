// SPDX-License-Identifier: Apache-2.0
//
// Hazard pointers: how a reader keeps a mapping, and the bytes behind it, from being taken away
// while it copies, without writing to anything that other readers write to. A reader publishes the
// mapping in a hazard pointer of its own thread; the thread that ends a mapping scans them all and
// leaves the mapping on the retire list while one of them names it.
//
// A scan looks at the records that are *listed*, those of threads that have pinned something
// lately: a scan that finds a record idle a few times takes it off the list, and its thread puts it
// back with its next pin. So a scan costs what the threads cost that copy at this moment, however
// many there are or were.
//
// One registry per process, never destroyed. A thread's record is claimed at its first pin and
// free for another thread after its end. What the threads of its parent pin is nothing to a fork
// child.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/invariant.h"

namespace understudy {

enum class HazardListing : uint8_t {
  kUnlisted = 0,  // no scan looks at the record
  kListed = 1,
  kLeaving = 2,  // a scan takes it off the list, which ends within a few instructions
};

// The hazard pointers of one thread.
struct alignas(64) HazardRecord {
  static constexpr unsigned kSlots = 4;

  std::array<std::atomic<const void*>, kSlots> slots{};
  // From kUnlisted on it is the thread's to change, from the others the scans'.
  std::atomic<HazardListing> listing{HazardListing::kUnlisted};
  std::atomic<bool> is_used{false};         // it was, since a scan looked
  std::atomic<uint8_t> idle_scans{0};       // that found it unused, one behind the other
  unsigned slots_in_use = 0;                // bit per slot; only its thread looks at it
  std::atomic<uint64_t>* listed = nullptr;  // the words with its bit; set when it is claimed
  std::atomic<uint64_t>* taken = nullptr;
  uint64_t bit = 0;

  // Puts it on the list again. What its thread published is seen by all scans that begin behind
  // this. REQUIRES: the calling thread is that of the record.
  [[gnu::cold]] void list() noexcept;
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
  [[gnu::always_inline]] void publish(const void* mapping) {
    // An exchange, not a store: the second look at the table must not happen before it, and neither
    // may the look at the listing. A scan that takes the record off the list looks at the slots
    // between two steps: it sees the pin, or this sees the first step.
    record_.slots[slot_].exchange(mapping);
    if (record_.listing.load() != HazardListing::kListed) [[unlikely]]
      record_.list();
    record_.is_used.store(true, std::memory_order_relaxed);
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
