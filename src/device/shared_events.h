// SPDX-License-Identifier: Apache-2.0
//
// The events that processes of a server share. Each record of one has a number; the process that
// made it says when its stream has got there. Any thread may call anything.
#pragma once

#include <cstdint>
#include <optional>

#include "base/deadline.h"
#include "base/result.h"
#include "device/ledger.h"
#include "device/ledger_table.h"

namespace understudy {

enum class RecordState : uint8_t {
  kNone,  // never recorded
  kPending,
  kReached,
  kLost,  // its process ended before its stream got there
};

class SharedEvents {
 public:
  explicit SharedEvents(Ledger& ledger) : ledger_(ledger) {}

  // Makes one, which this process holds.
  Result<ShareToken> add();
  // This process holds it from now on. False if there is no such event.
  Result<bool> hold(ShareToken token);
  // It holds it no longer.
  void drop(uint32_t number);
  // Nobody new can hold it from now on. By its maker.
  void close(uint32_t number);

  // A record that a stream of this process will reach later. Its number, which grows by one each
  // time. Refused if a record of another stream has the place that it would take.
  Result<uint64_t> record(uint32_t number, uint64_t stream);
  void reach(uint32_t number, uint64_t record);
  uint64_t latest(uint32_t number) const;
  RecordState state(uint32_t number, uint64_t record) const;
  // Sleeps until something happens to the event, at most until the deadline.
  void sleep(uint32_t number, uint64_t record, Deadline deadline) const;

 private:
  Ledger& ledger_;
};

// For the ledger itself, under its lock.
void drop_event_holds(Ledger& ledger, unsigned slot);
void repair_events(Ledger& ledger);

}  // namespace understudy
