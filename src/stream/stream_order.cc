// SPDX-License-Identifier: Apache-2.0
#include "stream/stream_order.h"

#include <algorithm>

#include "stream/stream.h"

namespace understudy {

namespace {

// Whether the stream waits as it was told to, or has.
bool is_certain(const Stream& stream, const NotedWait& noted) {
  return noted.wait == 0 || (!stream.drops(noted.wait) && stream.stop_at.load() < noted.wait);
}

}  // namespace

RecentWaits& StreamOrder::waits_locked(Stream& stream) { return stream.recent_waits.value; }

void StreamOrder::note_wait(Stream& stream, Stream& before, uint64_t position, uint64_t wait) {
  const uint64_t since = stream.submitted.load();
  BriefLock lock(mutex_);
  RecentWaits& recent = waits_locked(stream);
  auto* const same = std::find_if(recent.waits.begin(), recent.waits.end(),
                                  [&](const NotedWait& each) { return each.before == &before; });
  if (same != recent.waits.end()) {
    // An older wait that reached further still holds.
    if (same->position < position || !is_certain(stream, *same)) {
      *same = {&before, position, since, wait};
    }
    return;
  }
  recent.waits[recent.next] = {&before, position, since, wait};
  recent.next = (recent.next + 1) % static_cast<unsigned>(recent.waits.size());
}

uint64_t StreamOrder::reached_before(Stream& stream, const Stream& before) {
  BriefLock lock(mutex_);
  return reached_locked(stream, UINT64_MAX, before, kMostSteps);
}

uint64_t StreamOrder::reached_locked(Stream& stream, uint64_t at, const Stream& before,
                                     unsigned steps) {
  uint64_t reached = 0;
  for (const NotedWait& noted : waits_locked(stream).waits) {
    if (noted.before == nullptr || noted.since >= at || !is_certain(stream, noted)) continue;
    if (noted.before == &before) {
      reached = std::max(reached, noted.position);
    } else if (steps > 1) {
      reached = std::max(reached, reached_locked(*noted.before, noted.position, before, steps - 1));
    }
  }
  return reached;
}

}  // namespace understudy
