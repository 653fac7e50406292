// SPDX-License-Identifier: Apache-2.0
#include "observe/endless_wait.h"

#include <algorithm>

namespace understudy {

namespace {

bool has_open_gate(const OrderedStream& stream) {
  return std::ranges::any_of(stream.queued(), [](const QueuedTask& task) {
    return task.gate.kind == QueuedGate::Kind::kOpen;
  });
}

}  // namespace

std::optional<EndlessWait> EndlessWaitSearch::find(StreamTask task) {
  for (const auto& [number, stream] : streams_) {
    if (has_open_gate(stream)) return std::nullopt;
  }
  return ends(task) ? std::nullopt : last_;
}

bool EndlessWaitSearch::ends(StreamTask task) {
  constexpr size_t kMostSteps = 256;  // beyond these it is assumed to end
  uint64_t& known = known_to_end_[task.stream];
  const auto found = streams_.find(task.stream);
  if (known >= task.position || found == streams_.end()) return true;
  if (on_the_way_.size() >= kMostSteps) return true;
  for (const QueuedTask& each : found->second.queued()) {
    if (each.position > task.position) break;
    const StreamTask at{task.stream, each.position};
    if (each.gate.kind == QueuedGate::Kind::kRecord) {
      on_the_way_.push_back(at);
      const bool is_reached = ends(each.gate.record);
      on_the_way_.pop_back();
      if (!is_reached) return false;
    }
    if (each.gate.kind == QueuedGate::Kind::kNotify && !is_set_in_time(at, each.gate.notify)) {
      if (!last_) last_ = EndlessWait{at, each.gate.notify, each.place};
      return false;
    }
  }
  known = std::max(known, task.position);
  return true;
}

bool EndlessWaitSearch::is_set_in_time(StreamTask wait, uint32_t notify) {
  if (const auto known = notifies_.find(notify);
      known != notifies_.end() &&
      (known->second.may_be_set || known->second.may_be_set_by_others)) {
    return true;
  }
  const auto is_same = [&](StreamTask other) {
    return other.stream == wait.stream && other.position == wait.position;
  };
  if (std::ranges::any_of(on_the_way_, is_same)) return false;
  on_the_way_.push_back(wait);
  const bool is_set = std::ranges::any_of(streams_, [&](const auto& entry) {
    return std::ranges::any_of(entry.second.queued(), [&](const QueuedTask& each) {
      return each.changed_notify == notify && ends({entry.first, each.position});
    });
  });
  on_the_way_.pop_back();
  return is_set;
}

}  // namespace understudy
