// SPDX-License-Identifier: Apache-2.0
//
// What this process tells people of itself, in its part of the ledger: a viewer of the server
// (server_view.h) reads it and cannot ask. Nothing in the library follows from these figures.
//
// Each function is one or two plain stores where it is called often. Any thread may call anything.
// REQUIRES, for all of them: the process has a slot.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "base/thread_shard.h"
#include "server/process_slots.h"

namespace understudy {

class OwnFigures {
 public:
  explicit OwnFigures(const ProcessSlots& slots) : slots_(slots) {}

  // Once, before other threads use the server.
  void set_soc(std::string_view name) const {
    ProcessFigures& own = figures();
    name.copy(own.soc.data(), own.soc.size() - 1);
  }

  // Memory of a device, by its number on the server, was charged.
  void count_charge(unsigned device) const {
    const unsigned thread = thread_number();
    auto& charges = figures().charges;
    if (thread < kShards) [[likely]] {
      std::atomic<uint64_t>& count = charges[thread][device];
      count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      charges[kShards][device].fetch_add(1, std::memory_order_relaxed);
    }
  }

  // Host memory that was put behind blocks, or taken away.
  void add_backing(BackingKind kind, int64_t bytes) const {
    figures().backing[static_cast<unsigned>(kind)].fetch_add(static_cast<uint64_t>(bytes),
                                                             std::memory_order_relaxed);
  }
  // All page-locked host memory. One thread at a time.
  void set_page_locked(uint64_t bytes) const {
    figures().page_locked.store(bytes, std::memory_order_relaxed);
  }

  void add_stream() const { figures().streams.fetch_add(1, std::memory_order_relaxed); }
  void remove_stream() const { figures().streams.fetch_sub(1, std::memory_order_relaxed); }
  // The mark of a stream, by its number in the process; null where there are too many. Marks of
  // consecutive streams lie in different cache lines.
  std::atomic<uint8_t>* busy_mark(uint32_t stream) const {
    constexpr unsigned kLines = ProcessFigures::kStreamMarks / 64;
    if (stream >= ProcessFigures::kStreamMarks) return nullptr;
    return &figures().busy[stream % kLines * 64 + stream / kLines];
  }

 private:
  ProcessFigures& figures() const { return slots_.own_figures(); }

  const ProcessSlots& slots_;
};

}  // namespace understudy
