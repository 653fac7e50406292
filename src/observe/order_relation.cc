// SPDX-License-Identifier: Apache-2.0
#include "observe/order_relation.h"

#include <utility>

namespace understudy {

namespace {

bool is_sound(VirtualRange range) {
  return range.size != 0 && VirtualRange::make(range.base, range.size).has_value();
}

}  // namespace

// ---- Calls of the program ----

void OrderRelation::add_task(uint32_t stream, QueuedTask task) {
  task.order = ++calls_;
  task.behind = known_;
  std::erase_if(task.uses, [](const MemoryUse& use) { return !is_sound(use.range); });
  streams_[stream].add(std::move(task));
}

void OrderRelation::put_behind(uint32_t stream, uint64_t last_queued, StreamTask behind) {
  QueuedTask nothing;
  nothing.position = last_queued + 1;
  nothing.behind = std::make_shared<const StreamClock>(streams_[behind.stream].clock_at(behind));
  streams_[stream].add(std::move(nothing));
}

void OrderRelation::add_end(uint32_t stream, QueuedTask end, std::vector<TaskDisorder>& found) {
  end.order = ++calls_;
  end.behind = known_;
  OrderedStream& ordered = streams_[stream];
  const StreamTask last{stream, end.position};
  ordered.add_end(std::move(end));
  if (!ordered.has_queued(last.position)) make_ends(last, found);
}

void OrderRelation::put_behind_all(uint32_t stream, uint64_t last_queued) {
  QueuedTask nothing;
  nothing.position = last_queued + 1;
  nothing.behind = std::make_shared<const StreamClock>(everything());
  streams_[stream].add(std::move(nothing));
}

void OrderRelation::know(StreamTask task) {
  OrderedStream& stream = streams_[task.stream];
  stream.drop_uses(task.position);
  StreamClock clock = stream.clock_at(task);
  clock.advance(task.stream, task.position);
  know(clock);
}

void OrderRelation::know_all() { know(everything()); }

StreamClock OrderRelation::everything() const {
  StreamClock clock = *known_;
  for (const auto& [number, stream] : streams_) {
    clock.join(stream.clock());
    if (stream.queued().empty()) continue;
    const QueuedTask& front = stream.queued().front();
    clock.join(*front.behind);
    clock.advance(number, front.position);
  }
  return clock;
}

void OrderRelation::know(const StreamClock& clock) {
  if (known_->has_reached(clock)) return;
  auto more = std::make_shared<StreamClock>(*known_);
  more->join(clock);
  known_ = std::move(more);
}

bool OrderRelation::runs_by_itself(StreamTask task, unsigned steps, Positions& looked_at) const {
  const auto found = streams_.find(task.stream);
  if (found == streams_.end()) return true;
  uint64_t& seen = looked_at[task.stream];
  for (const QueuedTask& each : found->second.queued()) {
    if (each.position > task.position) break;
    if (each.position <= seen) continue;
    seen = each.position;
    if (each.gate.kind == QueuedGate::Kind::kNone) continue;
    if (each.gate.kind != QueuedGate::Kind::kRecord || steps == 0) return false;
    if (!runs_by_itself(each.gate.record, steps - 1, looked_at)) return false;
  }
  return true;
}

bool OrderRelation::runs_by_itself(StreamTask task) const {
  constexpr unsigned kMostSteps = 8;
  Positions looked_at;
  return runs_by_itself(task, kMostSteps, looked_at);
}

std::optional<TaskAccess> OrderRelation::find_queued(const MemoryUse& what) const {
  // Queued tasks may wait for such a function, and any call may be its doing.
  if (what.use != AccessUse::kEnd && functions_running_ != 0) return std::nullopt;
  for (const auto& [number, stream] : streams_) {
    for (const QueuedTask& task : stream.queued()) {
      for (const MemoryUse& use : task.uses) {
        if (!use.range.overlaps(what.range) || !conflict(use.use, what.use)) continue;
        const StreamTask found{number, task.position};
        // At the end of the memory it does not matter what the task waits for.
        if (what.use == AccessUse::kEnd || runs_by_itself(found)) {
          return TaskAccess{found, use, task.place};
        }
      }
    }
  }
  return std::nullopt;
}

std::optional<TaskAccess> OrderRelation::find_conflict(const MemoryUse& what) const {
  if (!is_sound(what.range)) return std::nullopt;
  if (std::optional<TaskAccess> queued = find_queued(what)) return queued;
  return accesses_.find_unordered(what, *known_);
}

std::optional<EndlessWait> OrderRelation::find_endless_wait(StreamTask task) const {
  // Such a function may set any notify.
  if (functions_running_ != 0) return std::nullopt;
  return EndlessWaitSearch(streams_, notifies_).find(task);
}

// ---- Streams ----

void OrderRelation::record(StreamTask record) {
  OrderedStream& stream = streams_[record.stream];
  stream.arrive(record);
  stream.note_record(record.position);
}

void OrderRelation::wait(uint32_t stream, StreamTask record) {
  const StreamClock clock = streams_[record.stream].clock_at(record);
  streams_[stream].join(clock);
}

void OrderRelation::wait_for_others(uint32_t stream) { streams_[stream].join(everything()); }

void OrderRelation::change_notify(StreamTask task, uint32_t notify) {
  OrderedStream& stream = streams_[task.stream];
  stream.arrive(task);
  OrderedNotify& changed = notifies_[notify];
  changed.clock.join(stream.clock());
  changed.may_be_set = true;
}

void OrderRelation::wait_for_notify(uint32_t stream, uint32_t notify) {
  OrderedStream& waiting = streams_[stream];
  OrderedNotify& taken = notifies_[notify];
  waiting.join(taken.clock);
  taken.may_be_set = false;
  waiting.pass(notify);
}

void OrderRelation::tell(StreamTask task) {
  OrderedStream& stream = streams_[task.stream];
  stream.arrive(task);
  know(stream.clock_at(task));
}

void OrderRelation::begin_function(StreamTask task) {
  ++functions_running_;
  tell(task);
}

void OrderRelation::end_function() {
  if (functions_running_ != 0) --functions_running_;
}

void OrderRelation::go_on(uint32_t stream) { streams_[stream].join(*known_); }

void OrderRelation::use(StreamTask task, std::span<const MemoryUse> uses, const ProgramPlace& place,
                        std::vector<TaskDisorder>& found) {
  OrderedStream& stream = streams_[task.stream];
  stream.arrive(task);
  for (const MemoryUse& use : uses) {
    if (!is_sound(use.range)) continue;
    const TaskAccess access{task, use, place};
    if (const auto first = accesses_.find_unordered(use, stream.clock())) {
      found.push_back({*first, access});
    }
  }
  // All of them first: a task does not conflict with itself.
  for (const MemoryUse& use : uses) {
    if (is_sound(use.range)) accesses_.add({task, use, place}, stream.clock());
  }
}

void OrderRelation::end_memory(StreamTask task, std::vector<TaskDisorder>& found) {
  OrderedStream& stream = streams_[task.stream];
  QueuedTask* const queued = stream.find(task.position);
  // Another end of the same memory may have come first, and have been told.
  if (queued == nullptr || queued->uses.empty()) return;
  const QueuedTask end = *queued;
  queued->uses.clear();
  find_overtaken(task.stream, end, found);
  use(task, end.uses, end.place, found);
  forget(end.uses.front().range);
}

std::optional<QueuedTask> OrderRelation::end_task(StreamTask task) {
  OrderedStream& stream = streams_[task.stream];
  stream.arrive(task);
  return stream.take(task.position);
}

void OrderRelation::find_overtaken(uint32_t stream, const QueuedTask& end,
                                   std::vector<TaskDisorder>& found) {
  const MemoryUse what = end.uses.front();
  for (auto& [number, other] : streams_) {
    const uint32_t on = number;
    for (QueuedTask& task : other.queued()) {
      if (task.order > end.order) break;
      std::erase_if(task.uses, [&](const MemoryUse& use) {
        if (!use.range.overlaps(what.range)) return false;
        found.push_back(
            {{{on, task.position}, use, task.place}, {{stream, end.position}, what, end.place}});
        return true;
      });
    }
  }
}

void OrderRelation::make_ends(StreamTask task, std::vector<TaskDisorder>& found) {
  OrderedStream& stream = streams_[task.stream];
  while (const std::optional<QueuedTask> end = stream.take_end(task.position)) {
    stream.join(*end->behind);
    find_overtaken(task.stream, *end, found);
    use({task.stream, end->position}, end->uses, end->place, found);
  }
}

ProgramPlace OrderRelation::place_of(StreamTask task) const {
  const auto found = streams_.find(task.stream);
  if (found == streams_.end()) return {};
  for (const QueuedTask& each : found->second.queued()) {
    if (each.position == task.position && each.place.stack != nullptr) return each.place;
  }
  return {};
}

}  // namespace understudy
