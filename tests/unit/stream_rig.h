// SPDX-License-Identifier: Apache-2.0
//
// Streams, events and notifies of a process, put together by hand on top of a memory rig.
#pragma once

#include "stream/events.h"
#include "stream/notifies.h"
#include "stream/ring_listener.h"
#include "stream/streams.h"
#include "unit/memory/memory_rig.h"

namespace understudy {

struct StreamRig {
  explicit StreamRig(const Settings& wanted = rig_settings())
      : memory(wanted),
        streams(memory.settings, memory.transfer, memory.host_memory,
                &memory.capacity.server().figures()),
        events(memory.settings, streams, memory.capacity.server().events()),
        ring_listener(memory.capacity.server().slots(), streams),
        notifies(memory.settings, streams, memory.capacity.server().notifies(), ring_listener,
                 [this](ShareToken token) { ended_export = token; }) {}

  MemoryRig memory;
  Streams streams;
  Events events;
  RingListener ring_listener;
  Notifies notifies;
  ShareToken ended_export{0};  // the last notify that ended while it was exported
};

}  // namespace understudy
