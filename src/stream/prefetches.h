// SPDX-License-Identifier: Apache-2.0
//
// Moves of managed memory, on streams. Nothing moves here: a prefetch is a task that keeps its
// place in the stream, and what managed memory remembers of it. Rules: MANAGED-14 to MANAGED-19.
// Any thread may call anything, without a lock.
#pragma once

#include <span>

#include "base/result.h"
#include "memory/managed_memory.h"
#include "stream/streams.h"

namespace understudy {

class Prefetches {
 public:
  Prefetches(ManagedMemory& memory, Streams& streams) : memory_(memory), streams_(streams) {}

  // All of them or none.
  Result<void> queue(const StreamReference& stream, std::span<const PrefetchRequest> requests) {
    US_TRY_ASSIGN(ManagedMemory::PrefetchPlan plan, memory_.plan_prefetch(requests));
    US_TRY(streams_.submit(stream, Task(TaskKind::kMemoryHint, stream.device())));
    memory_.commit(std::move(plan));
    return {};
  }

 private:
  ManagedMemory& memory_;
  Streams& streams_;
};

}  // namespace understudy
