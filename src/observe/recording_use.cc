// SPDX-License-Identifier: Apache-2.0
#include "observe/recording_use.h"

#include <new>

#include "platform/asymmetric_fence.h"

namespace understudy {

constinit thread_local UseRecord* own_use_record [[gnu::tls_model("initial-exec")]] = nullptr;

namespace {

// A number that differs between a process and its children.
std::atomic<unsigned> this_process{0};
// Records are only ever added, in front.
std::atomic<UseRecord*> records{nullptr};
thread_local constinit bool has_ended = false;

// Gives the record to other threads when its thread ends.
struct RecordReturner {
  ~RecordReturner() {
    has_ended = true;
    if (UseRecord* const record = own_use_record) {
      own_use_record = nullptr;
      release_use_record(*record);
    }
  }
};

UseRecord* take_record() noexcept {
  const unsigned process = this_process.load(std::memory_order_relaxed);
  for (UseRecord* record = records.load(); record != nullptr; record = record->next) {
    bool is_taken = false;
    if (!record->taken.compare_exchange_strong(is_taken, true)) continue;
    record->process.store(process);
    return record;
  }
  auto* const record = new (std::nothrow) UseRecord;
  if (record == nullptr) return nullptr;
  record->taken.store(true, std::memory_order_relaxed);
  record->process.store(process, std::memory_order_relaxed);
  record->needs_fence = !platform::has_heavy_fence();
  record->next = records.load();
  while (!records.compare_exchange_weak(record->next, record)) {
  }
  return record;
}

}  // namespace

UseRecord* claim_use_record() noexcept {
  if (has_ended) return take_record();
  thread_local RecordReturner returner;
  (void)returner;
  own_use_record = take_record();
  return own_use_record;
}

void release_use_record(UseRecord& record) noexcept {
  record.taken.store(false, std::memory_order_release);
}

bool order_uses() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return !platform::has_heavy_fence() || platform::heavy_fence().ok();
}

bool is_used(const void* thing) noexcept {
  const unsigned process = this_process.load(std::memory_order_relaxed);
  for (const UseRecord* record = records.load(); record != nullptr; record = record->next) {
    if (record->process.load(std::memory_order_relaxed) == process &&
        record->used.load(std::memory_order_acquire) == thing) {
      return true;
    }
  }
  return false;
}

void forget_uses_in_fork_child() noexcept {
  const unsigned process = this_process.fetch_add(1, std::memory_order_relaxed) + 1;
  UseRecord* const own = own_use_record;
  if (own == nullptr) return;
  own->used.store(nullptr, std::memory_order_relaxed);
  own->process.store(process, std::memory_order_relaxed);
}

}  // namespace understudy
