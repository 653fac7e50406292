// SPDX-License-Identifier: Apache-2.0
//
// Streams and events of a process, put together by hand on top of a memory rig.
#pragma once

#include "stream/events.h"
#include "stream/streams.h"
#include "unit/memory/memory_rig.h"

namespace understudy {

struct StreamRig {
  explicit StreamRig(const Settings& wanted = rig_settings())
      : memory(wanted),
        streams(memory.settings, memory.transfer, memory.host_memory),
        events(streams, memory.capacity.ledger()) {}

  MemoryRig memory;
  Streams streams;
  Events events;
};

}  // namespace understudy
