// SPDX-License-Identifier: Apache-2.0
//
// Slots for objects of one type, found by number. The memory of a slot never becomes anything else
// (type-stable), so a thread with a stale number may look at the slot and see that it is not what
// it wanted. Slots are handed out from per-shard lists; a full list spills to the others.
//
// T is default-constructed once per slot and has a `uint32_t pool_next` for the pool's use while
// the slot is free. Any thread may call anything.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/mutex.h"
#include "base/thread_shard.h"
#include "base/zeroed_array.h"

namespace understudy {

// Numbers of slots fit this many bits.
inline constexpr unsigned kPoolIndexBits = 26;

// What to say when a pool has no slot left.
[[gnu::cold]] inline Error out_of_numbers(const char* of_what) {
  return Error::format(ErrorCode::kOutOfResources, "all %u %s numbers are in use",
                       1U << kPoolIndexBits, of_what);
}

// kChunk: how many slots are made at a time.
template <typename T, uint32_t kChunk = 256>
class ObjectPool {
 public:
  ObjectPool() : chunks_(kMaxChunks) {}
  ~ObjectPool() {
    for (uint32_t chunk = 0; chunk * kChunk < fresh_; ++chunk) delete[] chunks_[chunk].load();
  }
  ObjectPool(const ObjectPool&) = delete;
  ObjectPool& operator=(const ObjectPool&) = delete;

  // A free slot's number; nothing once all 2^26 are taken.
  std::optional<uint32_t> take() {
    Shard& shard = shards_[thread_shard()];
    {
      BriefLock lock(shard.mutex);
      if (shard.free.count > 0) [[likely]]
        return pop(shard.free);
    }
    List batch = take_batch();
    if (batch.count == 0) return std::nullopt;
    const uint32_t mine = pop(batch);
    BriefLock lock(shard.mutex);
    while (batch.count > 0) push(shard.free, pop(batch));
    return mine;
  }

  void give_back(uint32_t index) {
    Shard& shard = shards_[thread_shard()];
    List spill;
    {
      BriefLock lock(shard.mutex);
      push(shard.free, index);
      if (shard.free.count <= 2 * kBatch) [[likely]]
        return;
      while (spill.count < kBatch) push(spill, pop(shard.free));
    }
    MutexLock lock(common_mutex_);
    while (spill.count > 0) push(common_, pop(spill));
  }

  // REQUIRES: index was once handed out.
  T& at(uint32_t index) const {
    return chunks_[index / kChunk].load(std::memory_order_acquire)[index % kChunk];
  }
  // The slot of that number, if there is one, may be asked for soon.
  void prefetch(uint32_t index) const {
    const T* const chunk = chunks_[index / kChunk].load(std::memory_order_relaxed);
    if (chunk != nullptr) __builtin_prefetch(&chunk[index % kChunk], 1);
  }
  // Whether this number was ever handed out, so that at() may be asked for it.
  bool exists(uint32_t index) const {
    return index < kMaxSlots && chunks_[index / kChunk].load(std::memory_order_acquire) != nullptr;
  }
  // Calls visit(slot) for every slot that was ever handed out, free ones included.
  template <typename Visit>
  void for_each(Visit visit) const {
    const uint32_t count = handed_out();
    for (uint32_t index = 0; index < count; ++index) visit(at(index));
  }

 private:
  static constexpr uint32_t kMaxSlots = uint32_t{1} << kPoolIndexBits;
  static constexpr uint32_t kMaxChunks = kMaxSlots / kChunk;
  static constexpr uint32_t kBatch = 32;
  static_assert(kChunk % kBatch == 0);

  struct List {
    uint32_t head = 0;  // meaningful while count > 0
    uint32_t count = 0;
  };
  struct alignas(64) Shard {
    BriefMutex mutex{LockRank::kObjectPool};
    List free US_GUARDED_BY(mutex);
  };

  void push(List& list, uint32_t index) const {
    at(index).pool_next = list.head;
    list.head = index;
    ++list.count;
  }
  uint32_t pop(List& list) const {
    const uint32_t index = list.head;
    list.head = at(index).pool_next;
    --list.count;
    return index;
  }

  uint32_t handed_out() const US_EXCLUDES(common_mutex_) {
    MutexLock lock(common_mutex_);
    return fresh_;
  }

  List take_batch() US_EXCLUDES(common_mutex_) {
    List batch;
    MutexLock lock(common_mutex_);
    while (common_.count > 0 && batch.count < kBatch) push(batch, pop(common_));
    if (batch.count > 0 || fresh_ == kMaxSlots) return batch;
    if (fresh_ % kChunk == 0) {
      chunks_[fresh_ / kChunk].store(new T[kChunk], std::memory_order_release);
    }
    while (batch.count < kBatch) push(batch, fresh_++);
    return batch;
  }

  ZeroedArray<std::atomic<T*>> chunks_;
  std::array<Shard, kShards> shards_;
  mutable Mutex common_mutex_{LockRank::kObjectPool};
  List common_ US_GUARDED_BY(common_mutex_);
  uint32_t fresh_ US_GUARDED_BY(common_mutex_) = 0;  // slots from here on were never handed out
};

}  // namespace understudy
