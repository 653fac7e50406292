// SPDX-License-Identifier: Apache-2.0
//
// Copies and sets, at once and on streams. Whether a call on a stream is queued, is made at once
// after the tasks of the stream, or puts its source aside, follows from the class of the memory on
// both sides. Whatever writes memory here wakes the streams that wait for a value in it.
// Rules: COPY, COPY2D, SET, ACOPY, BATCH, DESC, SMEM. Any thread may call anything, without a lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "device/settings.h"
#include "memory/host_budget.h"
#include "memory/memory_class.h"
#include "memory/transfer.h"
#include "stream/streams.h"
#include "stream/task.h"

namespace understudy {

// What a program says of the direction of a copy.
enum class CopyKind : uint8_t {
  kHostToHost,
  kHostToDevice,
  kDeviceToHost,
  kDeviceToDevice,
  kDefault,            // as the addresses say
  kHostThroughBuffer,  // to the device, with the source put aside
};

class Copies {
 public:
  Copies(const Settings& settings, MemoryClasses classes, Transfer& transfer, HostBudget& budget,
         Streams& streams)
      : settings_(settings),
        classes_(classes),
        transfer_(transfer),
        budget_(budget),
        streams_(streams) {}

  // ---- At once, on behalf of a device. REQUIRES: there are bytes.
  Result<void> copy(const Copy& copy, unsigned device) {
    if (is_order_checked()) [[unlikely]]
      note_moved(copy);
    const WriteNotice notice(streams_);
    return transfer_.copy(copy.to, copy.from, copy.count, device);
  }
  Result<void> copy_rows(const PlaneCopy& rows, unsigned device) {
    if (is_order_checked()) [[unlikely]]
      note_moved(rows);
    const WriteNotice notice(streams_);
    return transfer_.copy_rows(rows, device);
  }
  // Makes copy_at(0) … copy_at(count - 1) one after the other; those without bytes are skipped.
  // `failed` is the first that failed.
  template <typename CopyAt>
  Result<void> copy_each(size_t count, CopyAt copy_at, unsigned device, size_t& failed) {
    const WriteNotice notice(streams_);
    for (size_t i = 0; i < count; ++i) {
      const Copy each = copy_at(i);
      if (each.count == 0) continue;
      if (is_order_checked()) [[unlikely]]
        note_moved(each);
      if (Result<void> copied = transfer_.copy(each.to, each.from, each.count, device);
          !copied.ok()) {
        failed = i;
        return copied;
      }
    }
    return {};
  }
  Result<void> set(VirtualAddress to, uint8_t value, uint64_t count, unsigned device) {
    if (is_order_checked()) [[unlikely]]
      note_set({to, count});
    const WriteNotice notice(streams_);
    return transfer_.set(to, value, count, device);
  }
  // SET-11: memory of this library alone, which can be asked first.
  Result<void> check_words(VirtualAddress to, uint64_t count) const;
  Result<void> set_words(VirtualAddress to, uint32_t value, uint64_t count, unsigned device);

  // Refuses an address where no memory is, in a sentence that says what became of it.
  Result<void> check_memory(VirtualAddress address) const;
  // Writes the description of a copy within one device, which is in memory of that device.
  Result<void> describe(VirtualAddress description, const Copy& copy, unsigned device);

  // ---- On a stream.
  Result<void> queue_copy(const StreamReference& stream, const Copy& copy, CopyKind kind);
  Result<void> queue_rows(const StreamReference& stream, const PlaneCopy& rows);
  Result<void> queue_list(const StreamReference& stream, std::span<const Copy> copies,
                          size_t& failed);
  // The copy that memory describes when the task runs.
  Result<void> queue_described(const StreamReference& stream, VirtualAddress description);
  Result<void> queue_indirect(const StreamReference& stream, const IndirectCopy& copy);
  // Queued for device memory; host memory is set at once, ahead of what is queued.
  Result<void> queue_set(const StreamReference& stream, const Fill& fill);
  Result<void> queue_set_words(const StreamReference& stream, const Fill& fill);
  // Sets bytes of device memory, and of no other, to zero.
  Result<void> queue_clear(const StreamReference& stream, VirtualAddress to, uint64_t count);
  // Whether both sides of a reduction are memory of the stream's device.
  Result<void> check_reduction(const StreamReference& stream, const Reduction& reduction) {
    return transfer_.check_reduction(reduction, stream.device());
  }
  // As the stream was made: it decides what becomes of results that are not finite.
  Result<void> queue_reduction(const StreamReference& stream, Reduction reduction);
  // Writes a value, or waits for one.
  Result<void> queue_value(const StreamReference& stream, TaskKind kind, const ValueTask& value);

 private:
  // Tells streams that wait for memory to change, at the end of its scope, that it may have.
  class WriteNotice {
   public:
    explicit WriteNotice(Streams& streams) : wait_graph_(streams.wait_graph()) {}
    ~WriteNotice() { wait_graph_.note_write(); }
    WriteNotice(const WriteNotice&) = delete;
    WriteNotice& operator=(const WriteNotice&) = delete;

   private:
    WaitGraph& wait_graph_;
  };

  Result<void> queue_captured(const StreamReference& stream, const Copy& copy,
                              const CopySides& sides);
  // A place for a description; gives its device, of managed memory the one that asks.
  Result<unsigned> check_description(VirtualAddress description, unsigned device) const;
  Result<void> check_cell(VirtualAddress cell, const char* name) const;
  // What cannot be told any more when the task runs.
  Result<void> check_sides(const Copy& copy) const;
  Result<void> submit(const StreamReference& stream, const Task& task) {
    US_TRY(streams_.submit(stream, task));
    return {};
  }

  const Settings& settings_;
  const MemoryClasses classes_;
  Transfer& transfer_;
  HostBudget& budget_;
  Streams& streams_;
};

}  // namespace understudy
