// SPDX-License-Identifier: Apache-2.0
//
// The link to an event that processes share.
#pragma once

#include <cstdint>

#include "base/deadline.h"
#include "base/result.h"
#include "server/event_table.h"
#include "stream/shared_link.h"

namespace understudy {

class SharedEventLink final : public SharedLink<SharedEventLink, EventTable> {
 public:
  using SharedLink::SharedLink;

  Result<uint64_t> record(uint64_t stream) { return table().record(number(), stream); }
  void reach(uint64_t record) { table().reach(number(), record); }
  uint64_t latest() const { return table().latest(number()); }
  RecordState state(uint64_t record) const { return table().state(number(), record); }
  // False if the deadline came first.
  bool wait(uint64_t record, Deadline deadline) const;
};

using SharedEventLinks = SharedLinks<SharedEventLink>;

}  // namespace understudy
