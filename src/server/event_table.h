// SPDX-License-Identifier: Apache-2.0
//
// The events that processes of a server share. Each record of one has a number; the process that
// made it says when its stream has got there. Any thread may call anything.
#pragma once

#include <cstdint>

#include "base/deadline.h"
#include "base/result.h"
#include "server/held_table.h"
#include "server/ledger_file.h"
#include "server/process_slots.h"

namespace understudy {

enum class RecordState : uint8_t {
  kNone,  // never recorded
  kPending,
  kReached,
  kLost,  // its process ended before its stream got there
};

class EventTable final : public HeldTable<EventEntry> {
 public:
  EventTable(LedgerFile& file, ProcessSlots& slots);

  // Makes one, which this process holds.
  Result<ShareToken> add(Deadline deadline = ledger_deadline());

  // A record that a stream of this process will reach later. Its number, which grows by one each
  // time. Refused if a record of another stream has the place that it would take.
  Result<uint64_t> record(uint32_t number, uint64_t stream, Deadline deadline = ledger_deadline());
  void reach(uint32_t number, uint64_t record);
  uint64_t latest(uint32_t number) const;
  RecordState state(uint32_t number, uint64_t record) const;
  // Sleeps until something happens to the event, at most until the deadline.
  void sleep(uint32_t number, uint64_t record, Deadline deadline) const;
};

}  // namespace understudy
