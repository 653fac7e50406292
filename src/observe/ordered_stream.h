// SPDX-License-Identifier: Apache-2.0
//
// What one stream has done and has yet to do, for the check `order`: its clock, the tasks that are
// queued with what they will use, and its clock at the records of events. The caller serializes
// calls. Functions may throw std::bad_alloc.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "observe/access_map.h"
#include "observe/queued_task.h"
#include "observe/stream_clock.h"

namespace understudy {

class OrderedStream {
 public:
  void add(QueuedTask task) { queued_.push_back(std::move(task)); }
  // It is at the task: all that this comes behind is behind it.
  void arrive(StreamTask task) {
    for (const QueuedTask& each : queued_) {
      if (each.position > task.position) break;
      if (each.behind != nullptr && each.behind != last_joined_) {
        clock_.join(*each.behind);
        last_joined_ = each.behind;
      }
    }
    clock_.advance(task.stream, task.position);
  }
  void join(const StreamClock& clock) { clock_.join(clock); }
  void note_record(uint64_t position) {
    records_.insert_or_assign(position, std::make_shared<const StreamClock>(clock_));
    if (records_.size() > kMostRecords) records_.erase(records_.begin());
  }
  // Where the stream was at a task: exactly, if the task was a record that is remembered.
  StreamClock clock_at(StreamTask task) const {
    const auto found = records_.find(task.position);
    return found != records_.end() ? *found->second : clock_.limited(task.stream, task.position);
  }
  const StreamClock& clock() const { return clock_; }

  // Takes the task out of the queue, with those before it; nothing if it is not there.
  std::optional<QueuedTask> take(uint64_t position) {
    std::optional<QueuedTask> found;
    while (!queued_.empty() && queued_.front().position <= position) {
      if (queued_.front().position == position) found = std::move(queued_.front());
      queued_.pop_front();
    }
    return found;
  }
  const std::deque<QueuedTask>& queued() const { return queued_; }
  // The first task that waits for the notify does so no more.
  void pass(uint32_t notify) {
    for (QueuedTask& each : queued_) {
      if (each.gate.kind != QueuedGate::Kind::kNotify || each.gate.notify != notify) continue;
      each.gate = {};
      return;
    }
  }
  std::deque<QueuedTask>& queued() { return queued_; }
  // A queued task that uses memory; null if there is none at the position.
  QueuedTask* find(uint64_t position) {
    for (QueuedTask& each : queued_) {
      if (each.position > position) break;
      if (each.position == position && !each.uses.empty()) return &each;
    }
    return nullptr;
  }
  bool has_queued(uint64_t until) const {
    return !queued_.empty() && queued_.front().position <= until;
  }

  // The tasks up to a position that have not run never will.
  void drop_uses(uint64_t until) {
    for (QueuedTask& each : queued_) {
      if (each.position > until) break;
      each.uses.clear();
    }
  }

  // Memory ends behind the task at the end's position.
  void add_end(QueuedTask end) { ends_.push_back(std::move(end)); }
  // Takes the first end that comes behind tasks up to a position; nothing if there is none.
  std::optional<QueuedTask> take_end(uint64_t position) {
    if (ends_.empty() || ends_.front().position > position) return std::nullopt;
    std::optional<QueuedTask> first = std::move(ends_.front());
    ends_.pop_front();
    return first;
  }

 private:
  static constexpr size_t kMostRecords = 1024;

  StreamClock clock_;
  ClockSnapshot last_joined_;
  std::deque<QueuedTask> queued_;
  std::deque<QueuedTask> ends_;
  std::map<uint64_t, ClockSnapshot> records_;  // by position; the oldest are forgotten
};

}  // namespace understudy
