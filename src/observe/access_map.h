// SPDX-License-Identifier: Apache-2.0
//
// Which tasks of streams used which bytes: of every byte the last write or end, and the reads and
// reductions since. Accesses that come before a later one of the same strength are forgotten, since
// whatever is in order with the later one is in order with them.
//
// The caller serializes calls. Functions that add may throw std::bad_alloc: then some bytes have
// the access and others do not, which only loses findings.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/virtual_range.h"
#include "observe/object_life.h"
#include "observe/stream_clock.h"

namespace understudy {

enum class AccessUse : uint8_t {
  kRead,
  kReduce,  // reads and writes; in any order with other reductions
  kWrite,
  kEnd,  // the memory is freed, unmapped or unregistered
};

// A range that a task or a call uses.
struct MemoryUse {
  VirtualRange range;
  AccessUse use = AccessUse::kRead;
};

// One task, by the number of its stream and its position there.
struct StreamTask {
  uint32_t stream = 0;
  uint64_t position = 0;
};

struct TaskAccess {
  StreamTask task;
  MemoryUse what;
  ProgramPlace place;  // that queued it
};

// Whether the order of two accesses to the same bytes makes a difference.
constexpr bool conflict(AccessUse one, AccessUse other) {
  if (one == other) return one == AccessUse::kWrite || one == AccessUse::kEnd;
  return true;
}

class AccessMap {
 public:
  // The first access that conflicts and that the clock has not reached.
  std::optional<TaskAccess> find_unordered(const MemoryUse& what, const StreamClock& clock) const;
  // `clock` is that of the access.
  void add(const TaskAccess& access, const StreamClock& clock);
  void forget(VirtualRange range);

 private:
  struct Segment {
    VirtualAddress end = 0;
    std::vector<TaskAccess> accesses;
  };
  using Segments = std::map<VirtualAddress, Segment>;

  Segments::const_iterator first_in(VirtualRange range) const;
  // A segment that reaches across the address becomes two.
  void cut_at(VirtualAddress address);
  static void add_to(Segment& segment, const TaskAccess& access, const StreamClock& clock);

  Segments segments_;  // by their first address; they do not overlap
};

}  // namespace understudy
