// SPDX-License-Identifier: Apache-2.0
//
// What of the recorder each thread uses at a moment, so that what a recording has is given back
// when it was stopped and no thread is in the middle of a record. A thread publishes it in a record
// of its own, which costs it a store; the thread that gives back has all threads pass a fence
// (platform/asymmetric_fence.h), and then looks at all records.
//
// Records are never freed, and free for another thread when theirs ends. In a fork child those of
// its parent's threads count for nothing. Any thread may call anything; nothing takes a lock.
#pragma once

#include <atomic>

namespace understudy {

struct alignas(64) UseRecord {
  std::atomic<const void*> used{nullptr};
  std::atomic<bool> taken{false};
  std::atomic<unsigned> process{0};  // whose thread it is
  bool needs_fence = false;          // where the kernel has none for all threads
  UseRecord* next = nullptr;         // constant once the record is in the list
};

// That of the calling thread; null before its first use, and after its end.
extern constinit thread_local UseRecord* own_use_record [[gnu::tls_model("initial-exec")]];
// Null if there is no memory for one. May be that of one use only, where the thread has ended.
[[gnu::cold]] UseRecord* claim_use_record() noexcept;
// Behind the use of such a record.
void release_use_record(UseRecord& record) noexcept;

// Between the publication of what a thread uses and its second look whether that is still there.
inline void order_use(const UseRecord& record) noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (record.needs_fence) [[unlikely]]
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

// Before the looks of a thread that gives back. False where the kernel refuses: then nothing is
// known.
bool order_uses() noexcept;
bool is_used(const void* thing) noexcept;

void forget_uses_in_fork_child() noexcept;

}  // namespace understudy
