// SPDX-License-Identifier: Apache-2.0
//
// What came of a replay, next to what the recording says.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/recording/memory_series.h"
#include "tools/replay/replay_run.h"

namespace understudy::command {

struct ReplayDifference {
  uint32_t call = 0;  // in Recording::calls
  int32_t code = 0;   // of the replay
  std::string sentence;
  uint64_t free_bytes = 0;   // of the device, where memory was short
  uint64_t total_bytes = 0;  // 0: not known
};

// Of all calls of a function that were made again.
struct FunctionTimes {
  uint32_t function = 0;
  uint64_t calls = 0;
  double recorded = 0;  // nanoseconds together
  double replayed = 0;
};

struct ReplayResult {
  uint64_t recorded_calls = 0;
  uint64_t made = 0;
  uint64_t impossible = 0;  // they use what was not made here
  uint64_t not_reached = 0;
  uint64_t left_out = 0;  // by the plan
  uint64_t different = 0;
  uint64_t recorded_failures = 0;             // of those that differ
  std::vector<ReplayDifference> differences;  // by the moment in the recording; maybe not all
  std::vector<FunctionTimes> times;           // the most time in the recording first
  uint64_t recorded_duration = 0;             // from the first call that was made again to the last
  std::map<int32_t, MemoryPeak> recorded_peaks;
  std::map<int32_t, MemoryPeak> replayed_peaks;

  bool is_same() const { return different == 0 && impossible == 0 && not_reached == 0; }
};

// `replayed`: the recording of the replay; null: there is none.
ReplayResult make_replay_result(const Recording& recording, const ReplayPlan& plan,
                                const ReplayState& state, const ReplayEnd& end,
                                const Recording* replayed);

}  // namespace understudy::command
