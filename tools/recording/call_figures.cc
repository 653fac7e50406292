// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/call_figures.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace understudy::command {

namespace {

std::vector<FunctionFigures> figures_of_functions(const Recording& recording) {
  const std::vector<RecordedCall>& calls = recording.calls;
  std::vector<FunctionFigures> all(recording.functions.size());
  GroupedValues durations(all.size());
  for (const RecordedCall& call : calls) {
    durations.expect(call.function);
    if (call.code != 0) ++all[call.function].failed;
  }
  durations.start();
  for (const RecordedCall& call : calls) durations.add(call.function, call.duration);
  std::vector<FunctionFigures> called;
  for (uint32_t function = 0; function < all.size(); ++function) {
    all[function].function = function;
    all[function].durations = durations.spread(function);
    if (all[function].durations.count > 0) called.push_back(all[function]);
  }
  std::stable_sort(called.begin(), called.end(), [](const auto& left, const auto& right) {
    return left.durations.total > right.durations.total;
  });
  return called;
}

std::vector<FailureFigures> figures_of_failures(const Recording& recording) {
  std::map<std::pair<uint32_t, int32_t>, uint64_t> counts;
  for (const RecordedCall& call : recording.calls) {
    if (call.code != 0) ++counts[{call.function, call.code}];
  }
  std::vector<FailureFigures> failures;
  failures.reserve(counts.size());
  for (const auto& [place, count] : counts) failures.push_back({place.first, place.second, count});
  std::stable_sort(failures.begin(), failures.end(),
                   [](const auto& left, const auto& right) { return left.calls > right.calls; });
  return failures;
}

// Calls are in the order of their beginnings, the outer before the inner one.
std::vector<ThreadFigures> figures_of_threads(const Recording& recording) {
  std::vector<ThreadFigures> threads(recording.threads.size());
  std::vector<uint64_t> ends(threads.size());  // of the outermost call so far
  for (const RecordedCall& call : recording.calls) {
    ThreadFigures& thread = threads[call.thread];
    ++thread.calls;
    if (call.code != 0) ++thread.failed;
    const uint64_t end = call.begin + call.duration;
    const uint64_t counted = std::max(ends[call.thread], call.begin);
    if (end > counted) thread.in_calls += end - counted;
    ends[call.thread] = std::max(ends[call.thread], end);
  }
  return threads;
}

std::vector<uint32_t> find_slowest(const Recording& recording) {
  const std::vector<RecordedCall>& calls = recording.calls;
  const auto is_slower = [&](uint32_t left, uint32_t right) {
    return std::tuple(calls[right].duration, left) < std::tuple(calls[left].duration, right);
  };
  // A heap with the fastest of the chosen ones in front.
  std::vector<uint32_t> chosen;
  for (uint32_t index = 0; index < calls.size(); ++index) {
    if (chosen.size() == kSlowestCalls) {
      if (!is_slower(index, chosen.front())) continue;
      std::pop_heap(chosen.begin(), chosen.end(), is_slower);
      chosen.pop_back();
    }
    chosen.push_back(index);
    std::push_heap(chosen.begin(), chosen.end(), is_slower);
  }
  std::sort_heap(chosen.begin(), chosen.end(), is_slower);
  return chosen;
}

}  // namespace

CallFigures call_figures(const Recording& recording) {
  CallFigures figures;
  figures.calls = recording.calls.size();
  figures.functions = figures_of_functions(recording);
  figures.failures = figures_of_failures(recording);
  figures.threads = figures_of_threads(recording);
  figures.slowest = find_slowest(recording);
  for (const ThreadFigures& thread : figures.threads) figures.failed += thread.failed;
  return figures;
}

}  // namespace understudy::command
