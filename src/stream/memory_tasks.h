// SPDX-License-Identifier: Apache-2.0
//
// Tasks that move, set or free bytes. They run to their end, unless the program drops or stops
// them. The owner of the stream calls.
#pragma once

#include "base/result.h"
#include "base/sizes.h"
#include "base/virtual_range.h"
#include "memory/host_memory.h"
#include "memory/transfer.h"
#include "stream/front_task.h"
#include "stream/task.h"

namespace understudy {

// Whether a task takes too long for a thread with a limit of time, and is a turn of its own.
inline bool takes_long(const Task& task) {
  constexpr uint64_t kShortCopy = kMiB;
  switch (task.kind) {
    case TaskKind::kCopy:
      return task.copy.count > kShortCopy;
    case TaskKind::kCopyRows:
      return task.rows.width * task.rows.height > kShortCopy;
    case TaskKind::kCopyCaptured:
      return task.captured.source->size() > kShortCopy;
    case TaskKind::kCopyIndirect:
      return task.indirect.count > kShortCopy;
    case TaskKind::kCopyList:
    case TaskKind::kCopyDescribed:  // whatever it says by then
      return true;
    case TaskKind::kSet:
      return task.fill.count > kShortCopy;
    case TaskKind::kSetWords:
      return task.fill.count > kShortCopy / sizeof(uint32_t);
    case TaskKind::kReduce:
      return task.reduction.count > kShortCopy;
    default:
      return false;
  }
}

class MemoryTasks {
 public:
  MemoryTasks(Transfer& transfer, HostMemory& host) : transfer_(transfer), host_(host) {}

  // REQUIRES: the task is one of those.
  Result<void> perform(const FrontTask& front);
  // What is done about a task that does not run.
  static void drop(const Task& task) noexcept;

 private:
  Result<void> copy(const Copy& copy, unsigned device, const TransferOptions& options);
  Result<void> copy_rows(const PlaneCopy& rows, unsigned device, const TransferOptions& options);
  Result<void> copy_described(const FrontTask& front, const TransferOptions& options);
  Result<void> copy_indirect(const FrontTask& front, const TransferOptions& options);
  // A copy that the task has found out about.
  Result<void> copy_found(const FrontTask& front, const Copy& copy, const TransferOptions& options);
  Result<void> check_hint(const FrontTask& front);
  // A value that is in device memory.
  template <typename Value>
  Result<Value> read(const FrontTask& front, VirtualAddress address);
  // Keeps page-locked host memory while the pin lives; fails if it is gone.
  Result<void> pin_host_side(VirtualRange range, HazardPin& pin);

  Transfer& transfer_;
  HostMemory& host_;
};

}  // namespace understudy
