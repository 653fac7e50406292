// SPDX-License-Identifier: Apache-2.0
#include "device/shared_events.h"

#include <algorithm>

#include "platform/futex.h"

namespace understudy {

namespace {

using Table = EventTableTraits;

constexpr uint64_t kReachedBit = 1;

SharedEvent::Record& place_of(SharedEvent& event, uint64_t record) {
  return event.records[record % SharedEvent::kRecords];
}

void note_change(SharedEvent& event) {
  event.changes.fetch_add(1);
  platform::wake_all_processes(event.changes);
}

}  // namespace

Result<ShareToken> SharedEvents::add() {
  const uint64_t secret = make_secret();
  US_TRY_ASSIGN(const LedgerLock lock, ledger_.lock());
  US_TRY_ASSIGN(const uint32_t number, take_entry<Table>(ledger_));
  SharedEvent& event = ledger_.event(number);
  for (SharedEvent::Record& each : event.records) {
    each.word.store(0);
    each.over.store(0);
  }
  event.latest.store(0);
  event.owner = static_cast<uint16_t>(ledger_.own_slot());
  event.holders.add(ledger_.own_slot());
  ++ledger_.own().holds;
  ++ledger_.own().exports;
  event.live.store(1);
  event.secret.store(secret);
  return ShareToken(number, secret);
}

Result<bool> SharedEvents::hold(ShareToken token) {
  US_TRY_ASSIGN(const LedgerLock lock, ledger_.lock());
  SharedEvent* const event = find_entry<Table>(ledger_, token);
  if (event == nullptr || !ledger_.is_slot_alive(event->owner)) {
    return false;
  }
  if (!event->holders.has(ledger_.own_slot())) {
    event->holders.add(ledger_.own_slot());
    ++ledger_.own().holds;
  }
  return true;
}

void SharedEvents::drop(uint32_t number) {
  const Result<LedgerLock> lock = ledger_.lock();
  if (!lock.ok()) return;  // it goes with the process
  SharedEvent& event = ledger_.event(number);
  event.holders.remove(ledger_.own_slot());
  --ledger_.own().holds;
  if (event.holders.empty()) free_entry<Table>(ledger_, number);
}

void SharedEvents::close(uint32_t number) { ledger_.event(number).secret.store(0); }

Result<uint64_t> SharedEvents::record(uint32_t number, uint64_t stream) {
  US_TRY_ASSIGN(const LedgerLock lock, ledger_.lock());
  SharedEvent& event = ledger_.event(number);
  const uint64_t record = event.latest.load() + 1;
  SharedEvent::Record& place = place_of(event, record);
  // Records of one stream are reached in their order, so they may follow each other in a place;
  // those of several streams may not.
  const bool is_pending = place.word.load() != 0 && (place.word.load() & kReachedBit) == 0;
  const ProcessTag process(place.process.load());
  const bool is_same_stream = process == ledger_.own_tag() && place.stream.load() == stream;
  if (is_pending && !is_same_stream && ledger_.is_alive(process)) {
    return Error::format(ErrorCode::kOutOfEvents,
                         "the event was recorded %u times since another stream was to reach it",
                         SharedEvent::kRecords);
  }
  if (!is_pending || !is_same_stream) place.over.store(place.word.load() >> 1);
  place.process.store(ledger_.own_tag().word());
  place.stream.store(stream);
  place.word.store(record << 1);
  event.latest.store(record);
  return record;
}

void SharedEvents::reach(uint32_t number, uint64_t record) {
  SharedEvent& event = ledger_.event(number);
  SharedEvent::Record& place = place_of(event, record);
  uint64_t word = record << 1;
  if (!place.word.compare_exchange_strong(word, word | kReachedBit)) {
    // A later record of the same stream has the place by now.
    uint64_t over = place.over.load();
    while (over < record && !place.over.compare_exchange_weak(over, record)) {
    }
  }
  note_change(event);
}

uint64_t SharedEvents::latest(uint32_t number) const { return ledger_.event(number).latest.load(); }

RecordState SharedEvents::state(uint32_t number, uint64_t record) const {
  if (record == 0) return RecordState::kNone;
  SharedEvent::Record& place = place_of(ledger_.event(number), record);
  const uint64_t process = place.process.load();
  // A later record may have the place.
  const uint64_t latest = place.word.load() >> 1;
  if (latest > record && place.over.load() >= record) return RecordState::kReached;
  if ((place.word.load() & kReachedBit) != 0) return RecordState::kReached;
  if (ledger_.is_alive(ProcessTag(process)) || place.process.load() != process) {
    return RecordState::kPending;
  }
  // It may have been reached just before its process ended.
  return (place.word.load() & kReachedBit) != 0 ? RecordState::kReached : RecordState::kLost;
}

void SharedEvents::sleep(uint32_t number, uint64_t record, Deadline deadline) const {
  // Nobody wakes us when the other process dies.
  constexpr std::chrono::milliseconds kLook(50);
  const SharedEvent& event = ledger_.event(number);
  const uint32_t seen = event.changes.load();
  if (state(number, record) != RecordState::kPending) return;
  platform::sleep_on_shared(event.changes, seen, std::min(deadline, Clock::now() + kLook));
}

void drop_event_holds(Ledger& ledger, unsigned slot) {
  for (uint32_t number = 0; number < ledger.header().events.high.load(); ++number) {
    SharedEvent& event = ledger.event(number);
    if (event.live.load() == 0) continue;
    if (event.owner == slot) event.secret.store(0);
    if (!event.holders.has(slot)) continue;
    event.holders.remove(slot);
    if (event.holders.empty()) free_entry<Table>(ledger, number);
  }
}

void repair_events(Ledger& ledger) {
  const uint32_t slots = ledger.header().slots.load();
  for (uint32_t number = 0; number < ledger.header().events.high.load(); ++number) {
    SharedEvent& event = ledger.event(number);
    if (event.live.load() == 0) continue;
    if (event.holders.empty()) {
      event.live.store(0);
      continue;
    }
    for (unsigned slot = 0; slot < slots; ++slot) {
      if (event.holders.has(slot)) ++ledger.slot(slot).holds;
    }
  }
  relist_free_entries<Table>(ledger);
}

}  // namespace understudy
