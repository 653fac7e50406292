// SPDX-License-Identifier: Apache-2.0
//
// Memory over time for charts: as many points as are of use. Where there are more, a slice of time
// is shown by its least and its largest sum and by its last, so that no peak is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "tools/recording/recording.h"

namespace understudy::command {

struct MemorySample {
  uint64_t time;
  uint64_t bytes;  // from this moment on
};

// By device, in the order of time; each begins with nothing at 0 and has about `most` at the most.
std::map<int32_t, std::vector<MemorySample>> memory_samples(const Recording& recording,
                                                            size_t most);

}  // namespace understudy::command
