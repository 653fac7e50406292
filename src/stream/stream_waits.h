// SPDX-License-Identifier: Apache-2.0
//
// The last waits of a stream for other streams, for StreamOrder.
#pragma once

#include <array>
#include <cstdint>

namespace understudy {

struct Stream;

struct NotedWait {
  Stream* before = nullptr;
  uint64_t position = 0;  // what it waits for there
  uint64_t since = 0;     // tasks of the waiting stream behind this one come later
  uint64_t wait = 0;      // the task that waits; 0 if it was done when it was noted
};

struct RecentWaits {
  std::array<NotedWait, 8> waits;  // one for each other stream
  unsigned next = 0;               // the one to be replaced
};

}  // namespace understudy
