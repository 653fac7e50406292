// SPDX-License-Identifier: Apache-2.0
#include "observe/access_map.h"

#include <iterator>

namespace understudy {

AccessMap::Segments::const_iterator AccessMap::first_in(VirtualRange range) const {
  auto found = segments_.upper_bound(range.base);
  if (found != segments_.begin()) {
    const auto before = std::prev(found);
    if (before->second.end > range.base) found = before;
  }
  return found;
}

std::optional<TaskAccess> AccessMap::find_unordered(const MemoryUse& what,
                                                    const StreamClock& clock) const {
  for (auto at = first_in(what.range); at != segments_.end() && at->first < what.range.end();
       ++at) {
    for (const TaskAccess& known : at->second.accesses) {
      if (conflict(known.what.use, what.use) &&
          clock.reached(known.task.stream) < known.task.position) {
        return known;
      }
    }
  }
  return std::nullopt;
}

void AccessMap::cut_at(VirtualAddress address) {
  const auto found = segments_.upper_bound(address);
  if (found == segments_.begin()) return;
  auto& [base, segment] = *std::prev(found);
  if (base == address || segment.end <= address) return;
  segments_.emplace_hint(found, address, segment);
  segment.end = address;
}

void AccessMap::add_to(Segment& segment, const TaskAccess& access, const StreamClock& clock) {
  std::erase_if(segment.accesses, [&](const TaskAccess& known) {
    // One that was not in order was told already, and would be told again and again.
    if (access.what.use >= AccessUse::kWrite) return true;
    return known.what.use <= access.what.use &&
           clock.reached(known.task.stream) >= known.task.position;
  });
  segment.accesses.push_back(access);
}

void AccessMap::add(const TaskAccess& access, const StreamClock& clock) {
  const VirtualRange range = access.what.range;
  cut_at(range.base);
  cut_at(range.end());
  VirtualAddress at = range.base;
  auto next = segments_.lower_bound(range.base);
  while (at < range.end()) {
    if (next != segments_.end() && next->first == at) {
      add_to(next->second, access, clock);
      at = next->second.end;
      ++next;
      continue;
    }
    const bool is_last = next == segments_.end() || next->first >= range.end();
    const VirtualAddress end = is_last ? range.end() : next->first;
    segments_.emplace_hint(next, at, Segment{end, {access}});
    at = end;
  }
}

void AccessMap::forget(VirtualRange range) {
  cut_at(range.base);
  cut_at(range.end());
  segments_.erase(segments_.lower_bound(range.base), segments_.lower_bound(range.end()));
}

}  // namespace understudy
