// SPDX-License-Identifier: Apache-2.0
//
// An event: which task of which stream it was recorded behind last. That the stream has done the
// task is all there is to know, so nobody who waits needs the event any more. Slots are
// type-stable, and `sequence` goes on counting when a slot is used for another event.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/deadline.h"
#include "base/handle.h"
#include "base/mutex.h"
#include "stream/watch_list.h"

namespace understudy {

enum class EventFamily : uint8_t {
  kClassic,
  kEx,   // recorded and waited for again and again without a reset
  kIpc,  // the same, for other processes
};

// What an event is recorded behind.
struct Record {
  Stream* stream = nullptr;
  uint64_t position = 0;
};

struct Event {
  std::atomic<uint32_t> state{0};  // generation of the slot, times two, plus one while it lives
  uint32_t index = 0;
  uint32_t pool_next = 0;
  // Constant while it lives; atomic for those who hold a stale handle.
  std::atomic<uint32_t> device{0};
  std::atomic<EventFamily> family{EventFamily::kClassic};
  std::atomic<bool> can_reset{false};  // a stream may wait for a record that is yet to come
  std::atomic<bool> has_time{false};

  Mutex mutex{LockRank::kEvent};
  std::optional<Record> record US_GUARDED_BY(mutex);
  // When the record of this number was reached.
  Deadline time US_GUARDED_BY(mutex);
  uint64_t time_sequence US_GUARDED_BY(mutex) = 0;

  std::atomic<uint64_t> sequence{0};      // number of the last record; changed under the lock
  std::atomic<uint32_t> queued_waits{0};  // that are not over, of classic events

  // Streams parked until the next record: the list is under the lock of Waiting.
  std::atomic<uint32_t> unbound_waits{0};
  WatchList waiters;

  static bool alive(uint32_t state) { return state % 2 == 1; }
  static uint32_t generation(uint32_t state) {
    return state / 2 & ((1U << HandleParts::kGenerationBits) - 1);
  }
};

// An event as someone remembers it.
struct EventReference {
  Event* event = nullptr;
  uint32_t state = 0;
};

}  // namespace understudy
