// SPDX-License-Identifier: Apache-2.0
//
// The tracks of a chrome trace: which numbers they have, and how slices lie on them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <vector>

namespace understudy::command {

struct Track {
  uint32_t process = 0;
  uint32_t number = 0;
};

// Numbers of processes or tracks: as recorded, but one for each. Viewers take 0 for no process.
class TrackNumbers {
 public:
  uint32_t take(uint32_t wanted) {
    while (wanted == 0 || !taken_.insert(wanted).second) wanted = next_++;
    return wanted;
  }

 private:
  static constexpr uint32_t kBeyondKernels = 1U << 22;  // the kernel's own numbers are smaller
  std::unordered_set<uint32_t> taken_;
  uint32_t next_ = kBeyondKernels;
};

// Slices of one track lie within each other or apart, or viewers drop them. Those of a damaged
// recording may not: an inner one ends with the outer one then.
class SliceNesting {
 public:
  // The end of a slice that begins at or behind the one before it.
  uint64_t end_of(uint64_t begin, uint64_t duration) {
    while (!open_ends_.empty() && open_ends_.back() <= begin) open_ends_.pop_back();
    uint64_t end = duration > UINT64_MAX - begin ? UINT64_MAX : begin + duration;
    if (!open_ends_.empty()) end = std::min(end, open_ends_.back());
    if (end > begin) open_ends_.push_back(end);
    return end;
  }

 private:
  std::vector<uint64_t> open_ends_;
};

}  // namespace understudy::command
