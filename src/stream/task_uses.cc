// SPDX-License-Identifier: Apache-2.0
#include "stream/task_uses.h"

#include <algorithm>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "observe/queued_places.h"
#include "observe/unwritten_memory.h"
#include "stream/pool_reuse.h"

namespace understudy {

namespace {

using Uses = std::vector<MemoryUse>;

// Rows that no other task may be in between are one range.
void add_rows(Uses& uses, VirtualAddress base, uint64_t pitch, const PlaneCopy& rows,
              AccessUse use) {
  constexpr uint64_t kMostRows = 4096;  // conflicts with rows behind these are not found
  if (pitch == rows.width) {
    uses.push_back({{base, rows.width * rows.height}, use});
    return;
  }
  for (uint64_t row = 0; row < std::min(rows.height, kMostRows); ++row) {
    uses.push_back({{base + row * pitch, rows.width}, use});
  }
}

void add_copy(Uses& uses, const Copy& copy) {
  uses.push_back({{copy.from, copy.count}, AccessUse::kRead});
  uses.push_back({{copy.to, copy.count}, AccessUse::kWrite});
}

void add_plane(Uses& uses, const PlaneCopy& rows) {
  add_rows(uses, rows.from, rows.from_pitch, rows, AccessUse::kRead);
  add_rows(uses, rows.to, rows.to_pitch, rows, AccessUse::kWrite);
}

// What is known of a task before it runs. Values that tasks write and wait for are what puts other
// tasks in order, and so never in disorder themselves.
Uses uses_of(const Task& task) {
  Uses uses;
  switch (task.kind) {
    case TaskKind::kCopy:
      add_copy(uses, task.copy);
      break;
    case TaskKind::kCopyRows:
      add_plane(uses, task.rows);
      break;
    case TaskKind::kCopyList:
      for (const ListedCopy& each : *task.list) add_copy(uses, each.copy);
      break;
    case TaskKind::kCopyCaptured:
      uses.push_back({{task.captured.to, task.captured.source->size()}, AccessUse::kWrite});
      break;
    case TaskKind::kSet:
      uses.push_back({{task.fill.to, task.fill.count}, AccessUse::kWrite});
      break;
    case TaskKind::kSetWords:
      uses.push_back({{task.fill.to, task.fill.count * sizeof(uint32_t)}, AccessUse::kWrite});
      break;
    case TaskKind::kReduce:
      uses.push_back({{task.reduction.from, task.reduction.count}, AccessUse::kRead});
      uses.push_back({{task.reduction.to, task.reduction.count}, AccessUse::kReduce});
      break;
    case TaskKind::kFree:
      uses.push_back({task.free.range, AccessUse::kEnd});
      break;
    default:
      break;
  }
  return uses;
}

// Whether a wait without a limit is for a flag that this process alone has made.
bool is_own_flag(const NotifyWaitTask& wait) {
  return wait.limit_seconds == 0 && !wait.notify->is_imported.load() &&
         wait.notify->family.load() == NotifyFamily::kFlag;
}

QueuedGate gate_of(const Task& task) {
  switch (task.kind) {
    case TaskKind::kWaitForRecord:
      if (task.wait.stream == nullptr) return {QueuedGate::Kind::kOpen, {}};
      return {QueuedGate::Kind::kRecord, task_at(*task.wait.stream, task.wait.position)};
    case TaskKind::kWaitForNotify:
      if (!is_own_flag(task.notify_wait)) return {QueuedGate::Kind::kOpen, {}};
      return {QueuedGate::Kind::kNotify, {}, task.notify_wait.notify->index};
    case TaskKind::kWaitForShared:
    case TaskKind::kWaitForValue:
    case TaskKind::kHostFunction:
    case TaskKind::kReport:
      return {QueuedGate::Kind::kOpen, {}};
    default:
      return {};
  }
}

std::optional<uint32_t> notify_set_by(const Task& task) {
  if (task.kind != TaskKind::kChangeNotify || task.notify_change.change.value == 0) return {};
  return task.notify_change.notify->index;
}

// Whether it may read memory that was never written.
bool reads_memory(TaskKind kind) {
  switch (kind) {
    case TaskKind::kCopy:
    case TaskKind::kCopyRows:
    case TaskKind::kCopyList:
    case TaskKind::kCopyDescribed:
    case TaskKind::kCopyIndirect:
    case TaskKind::kMemoryHint:
    case TaskKind::kReduce:
      return true;
    default:
      return false;
  }
}

// Calls note(uses) of what `add` adds; not for want of memory.
template <typename Add, typename Note>
void with_uses(Add add, Note note) noexcept {
  try {
    Uses uses;
    add(uses);
    note(uses);
  } catch (const std::bad_alloc&) {
    Order::give_up();
  }
}

}  // namespace

void note_queued_task(const Stream& stream, uint64_t position, const Task& task,
                      const ProgramPlace& place) noexcept {
  if (is_init_checked() && reads_memory(task.kind)) {
    QueuedPlaces::add(task_at(stream, position), place);
  }
  if (!is_order_checked()) return;
  with_uses([&](Uses& uses) { uses = uses_of(task); },
            [&](Uses& uses) {
              Order::note_queued(stream.index, {.position = position,
                                                .behind = {},
                                                .uses = std::move(uses),
                                                .gate = gate_of(task),
                                                .changed_notify = notify_set_by(task),
                                                .place = place});
            });
}

void note_task_done(const FrontTask& front, Order::Outcome outcome) noexcept {
  const StreamTask task = task_at(front.stream, front.position);
  if (is_init_checked() && reads_memory(front.task.kind)) QueuedPlaces::remove(task);
  if (is_order_checked()) Order::note_done(task, outcome);
}

void note_moved(const Copy& copy) noexcept {
  with_uses([&](Uses& uses) { add_copy(uses, copy); }, Order::note_call);
}

void note_moved(const PlaneCopy& rows) noexcept {
  with_uses([&](Uses& uses) { add_plane(uses, rows); }, Order::note_call);
}

void note_set(VirtualRange range) noexcept {
  const MemoryUse uses[] = {{range, AccessUse::kWrite}};
  Order::note_call(uses);
}

void note_freed(const FreeMark& mark, VirtualRange range) noexcept {
  Order::note_freed(task_at(*freed_on(mark), mark.position), range);
}

void note_ending(const FrontTask& front) noexcept {
  Order::note_ending(task_at(front.stream, front.position));
}

void note_found(const FrontTask& front, const Copy& copy) noexcept {
  with_uses(
      [&](Uses& uses) { add_copy(uses, copy); },
      [&](const Uses& uses) { Order::note_found(task_at(front.stream, front.position), uses); });
}

}  // namespace understudy
