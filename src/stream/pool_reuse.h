// SPDX-License-Identifier: Apache-2.0
//
// Which free range of a pool an allocation on a stream may have. The owner of a free range is the
// stream that it was freed on, and its position is that of the last task queued before: the free
// has run when the stream has done that task. Rules: POOL-12 to POOL-14.
#pragma once

#include <cstdint>
#include <optional>

#include "memory/pool_ranges.h"
#include "stream/stream.h"
#include "stream/stream_order.h"

namespace understudy {

// What lets a stream have what another one freed.
struct ReuseRules {
  bool follow_events = false;  // an event orders the two
  bool opportunistic = false;  // the free has run
  bool add_waits = false;      // the pool lets the stream wait for the free
};

// The mark of what is freed on a stream now.
FreeMark free_mark(const Stream& stream);
// The stream that a range was freed on; null where anyone may have it.
Stream* freed_on(const FreeMark& mark);
bool has_run(const FreeMark& mark);

struct ReuseChoice {
  PoolRange range;
  bool needs_wait = false;  // of the stream, until the free has run
};

// The range closest in size that the stream may have; nothing if there is none. Frees that have run
// may become anyone's by it.
std::optional<ReuseChoice> choose_range(PoolRanges& ranges, const ReuseRules& rules, uint64_t size,
                                        Stream& stream, StreamOrder& order);
// A free range whose free has run, so that its memory can be taken away.
std::optional<PoolRange> find_released(const PoolRanges& ranges);

}  // namespace understudy
