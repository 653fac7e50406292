// SPDX-License-Identifier: Apache-2.0
#include "stream/copies.h"

#include <cinttypes>
#include <memory>

#include "base/size_text.h"
#include "observe/advice.h"
#include "stream/descriptions.h"

namespace understudy {

namespace {

// The table of ACOPY-09 for pairs with unregistered memory; others take any kind.
bool is_accepted(const CopySides& sides, CopyKind kind) {
  if (sides.has(MemoryClass::kManaged)) return true;  // exempt (ACOPY-09)
  const MemoryClass to = sides.target.memory_class;
  const MemoryClass from = sides.source.memory_class;
  if (kind == CopyKind::kDefault || !sides.has(MemoryClass::kUnregistered) || from == to) {
    return true;
  }
  if (to == MemoryClass::kDevice) {
    return kind == CopyKind::kHostToDevice || kind == CopyKind::kDeviceToDevice;
  }
  if (from == MemoryClass::kDevice) {
    return kind == CopyKind::kDeviceToHost || kind == CopyKind::kDeviceToDevice;
  }
  if (from == MemoryClass::kHost) {
    return kind == CopyKind::kHostToHost || kind == CopyKind::kHostToDevice;
  }
  return kind == CopyKind::kHostToHost || kind == CopyKind::kDeviceToHost;
}

}  // namespace

Result<void> Copies::check_sides(const Copy& copy) const {
  US_TRY(classes_.check_pool_memory(copy.to, copy.count));
  return classes_.check_pool_memory(copy.from, copy.count);
}

// ---- At once ----

Result<void> Copies::check_words(VirtualAddress to, uint64_t count) const {
  if (classes_.is_known({to, count * sizeof(uint32_t)})) return {};
  return classes_.unfit(to, "memory of this interface that holds so many words",
                        ErrorCode::kInvalidArgument);
}

Result<void> Copies::set_words(VirtualAddress to, uint32_t value, uint64_t count, unsigned device) {
  US_TRY(check_words(to, count));
  if (is_order_checked()) [[unlikely]]
    note_set({to, count * sizeof(uint32_t)});
  const WriteNotice notice(streams_);
  return transfer_.set_words(to, value, count, device);
}

Result<void> Copies::check_memory(VirtualAddress address) const {
  if (classes_.at(address).memory_class != MemoryClass::kNone) return {};
  return classes_.unfit(address, "memory", ErrorCode::kInvalidParam);
}

Result<unsigned> Copies::check_description(VirtualAddress description, unsigned device) const {
  const std::optional<unsigned> owner = classes_.device_at(description, device);
  if (owner && is_aligned(description, kDescriptionAlignment)) return *owner;
  return Error::format(ErrorCode::kInvalidParam,
                       "desc %p is not device memory at a multiple of %" PRIu64,
                       to_pointer(description), kDescriptionAlignment);
}

Result<void> Copies::describe(VirtualAddress description, const Copy& copy, unsigned device) {
  US_TRY_ASSIGN(const unsigned owner, check_description(description, device));
  for (const VirtualAddress side : {copy.from, copy.to}) {
    if (classes_.device_at(side, owner) == owner) continue;
    return Error::format(ErrorCode::kInvalidParam,
                         "%p is not memory of device %u, where the description is",
                         to_pointer(side), owner);
  }
  if (copy.count > kMostDescribedBytes) {
    return Error::format(ErrorCode::kInvalidParam, "count %s is more than %s",
                         SizeText(copy.count).c_str(), SizeText(kMostDescribedBytes).c_str());
  }
  const CopyDescription text{.to = copy.to, .from = copy.from, .count = copy.count};
  return this->copy({description, to_address(&text), sizeof text}, device);
}

// ---- On a stream ----

Result<void> Copies::queue_copy(const StreamReference& stream, const Copy& copy, CopyKind kind) {
  const CopySides sides = classes_.of_copy(copy.to, copy.from);
  if (sides.has(MemoryClass::kNone)) return classes_.explain(sides, copy.to, copy.from);
  if (kind == CopyKind::kHostThroughBuffer) return queue_captured(stream, copy, sides);
  // Where the program runs on the device, there is one kind of memory.
  const bool one_memory = settings_.product.run_mode == RunMode::kDevice;
  if (one_memory && kind != CopyKind::kDefault) kind = CopyKind::kDeviceToDevice;
  if (!is_accepted(sides, kind)) {
    return Error::format(ErrorCode::kInvalidParam, "kind %d does not fit memory at %p and %p",
                         static_cast<int>(kind), to_pointer(copy.from), to_pointer(copy.to));
  }
  if (!sides.has_device_side() && !one_memory) {
    return Error::format(ErrorCode::kNotSupported,
                         "%p and %p are both host memory, which streams do not copy",
                         to_pointer(copy.from), to_pointer(copy.to));
  }
  if (sides.has(MemoryClass::kUnregistered) && !stream.holds_tasks()) {
    if (is_advised()) [[unlikely]]
      advise_pageable(copy.count);
    US_TRY(streams_.drain(stream));
    return this->copy(copy, stream.device());
  }
  US_TRY(check_sides(copy));
  Task task(TaskKind::kCopy, stream.device());
  task.sides = sides.for_task();
  task.copy = copy;
  return submit(stream, task);
}

// The source is put aside, so that the program may use it again at once (ACOPY-11).
Result<void> Copies::queue_captured(const StreamReference& stream, const Copy& copy,
                                    const CopySides& sides) {
  const MemoryClass to = sides.target.memory_class;
  if (sides.source.memory_class == MemoryClass::kDevice ||
      (to != MemoryClass::kDevice && to != MemoryClass::kManaged)) {
    return Error::format(ErrorCode::kInvalidParam,
                         "kind 5 copies from host to device memory, not from %p to %p",
                         to_pointer(copy.from), to_pointer(copy.to));
  }
  US_TRY(classes_.check_pool_memory(copy.to, copy.count));
  US_TRY_ASSIGN(auto captured, CapturedBytes::make(budget_, copy.count));
  US_TRY(transfer_.copy(to_address(captured->data()), copy.from, copy.count, stream.device()));
  Task task(TaskKind::kCopyCaptured, stream.device());
  task.captured = {copy.to, captured.release()};
  return submit(stream, task);
}

Result<void> Copies::queue_rows(const StreamReference& stream, const PlaneCopy& rows) {
  const CopySides sides = classes_.of_copy(rows.to, rows.from);
  if (sides.has(MemoryClass::kNone)) return classes_.explain(sides, rows.to, rows.from);
  if (!sides.has_device_side()) {
    return Error::format(ErrorCode::kInvalidParam, "%p and %p are both host memory",
                         to_pointer(rows.from), to_pointer(rows.to));
  }
  if (sides.has(MemoryClass::kUnregistered) && !stream.holds_tasks()) {
    if (is_advised()) [[unlikely]]
      advise_pageable(rows.width * rows.height);
    US_TRY(streams_.drain(stream));
    return copy_rows(rows, stream.device());
  }
  const uint64_t last_row = rows.height - 1;
  US_TRY(classes_.check_pool_memory(rows.to, last_row * rows.to_pitch + rows.width));
  US_TRY(classes_.check_pool_memory(rows.from, last_row * rows.from_pitch + rows.width));
  Task task(TaskKind::kCopyRows, stream.device());
  task.sides = sides.for_task();
  task.rows = rows;
  return submit(stream, task);
}

Result<void> Copies::queue_list(const StreamReference& stream, std::span<const Copy> copies,
                                size_t& failed) {
  auto list = std::make_unique<CopyList>();
  list->reserve(copies.size());
  for (const Copy& each : copies) {
    const CopySides sides = classes_.of_copy(each.to, each.from);
    if (sides.has(MemoryClass::kNone)) {
      failed = list->size();
      return classes_.explain(sides, each.to, each.from);
    }
    if (sides.has(MemoryClass::kUnregistered) && !stream.holds_tasks()) {
      if (is_advised()) [[unlikely]]
        advise_pageable(each.count);
      US_TRY(streams_.drain(stream));
      return copy_each(
          copies.size(), [&](size_t i) { return copies[i]; }, stream.device(), failed);
    }
    US_TRY(check_sides(each));
    list->push_back({each, sides.for_task()});
  }
  Task task(TaskKind::kCopyList, stream.device());
  task.list = list.release();
  return submit(stream, task);
}

Result<void> Copies::queue_described(const StreamReference& stream, VirtualAddress description) {
  US_TRY(check_description(description, stream.device()));
  Task task(TaskKind::kCopyDescribed, stream.device());
  task.description = description;
  return submit(stream, task);
}

Result<void> Copies::check_cell(VirtualAddress cell, const char* name) const {
  if (classes_.is_device(cell)) return {};
  return Error::format(ErrorCode::kInvalidParam,
                       "%s is %p and must be the device address of a cell with an address", name,
                       to_pointer(cell));
}

Result<void> Copies::queue_indirect(const StreamReference& stream, const IndirectCopy& copy) {
  US_TRY(check_cell(copy.to_cell, "dst"));
  US_TRY(check_cell(copy.from_cell, "src"));
  Task task(TaskKind::kCopyIndirect, stream.device());
  task.indirect = copy;
  return submit(stream, task);
}

Result<void> Copies::queue_set(const StreamReference& stream, const Fill& fill) {
  if (!classes_.is_device(fill.to)) {
    return set(fill.to, static_cast<uint8_t>(fill.value), fill.count, stream.device());
  }
  US_TRY(classes_.check_pool_memory(fill.to, fill.count));
  Task task(TaskKind::kSet, stream.device());
  task.fill = fill;
  return submit(stream, task);
}

Result<void> Copies::queue_set_words(const StreamReference& stream, const Fill& fill) {
  if (!classes_.is_device(fill.to)) {
    return set_words(fill.to, fill.value, fill.count, stream.device());
  }
  US_TRY(check_words(fill.to, fill.count));
  US_TRY(classes_.check_pool_memory(fill.to, fill.count * sizeof(uint32_t)));
  Task task(TaskKind::kSetWords, stream.device());
  task.fill = fill;
  return submit(stream, task);
}

Result<void> Copies::queue_clear(const StreamReference& stream, VirtualAddress to, uint64_t count) {
  const std::optional<VirtualRange> range = VirtualRange::make(to, count);
  if (!range || !classes_.is_device(*range)) {
    return Error::format(ErrorCode::kInvalidParam, "%zu bytes at %p are not device memory",
                         static_cast<size_t>(count), to_pointer(to));
  }
  Task task(TaskKind::kSet, stream.device());
  task.fill = {to, count, 0};
  return submit(stream, task);
}

Result<void> Copies::queue_reduction(const StreamReference& stream, Reduction reduction) {
  reduction.operation.mode = stream.overflow_mode();
  Task task(TaskKind::kReduce, stream.device());
  task.reduction = reduction;
  return submit(stream, task);
}

Result<void> Copies::queue_value(const StreamReference& stream, TaskKind kind,
                                 const ValueTask& value) {
  if (!is_aligned(value.address, sizeof value.value)) {
    return Error::format(ErrorCode::kInvalidParam, "devAddr %p is not a multiple of 8",
                         to_pointer(value.address));
  }
  if (!classes_.is_device(value.address)) {
    return classes_.unfit(value.address, "device memory", ErrorCode::kInvalidParam);
  }
  US_TRY(classes_.check_pool_memory(value.address, sizeof value.value));
  Task task(kind, stream.device());
  task.value = value;
  return submit(stream, task);
}

}  // namespace understudy
