// SPDX-License-Identifier: Apache-2.0
#include "stream/memory_tasks.h"

#include <cinttypes>
#include <new>

#include "base/size_text.h"
#include "memory/device_memory.h"
#include "stream/descriptions.h"
#include "stream/task_uses.h"

namespace understudy {

namespace {

// Cancels a transfer whose task is dropped or stopped.
class TaskCancelToken final : public CancelToken {
 public:
  explicit TaskCancelToken(const FrontTask& front) : front_(front) {}
  bool is_cancelled() const override {
    return front_.stream.drops(front_.position) || front_.is_stopped();
  }

 private:
  const FrontTask& front_;
};

TransferOptions options_of(const FrontTask& front, Sides sides,
                           const CancelToken* cancel = nullptr) {
  return {sides, cancel, task_at(front.stream, front.position)};
}

}  // namespace

Result<void> MemoryTasks::perform(const FrontTask& front) {
  const Task& task = front.task;
  const TaskCancelToken cancel(front);
  const auto options = [&](Sides sides) { return options_of(front, sides, &cancel); };
  switch (task.kind) {
    case TaskKind::kCopy:
      return copy(task.copy, task.device, options(task.sides));
    case TaskKind::kCopyRows:
      return copy_rows(task.rows, task.device, options(task.sides));
    case TaskKind::kCopyList:
      for (const ListedCopy& each : *task.list) {
        US_TRY(copy(each.copy, task.device, options(each.sides)));
      }
      return {};
    case TaskKind::kCopyCaptured:
      return transfer_.copy(task.captured.to, to_address(task.captured.source->data()),
                            task.captured.source->size(), task.device, options(Sides::kFromHost));
    case TaskKind::kCopyDescribed:
      return copy_described(front, options(Sides::kDevices));
    case TaskKind::kCopyIndirect:
      return copy_indirect(front, options(Sides::kDevices));
    case TaskKind::kMemoryHint:
      return check_hint(front);
    case TaskKind::kSet:
      return transfer_.set(task.fill.to, static_cast<uint8_t>(task.fill.value), task.fill.count,
                           task.device, options(Sides::kDevices));
    case TaskKind::kSetWords:
      return transfer_.set_words(task.fill.to, task.fill.value, task.fill.count, task.device,
                                 options(Sides::kDevices));
    case TaskKind::kReduce:
      return transfer_.reduce(task.reduction, task.device, options(Sides::kDevices));
    case TaskKind::kWriteValue:
      note_told(front);
      return transfer_.copy(task.value.address, to_address(&task.value.value),
                            sizeof task.value.value, task.device, options(Sides::kFromHost));
    case TaskKind::kFree:
      if (is_order_checked()) [[unlikely]]
        note_ending(front);
      return task.free.memory->free_unobserved(task.free.range.base);
    default:
      return {};
  }
}

void MemoryTasks::drop(const Task& task) noexcept {
  if (task.kind != TaskKind::kFree) return;
  try {
    // What is not an allocation any more is nothing to free.
    (void)task.free.memory->free_unobserved(task.free.range.base);
  } catch (const std::bad_alloc&) {
    // Only to say what is there instead of an allocation.
  }
}

Result<void> MemoryTasks::pin_host_side(VirtualRange range, HazardPin& pin) {
  if (host_.pin(range, pin)) return {};
  return Error::format(ErrorCode::kInvalidParam,
                       "the range of %s at %p is not page-locked host memory any more",
                       SizeText(range.size).c_str(), to_pointer(range.base));
}

Result<void> MemoryTasks::copy(const Copy& copy, unsigned device, const TransferOptions& options) {
  if (options.sides == Sides::kDevices) {
    return transfer_.copy(copy.to, copy.from, copy.count, device, options);
  }
  HazardPin pin;
  const VirtualAddress host = options.sides == Sides::kFromHost ? copy.from : copy.to;
  US_TRY(pin_host_side({host, copy.count}, pin));
  return transfer_.copy(copy.to, copy.from, copy.count, device, options);
}

template <typename Value>
Result<Value> MemoryTasks::read(const FrontTask& front, VirtualAddress address) {
  Value value{};
  US_TRY(transfer_.copy(to_address(&value), address, sizeof value, front.task.device,
                        options_of(front, Sides::kToHost)));
  return value;
}

Result<void> MemoryTasks::copy_found(const FrontTask& front, const Copy& copy,
                                     const TransferOptions& options) {
  if (copy.to == copy.from) return {};
  if (is_order_checked()) [[unlikely]]
    note_found(front, copy);
  return transfer_.copy(copy.to, copy.from, copy.count, front.task.device, options);
}

Result<void> MemoryTasks::copy_described(const FrontTask& front, const TransferOptions& options) {
  const VirtualAddress description = front.task.description;
  US_TRY_ASSIGN(const auto found, read<CopyDescription>(front, description));
  if (found.mark != CopyDescription::kMark || found.count == 0 ||
      found.count > kMostDescribedBytes) {
    return Error::format(ErrorCode::kInvalidParam, "%p holds no description of a copy",
                         to_pointer(description));
  }
  return copy_found(front, {found.to, found.from, found.count}, options);
}

Result<void> MemoryTasks::copy_indirect(const FrontTask& front, const TransferOptions& options) {
  const IndirectCopy& copy = front.task.indirect;
  US_TRY_ASSIGN(VirtualAddress to, read<VirtualAddress>(front, copy.to_cell));
  US_TRY_ASSIGN(VirtualAddress from, read<VirtualAddress>(front, copy.from_cell));
  if (__builtin_add_overflow(to, copy.to_offset, &to) ||
      __builtin_add_overflow(from, copy.from_offset, &from)) {
    return Error::format(ErrorCode::kInvalidParam,
                         "offsets %" PRIu64 " and %" PRIu64 " run past the end of all addresses",
                         copy.to_offset, copy.from_offset);
  }
  return copy_found(front, {to, from, copy.count}, options);
}

Result<void> MemoryTasks::check_hint(const FrontTask& front) {
  const VirtualAddress description = front.task.description;
  if (description == 0) return {};
  US_TRY_ASSIGN(const auto found, read<RangeDescription>(front, description));
  if (found.mark == RangeDescription::kMark && found.size != 0) return {};
  return Error::format(ErrorCode::kInvalidParam, "%p holds no description of a range",
                       to_pointer(description));
}

Result<void> MemoryTasks::copy_rows(const PlaneCopy& rows, unsigned device,
                                    const TransferOptions& options) {
  if (options.sides == Sides::kDevices) return transfer_.copy_rows(rows, device, options);
  const bool from_host = options.sides == Sides::kFromHost;
  const uint64_t pitch = from_host ? rows.from_pitch : rows.to_pitch;
  uint64_t extent = 0;
  if (__builtin_mul_overflow(pitch, rows.height - 1, &extent) ||
      __builtin_add_overflow(extent, rows.width, &extent)) {
    return Error::format(ErrorCode::kInvalidParam, "the rows run past the end of all addresses");
  }
  HazardPin pin;
  US_TRY(pin_host_side({from_host ? rows.from : rows.to, extent}, pin));
  return transfer_.copy_rows(rows, device, options);
}

}  // namespace understudy
