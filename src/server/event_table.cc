// SPDX-License-Identifier: Apache-2.0
#include "server/event_table.h"

#include <algorithm>

#include "base/kill_point.h"
#include "platform/futex.h"

namespace understudy {

namespace {

constexpr uint64_t kReachedBit = 1;

EventEntry::Record& place_of(EventEntry& event, uint64_t record) {
  return event.records[record % EventEntry::kRecords];
}

void note_change(EventEntry& event) {
  event.changes.fetch_add(1);
  platform::wake_all_processes(event.changes);
}

}  // namespace

EventTable::EventTable(LedgerFile& file, ProcessSlots& slots)
    : HeldTable(file, slots, file.header().events, file.events(), kMostEvents) {}

Result<ShareToken> EventTable::add(Deadline deadline) {
  return add_entry(
      [](EventEntry& event) {
        for (EventEntry::Record& each : event.records) {
          each.word.store(0);
          each.over.store(0);
        }
        event.latest.store(0);
      },
      deadline);
}

Result<uint64_t> EventTable::record(uint32_t number, uint64_t stream, Deadline deadline) {
  const LedgerLock lock(slots_.mutex(), deadline);
  US_TRY(lock.taken());
  EventEntry& event = entries_[number];
  const uint64_t record = event.latest.load() + 1;
  EventEntry::Record& place = place_of(event, record);
  // Records of one stream are reached in their order, so they may follow each other in a place;
  // those of several streams may not.
  const bool is_pending = place.word.load() != 0 && (place.word.load() & kReachedBit) == 0;
  const ProcessTag process(place.process.load());
  const bool is_same_stream = process == slots_.own_tag() && place.stream.load() == stream;
  if (is_pending && !is_same_stream && slots_.is_alive(process)) {
    return Error::format(ErrorCode::kOutOfEvents,
                         "the event was recorded %u times since another stream was to reach it",
                         EventEntry::kRecords);
  }
  if (!is_pending || !is_same_stream) place.over.store(place.word.load() >> 1);
  US_KILL_POINT("event.record.over");
  place.process.store(slots_.own_tag().word());
  place.stream.store(stream);
  US_KILL_POINT("event.record.process");
  place.word.store(record << 1);
  US_KILL_POINT("event.record.word");
  event.latest.store(record);
  US_KILL_POINT("event.record.latest");
  return record;
}

void EventTable::reach(uint32_t number, uint64_t record) {
  EventEntry& event = entries_[number];
  EventEntry::Record& place = place_of(event, record);
  uint64_t word = record << 1;
  if (!place.word.compare_exchange_strong(word, word | kReachedBit)) {
    // A later record of the same stream has the place by now.
    uint64_t over = place.over.load();
    while (over < record && !place.over.compare_exchange_weak(over, record)) {
    }
  }
  note_change(event);
}

uint64_t EventTable::latest(uint32_t number) const { return entries_[number].latest.load(); }

RecordState EventTable::state(uint32_t number, uint64_t record) const {
  if (record == 0) return RecordState::kNone;
  EventEntry::Record& place = place_of(entries_[number], record);
  const uint64_t process = place.process.load();
  // A later record may have the place.
  const uint64_t latest = place.word.load() >> 1;
  if (latest > record && place.over.load() >= record) return RecordState::kReached;
  if ((place.word.load() & kReachedBit) != 0) return RecordState::kReached;
  if (slots_.is_alive(ProcessTag(process)) || place.process.load() != process) {
    return RecordState::kPending;
  }
  // It may have been reached just before its process ended.
  return (place.word.load() & kReachedBit) != 0 ? RecordState::kReached : RecordState::kLost;
}

void EventTable::sleep(uint32_t number, uint64_t record, Deadline deadline) const {
  // A process that dies wakes no one.
  constexpr std::chrono::milliseconds kLook(50);
  const EventEntry& event = entries_[number];
  const uint32_t seen = event.changes.load();
  if (state(number, record) != RecordState::kPending) return;
  platform::sleep_on_shared(event.changes, seen, std::min(deadline, Clock::now() + kLook));
}

}  // namespace understudy
