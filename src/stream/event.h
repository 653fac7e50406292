// SPDX-License-Identifier: Apache-2.0
//
// An event: which task of which stream it was recorded behind last. That the stream has done the
// task is all there is to know, so a wait that is queued does not need the event any more. Slots
// are type-stable, and `sequence` goes on counting when a slot is used for another event.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/deadline.h"
#include "base/handle.h"
#include "base/mutex.h"
#include "stream/wait_links.h"

namespace understudy {

class SharedEventLink;

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

struct NumberedRecord {
  Record record;
  uint64_t sequence = 0;  // which of the event's records it is, or comes after
};

struct Event {
  std::atomic<uint32_t> state{0};  // a SlotState
  uint32_t index = 0;
  uint32_t pool_next = 0;
  // Constant while it lives; atomic for threads that hold a stale handle.
  std::atomic<uint32_t> device{0};
  std::atomic<EventFamily> family{EventFamily::kClassic};
  std::atomic<bool> can_reset{false};  // a stream may wait for a record that is yet to come
  std::atomic<bool> has_time{false};
  std::atomic<bool> is_limited{false};  // counts against the limit of its device

  // Events for other processes: whether this is one of another process, and the hold on it.
  std::atomic<bool> is_opened{false};
  SharedEventLink* shared US_GUARDED_BY(mutex) = nullptr;
  uint64_t shared_record US_GUARDED_BY(mutex) = 0;  // the number that `record` has there

  Mutex mutex{LockRank::kEvent};
  std::optional<Record> record US_GUARDED_BY(mutex);
  // Records since streams began to wait for one that was yet to come, as long as any does.
  std::vector<NumberedRecord> awaited_records US_GUARDED_BY(mutex);
  unsigned unbound_tasks US_GUARDED_BY(mutex) = 0;
  unsigned queued_waits US_GUARDED_BY(mutex) = 0;  // that are not over, of classic events
  // A reset that is queued on a stream. What is queued behind it there finds no record.
  NumberedRecord queued_reset US_GUARDED_BY(mutex);
  // When the record of this number was reached.
  Deadline time US_GUARDED_BY(mutex);
  uint64_t time_sequence US_GUARDED_BY(mutex) = 0;

  std::atomic<uint64_t> sequence{0};  // number of the last record; changed under the lock

  ParkedStreams unbound_waits;  // until the next record

  SlotLife life() const { return SlotState::life(state.load(std::memory_order_acquire)); }
};

// An event as a caller remembers it. The functions REQUIRE that it was valid once, and tell of
// another event if the slot is used again.
struct EventReference {
  Event* event = nullptr;
  uint32_t state = 0;

  uint32_t id() const { return event->index; }
  EventFamily family() const { return event->family.load(); }
  // Whether another process made it.
  bool is_opened() const { return event->is_opened.load(); }
};

}  // namespace understudy
