// SPDX-License-Identifier: Apache-2.0
//
// Objects of one kind that programs hold by handle. A handle names a slot and the generation of
// the object in it; a stale, foreign or invented one is found out by comparing, never by following
// it. Slots are type-stable (see ObjectPool). A slot whose generations are used up is not used
// again: an ancient handle would fit it.
//
// T has what ObjectPool needs, `uint32_t index`, and `SlotLife life() const`, one atomic load. The
// owner of the table begins and ends the life of a slot's object; it may change right after
// find(), so an owner that needs the object to stay compares once more in the step that keeps it.
// Any thread may call anything.
#pragma once

#include <cinttypes>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "base/handle.h"
#include "base/object_pool.h"
#include "base/result.h"

namespace understudy {

// What the messages call an object, its beginning and its end.
struct HandleWords {
  const char* noun;
  const char* begun;
  const char* ended;
};

// kChunk: see ObjectPool.
template <typename T, uint32_t kChunk = 256>
class HandleTable {
 public:
  HandleTable(HandleTag tag, const HandleWords& words) : tag_(tag), words_(words) {}

  // A slot whose object the caller begins. Other threads may read it meanwhile, with old handles.
  Result<T*> take() {
    const std::optional<uint32_t> index = pool_.take();
    if (!index) return out_of_numbers(words_.noun);
    T& slot = pool_.at(*index);
    if (slot.index != *index) slot.index = *index;  // once: it is read without a lock
    return &slot;
  }
  // Undoes a take: the object never began.
  void cancel(T& slot) { pool_.give_back(slot.index); }
  // The object has ended, which raised the generation; the slot may have another one.
  void recycle(T& slot) {
    if (slot.life().generation != 0) pool_.give_back(slot.index);
  }

  // REQUIRES: the slot of that index was taken once.
  T& at(uint32_t index) const { return pool_.at(index); }

  // See ObjectPool.
  void prefetch(uint32_t index) const { pool_.prefetch(index); }

  uint64_t handle_of(const T& slot) const { return handle_of(slot, slot.life().generation); }
  uint64_t handle_of(const T& slot, uint32_t generation) const {
    return HandleParts{tag_, generation, slot.index}.pack();
  }

  // The slot that a handle names, whether or not its object lives; null if there never was one.
  T* slot_of(uint64_t handle) const {
    const HandleParts parts = HandleParts::split(handle);
    if (parts.tag != tag_ || !pool_.exists(parts.index)) return nullptr;
    return &pool_.at(parts.index);
  }
  // The slot of a handle whose object lives at this moment; null if it does not.
  T* find_live(uint64_t handle) const {
    T* const slot = slot_of(handle);
    if (slot == nullptr) return nullptr;
    const SlotLife life = slot->life();
    return life.alive && life.generation == HandleParts::split(handle).generation ? slot : nullptr;
  }
  Result<T*> find(uint64_t handle) const {
    T* const slot = find_live(handle);
    if (slot == nullptr) return unknown(handle);
    return slot;
  }
  [[gnu::cold]] Error unknown(uint64_t handle) const {
    const bool was_ours = slot_of(handle) != nullptr;
    return Error::format(ErrorCode::kInvalidParam, "%s 0x%" PRIx64 " was %s%s", words_.noun, handle,
                         was_ours ? "" : "never ", was_ours ? words_.ended : words_.begun)
        .about(handle);
  }

  // Calls visit(slot) for every slot that was ever taken, free ones included.
  template <typename Visit>
  void for_each(Visit visit) const {
    pool_.for_each(visit);
  }
  // How many objects live, for callers that look for leaks.
  uint64_t count_live() const {
    uint64_t count = 0;
    for_each([&](const T& slot) { count += slot.life().alive ? 1 : 0; });
    return count;
  }

 private:
  const HandleTag tag_;
  const HandleWords words_;
  ObjectPool<T, kChunk> pool_;
};

}  // namespace understudy
