// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/memory_series.h"

#include <algorithm>
#include <tuple>

namespace understudy::command {

std::vector<MemoryChange> memory_changes(const Recording& recording) {
  // Objects are in the order of their beginnings; only their ends have to be sorted.
  std::vector<MemoryChange> ends;
  size_t count = 0;
  for (uint32_t index = 0; index < recording.objects.size(); ++index) {
    const RecordedObject& object = recording.objects[index];
    if (object.taken == 0) continue;
    ++count;
    if (object.end != kStillAlive) ends.push_back({object.end, index, false});
  }
  std::sort(ends.begin(), ends.end(), [](const MemoryChange& left, const MemoryChange& right) {
    return std::tie(left.time, left.object) < std::tie(right.time, right.object);
  });
  std::vector<MemoryChange> changes;
  changes.reserve(count + ends.size());
  size_t next = 0;
  for (uint32_t index = 0; index < recording.objects.size(); ++index) {
    const RecordedObject& object = recording.objects[index];
    if (object.taken == 0) continue;
    while (next < ends.size() && ends[next].time <= object.begin) changes.push_back(ends[next++]);
    changes.push_back({object.begin, index, true});
  }
  changes.insert(changes.end(), ends.begin() + static_cast<ptrdiff_t>(next), ends.end());
  return changes;
}

std::map<int32_t, MemoryPeak> memory_peaks(const Recording& recording,
                                           const std::vector<MemoryChange>& changes) {
  std::map<int32_t, MemoryPeak> peaks;
  std::map<int32_t, uint64_t> taken;
  for (const MemoryChange& change : changes) {
    const RecordedObject& object = recording.objects[change.object];
    uint64_t& sum = taken[object.device];
    sum = change.begins ? sum + object.taken : sum - object.taken;
    MemoryPeak& peak = peaks[object.device];
    if (sum > peak.bytes) peak = {sum, change.time};
  }
  return peaks;
}

std::vector<uint32_t> objects_alive_at(const Recording& recording, uint64_t time) {
  std::vector<uint32_t> alive;
  for (uint32_t index = 0; index < recording.objects.size(); ++index) {
    const RecordedObject& object = recording.objects[index];
    if (object.begin > time) break;
    const bool has_ended = object.end != kStillAlive && object.end <= time;
    if (object.taken != 0 && !has_ended) alive.push_back(index);
  }
  return alive;
}

}  // namespace understudy::command
