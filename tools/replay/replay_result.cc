// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/replay_result.h"

#include <algorithm>

namespace understudy::command {

namespace {

void add_differences(const Recording& recording, const ReplayPlan& plan, const ReplayState& state,
                     ReplayResult& result) {
  for (uint32_t position = 0; position < plan.calls.size(); ++position) {
    const CallResult& made = state.result(position);
    const RecordedCall& call = recording.calls[plan.calls[position].call];
    if (made.outcome != CallOutcome::kMade || made.code == call.code) continue;
    ++result.different;
    if (call.code != 0) ++result.recorded_failures;
  }
  const uint32_t kept = std::min(state.header().differences.load(), kKeptDifferences);
  for (uint32_t i = 0; i < kept; ++i) {
    const DifferenceNow& now = state.difference(i);
    if (!now.is_complete.load(std::memory_order_acquire)) continue;
    result.differences.push_back({plan.calls[now.call].call, state.result(now.call).code,
                                  now.sentence.data(), now.free_bytes, now.total_bytes});
  }
  std::sort(result.differences.begin(), result.differences.end(),
            [](const auto& left, const auto& right) { return left.call < right.call; });
}

void add_times(const Recording& recording, const ReplayPlan& plan, const ReplayState& state,
               double nanoseconds_per_tick, ReplayResult& result) {
  std::vector<FunctionTimes> times(recording.functions.size());
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  for (uint32_t position = 0; position < plan.calls.size(); ++position) {
    const CallResult& made = state.result(position);
    const RecordedCall& call = recording.calls[plan.calls[position].call];
    if (made.outcome == CallOutcome::kNotReached) ++result.not_reached;
    if (made.outcome == CallOutcome::kImpossible) ++result.impossible;
    if (made.outcome != CallOutcome::kMade) continue;
    ++result.made;
    FunctionTimes& function = times[call.function];
    ++function.calls;
    function.recorded += static_cast<double>(call.duration);
    function.replayed += static_cast<double>(made.ticks) * nanoseconds_per_tick;
    begin = std::min(begin, call.begin);
    end = std::max(end, call.begin + call.duration);
  }
  result.recorded_duration = end > begin ? end - begin : 0;
  for (uint32_t function = 0; function < times.size(); ++function) {
    times[function].function = function;
    if (times[function].calls != 0) result.times.push_back(times[function]);
  }
  std::stable_sort(
      result.times.begin(), result.times.end(),
      [](const auto& left, const auto& right) { return left.recorded > right.recorded; });
}

std::map<int32_t, MemoryPeak> peaks_of(const Recording& recording) {
  return memory_peaks(recording, memory_changes(recording));
}

}  // namespace

ReplayResult make_replay_result(const Recording& recording, const ReplayPlan& plan,
                                const ReplayState& state, const ReplayEnd& end,
                                const Recording* replayed) {
  ReplayResult result;
  result.recorded_calls = recording.calls.size();
  result.left_out = recording.calls.size() - plan.calls.size();
  add_differences(recording, plan, state, result);
  add_times(recording, plan, state, end.nanoseconds_per_tick, result);
  result.recorded_peaks = peaks_of(recording);
  if (replayed != nullptr) result.replayed_peaks = peaks_of(*replayed);
  return result;
}

}  // namespace understudy::command
