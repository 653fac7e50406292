// SPDX-License-Identifier: Apache-2.0
#include "memory/slab_heap.h"

#include <utility>

#include "base/scope_exit.h"
#include "memory/hazard_slots.h"

namespace understudy {

namespace {

unsigned slot_size_of(const Slab& slab) { return slot_size_for(slab.slot_bytes()); }

void push(SlabShard& shard, Slab& slab) US_REQUIRES(shard.mutex) {
  Slab*& first = shard.with_space[slot_size_of(slab)];
  slab.previous = nullptr;
  slab.next = first;
  if (first != nullptr) first->previous = &slab;
  first = &slab;
}

void remove(SlabShard& shard, Slab& slab) US_REQUIRES(shard.mutex) {
  if (slab.next != nullptr) slab.next->previous = slab.previous;
  (slab.previous != nullptr ? slab.previous->next : shard.with_space[slot_size_of(slab)]) =
      slab.next;
}

}  // namespace

SlabHeap::SlabHeap(SlabSource& source, ObjectPool<Slab>& slabs) : source_(source), slabs_(slabs) {
  for (SlabShard& shard : shards_) shard.heap = this;
}

Result<VirtualAddress> SlabHeap::allocate(uint64_t usable, uint8_t tag) {
  const unsigned slot_size = slot_size_for(usable);
  const SlotRecord record = SlotRecord::make_live(usable, tag);
  SlabShard& shard = shards_[thread_shard()];
  Slab* to_close = nullptr;
  std::optional<VirtualAddress> address;
  {
    MutexLock lock(shard.mutex);
    if (shard.limbo) [[unlikely]]
      to_close = drain_limbo_locked(shard);
    Slab* const slab = shard.with_space[slot_size];
    if (slab != nullptr) [[likely]]
      address = take_slot_locked(shard, *slab, slot_size, record);
  }
  close_all(to_close);
  if (address) [[likely]]
    return *address;
  US_TRY_ASSIGN(Slab* const fresh, open_slab(slot_size));
  MutexLock lock(shard.mutex);
  fresh->home.store(&shard, std::memory_order_release);
  push(shard, *fresh);
  ++shard.empty;
  return take_slot_locked(shard, *fresh, slot_size, record);
}

VirtualAddress SlabHeap::take_slot_locked(SlabShard& shard, Slab& slab, unsigned slot_size,
                                          SlotRecord record) {
  const uint32_t slot = slab.first_free;
  slab.first_free = slab.record(slot).next_free();
  if (slab.first_free == SlotRecord::kNoSlot) {
    // The first of its list.
    shard.with_space[slot_size] = slab.next;
    if (slab.next != nullptr) slab.next->previous = nullptr;
  }
  if (slab.taken++ == 0) --shard.empty;
  slab.records[slot].store(record.word(), std::memory_order_release);
  return slab.slot_start(slot);
}

std::optional<SlotRecord> SlabHeap::free(Slab& slab, VirtualAddress address) {
  SlabShard* const home = slab.home.load(std::memory_order_acquire);
  if (home == nullptr || home->heap != this) return std::nullopt;
  Slab* to_close = nullptr;
  SlotRecord record;
  {
    MutexLock lock(home->mutex);
    // The slab may have been given up, and even begun anew, before the lock was taken.
    if (slab.home.load(std::memory_order_relaxed) != home ||
        align_down(address, kGranule) != slab.base.load(std::memory_order_relaxed)) {
      return std::nullopt;
    }
    const uint32_t slot = slab.slot_around(address);
    record = slab.record(slot);
    if (!record.live() || slab.slot_start(slot) != address) return std::nullopt;
    to_close = free_slot_locked(*home, slab, slot);
  }
  close_all(to_close);
  return record;
}

Slab* SlabHeap::free_slot_locked(SlabShard& shard, Slab& slab, uint32_t slot) {
  std::atomic<uint64_t>& record = slab.records[slot];
  // Sequentially consistent, as in PageTable::clear: readers publish the record before they look
  // at it for the second time.
  record.exchange(SlotRecord::make_free(SlotRecord::kNoSlot).word());
  if (is_pinned(&record)) [[unlikely]] {
    record.store(
        SlotRecord::make_limbo(shard.limbo.value_or(SlotName{}), shard.limbo.has_value()).word());
    shard.limbo = SlotName{slab.index, slot};
    return nullptr;
  }
  return return_slot_locked(shard, slab, slot);
}

Slab* SlabHeap::return_slot_locked(SlabShard& shard, Slab& slab, uint32_t slot) {
  slab.records[slot].store(SlotRecord::make_free(slab.first_free).word(),
                           std::memory_order_relaxed);
  const bool was_full = slab.first_free == SlotRecord::kNoSlot;
  slab.first_free = slot;
  if (was_full) push(shard, slab);
  if (--slab.taken != 0) return nullptr;
  const bool alone = slab.next == nullptr && slab.previous == nullptr;
  if (alone && shard.empty < kMaxEmpty) {
    ++shard.empty;
    return nullptr;
  }
  remove(shard, slab);
  slab.home.store(nullptr, std::memory_order_relaxed);
  slab.next = nullptr;
  return &slab;
}

Slab* SlabHeap::drain_limbo_locked(SlabShard& shard) {
  Slab* to_close = nullptr;
  std::optional<SlotName> still;
  for (std::optional<SlotName> name = std::exchange(shard.limbo, std::nullopt); name;) {
    Slab& slab = slabs_.at(name->slab);
    const uint32_t slot = name->slot;
    const SlotRecord record = slab.record(slot);
    const SlotName here = *name;
    name = record.has_next_in_limbo() ? std::optional(record.next_in_limbo()) : std::nullopt;
    if (is_pinned(&slab.records[slot])) {
      slab.records[slot].store(
          SlotRecord::make_limbo(still.value_or(SlotName{}), still.has_value()).word(),
          std::memory_order_relaxed);
      still = here;
    } else if (Slab* const empty = return_slot_locked(shard, slab, slot); empty != nullptr) {
      empty->next = std::exchange(to_close, empty);
    }
  }
  shard.limbo = still;
  return to_close;
}

void SlabHeap::free_all(const std::function<void(SlotRecord)>& freed) {
  slabs_.for_each([&](Slab& slab) {
    SlabShard* const home = slab.home.load(std::memory_order_acquire);
    if (home == nullptr || home->heap != this) return;
    Slab* to_close = nullptr;
    {
      MutexLock lock(home->mutex);
      if (slab.home.load(std::memory_order_relaxed) != home) return;
      for (uint32_t slot = 0; slot < slab.slots && to_close == nullptr; ++slot) {
        const SlotRecord record = slab.record(slot);
        if (!record.live()) continue;
        to_close = free_slot_locked(*home, slab, slot);
        freed(record);
      }
    }
    close_all(to_close);
  });
}

void SlabHeap::trim() {
  for (SlabShard& shard : shards_) {
    Slab* to_close = nullptr;
    {
      MutexLock lock(shard.mutex);
      if (shard.limbo) to_close = drain_limbo_locked(shard);
      for (Slab* const first : shard.with_space) {
        for (Slab* slab = first; slab != nullptr;) {
          Slab& here = *std::exchange(slab, slab->next);
          if (here.taken != 0) continue;
          remove(shard, here);
          --shard.empty;
          here.home.store(nullptr, std::memory_order_relaxed);
          here.next = std::exchange(to_close, &here);
        }
      }
    }
    close_all(to_close);
  }
}

Result<Slab*> SlabHeap::open_slab(unsigned slot_size) {
  const std::optional<uint32_t> index = slabs_.take();
  if (!index) {
    return Error::format(ErrorCode::kOutOfResources, "all %u slab numbers are in use",
                         1U << kPoolIndexBits);
  }
  ScopeExit undo([&] { slabs_.give_back(*index); });
  Slab& slab = slabs_.at(*index);
  slab.index = *index;
  US_TRY(source_.open(slab, slot_size));
  undo.dismiss();
  return &slab;
}

void SlabHeap::close_slab(Slab& slab) noexcept {
  source_.close(slab);
  slabs_.give_back(slab.index);
}

void SlabHeap::close_all(Slab* list) noexcept {
  while (list != nullptr) close_slab(*std::exchange(list, list->next));
}

}  // namespace understudy
