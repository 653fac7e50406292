// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/recording_clock.h"

#include <algorithm>

namespace understudy::command {

namespace {

constexpr double kSlowestTick = 1000;  // nanoseconds; no machine is beyond these
constexpr double kFastestTick = 0.01;
constexpr uint64_t kLongest = 100ULL * 366 * 24 * 3600 * 1'000'000'000;  // nanoseconds
constexpr double kSlack = 24.0 * 3600 * 1e9;  // a program that rests writes no moments

// Nanoseconds per tick; 0 if that makes no sense.
double tick_length(RecordedClock begin, RecordedClock end) {
  if (begin.ticks == 0 || end.ticks <= begin.ticks || end.nanoseconds <= begin.nanoseconds) {
    return 0;
  }
  if (end.nanoseconds - begin.nanoseconds > kLongest) return 0;
  const double length = static_cast<double>(end.nanoseconds - begin.nanoseconds) /
                        static_cast<double>(end.ticks - begin.ticks);
  return length >= kFastestTick && length <= kSlowestTick ? length : 0;
}

}  // namespace

RecordingClock::RecordingClock(const FileFacts& facts) : first_(facts.first), latest_(facts.first) {
  if (tick_length(facts.first, facts.second) > 0) set_rate(facts.second);
}

void RecordingClock::add(RecordedClock pair) {
  const double length = tick_length(first_, pair);
  if (length <= 0) return;
  // The first two moments are close to each other: they tell roughly.
  const bool is_likely = rate_ <= 0 || (length > rate_ / 2 && length < rate_ * 2);
  if (is_likely && pair.ticks > latest_.ticks) set_rate(pair);
}

void RecordingClock::set_rate(RecordedClock end) {
  latest_ = end;
  rate_ = tick_length(first_, end);
  const double slack = kSlack / rate_;
  slack_behind_ =
      static_cast<uint64_t>(std::min(slack, static_cast<double>((UINT64_MAX - end.ticks) / 2)));
  slack_before_ = std::min(static_cast<uint64_t>(slack / 100), first_.ticks);
}

void RecordingClock::begin_at(uint64_t ticks) {
  first_ = {.ticks = ticks, .nanoseconds = 0};
  latest_ = first_;
  rate_ = 1;
  slack_before_ = 0;
  slack_behind_ = std::min<uint64_t>(static_cast<uint64_t>(kSlack), (UINT64_MAX - ticks) / 2);
}

}  // namespace understudy::command
