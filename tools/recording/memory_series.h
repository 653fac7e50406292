// SPDX-License-Identifier: Apache-2.0
//
// Memory over time, from the lives of the objects that take some. The page, the summary and all
// exports count as it does here: a device's memory is that of all its objects, the host is device
// -1, and what ends at a moment is taken off before what begins at it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "tools/recording/recording.h"

namespace understudy::command {

inline constexpr int32_t kHost = -1;  // where an object is that is on no device

// An object that takes memory begins or ends.
struct MemoryChange {
  uint64_t time;
  uint32_t object;  // in Recording::objects
  bool begins;
};

// In the order of time.
std::vector<MemoryChange> memory_changes(const Recording& recording);

struct MemoryPeak {
  uint64_t bytes = 0;
  uint64_t time = 0;  // when it was first reached
};

// By device.
std::map<int32_t, MemoryPeak> memory_peaks(const Recording& recording,
                                           const std::vector<MemoryChange>& changes);

// The objects with memory that are alive behind the changes of a moment, by their beginnings. The
// end of the recording: UINT64_MAX.
std::vector<uint32_t> objects_alive_at(const Recording& recording, uint64_t time);

}  // namespace understudy::command
