// SPDX-License-Identifier: Apache-2.0
#include "memory/slab_heap.h"

#include <algorithm>
#include <utility>

#include "base/scope_exit.h"
#include "memory/hazard_pointers.h"

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

void remove(SlabShard& shard, Slab& slab, unsigned slot_size) US_REQUIRES(shard.mutex) {
  if (slab.next != nullptr) slab.next->previous = slab.previous;
  (slab.previous != nullptr ? slab.previous->next : shard.with_space[slot_size]) = slab.next;
}

}  // namespace

SlabHeap::SlabHeap(SlabSource& source, ObjectPool<Slab>& slabs, Decay* decay)
    : source_(source), slabs_(slabs), decay_(decay) {
  for (SlabShard& shard : shards_) shard.heap = this;
}

Result<VirtualAddress> SlabHeap::allocate(uint64_t usable, uint8_t tag) {
  const unsigned slot_size = slot_size_for(usable);
  const SlotRecord record = SlotRecord::make_live(usable, tag);
  SlabShard& shard = shards_[thread_shard()];
  {
    BriefLock lock(shard.mutex);
    for (Slab* slab = shard.with_space[slot_size]; slab != nullptr; slab = slab->next) {
      const auto address = take_slot_locked(shard, *slab, slot_size, record);
      if (address) [[likely]]
        return *address;
    }
  }
  US_TRY_ASSIGN(Slab* const fresh, open_slab(slot_size));
  BriefLock lock(shard.mutex);
  adopt_locked(shard, *fresh);
  // A reader that pins one of its slots has it from an old entry, and will see that.
  return take_behind_locked(shard, *fresh, slot_size, SlotRecord::kNoSlot, record);
}

std::optional<VirtualAddress> SlabHeap::take_slot_locked(SlabShard& shard, Slab& slab,
                                                         unsigned slot_size, SlotRecord record) {
  // A reader publishes the record before it looks at it for the second time, and this thread looks
  // for published records after it has seen the slot freed: either the reader sees that the slot
  // was freed, or this thread sees the reader.
  uint32_t before = SlotRecord::kNoSlot;
  uint32_t slot = slab.first_free;
  while (slot != SlotRecord::kNoSlot && is_pinned(&slab.records[slot])) {
    before = std::exchange(slot, slab.record(slot).next_free());
  }
  if (slot == SlotRecord::kNoSlot) return std::nullopt;
  return take_behind_locked(shard, slab, slot_size, before, record);
}

VirtualAddress SlabHeap::take_behind_locked(SlabShard& shard, Slab& slab, unsigned slot_size,
                                            uint32_t before, SlotRecord record) {
  const bool first = before == SlotRecord::kNoSlot;
  const uint32_t slot = first ? slab.first_free : slab.record(before).next_free();
  const uint32_t next = slab.record(slot).next_free();
  if (first) {
    slab.first_free = next;
  } else {
    slab.records[before].store(slab.record(before).with_next_free(next).word(),
                               std::memory_order_relaxed);
  }
  if (slab.first_free == SlotRecord::kNoSlot) remove(shard, slab, slot_size);
  if (slab.live++ == 0) note_used_locked(shard);
  slab.records[slot].store(record.word(), std::memory_order_release);
  return slab.slot_start(slot);
}

SlabShard* SlabHeap::home_of(const Slab& slab) const {
  SlabShard* const home = slab.home.load(std::memory_order_acquire);
  return home != nullptr && home->heap == this ? home : nullptr;
}

// The slab may have been given up, and even begun anew, before the lock was taken.
bool SlabHeap::is_around_locked(const SlabShard& home, const Slab& slab, VirtualAddress address) {
  return slab.home.load(std::memory_order_relaxed) == &home &&
         align_down(address, kGranule) == slab.base.load(std::memory_order_relaxed);
}

std::optional<uint32_t> SlabHeap::live_slot_locked(const SlabShard& home, const Slab& slab,
                                                   VirtualAddress address) {
  if (!is_around_locked(home, slab, address)) return std::nullopt;
  const uint32_t slot = slab.slot_around(address);
  if (!slab.record(slot).live() || slab.slot_start(slot) != address) return std::nullopt;
  return slot;
}

std::optional<SlotRecord> SlabHeap::free(Slab& slab, VirtualAddress address) {
  SlabShard* const home = home_of(slab);
  if (home == nullptr) return std::nullopt;
  Freed freed;
  SlotRecord record;
  {
    BriefLock lock(home->mutex);
    const std::optional<uint32_t> slot = live_slot_locked(*home, slab, address);
    if (!slot) return std::nullopt;
    record = slab.record(*slot);
    freed = end_slot_locked(*home, slab, *slot);
  }
  settle(freed);
  return record;
}

std::optional<SlotRecord> SlabHeap::share(Slab& slab, VirtualAddress address, Extent& extent) {
  SlabShard* const home = home_of(slab);
  if (home == nullptr) return std::nullopt;
  BriefLock lock(home->mutex);
  const std::optional<uint32_t> slot = live_slot_locked(*home, slab, address);
  if (!slot) return std::nullopt;
  const SlotRecord record = slab.record(*slot);
  slab.records[*slot].store(record.with_share().word(), std::memory_order_release);
  extent = slab.extent;
  return record;
}

void SlabHeap::unshare(Slab& slab, VirtualAddress address) {
  SlabShard* const home = home_of(slab);
  if (home == nullptr) return;
  BriefLock lock(home->mutex);
  if (const std::optional<uint32_t> slot = live_slot_locked(*home, slab, address)) {
    slab.records[*slot].store(slab.record(*slot).without_share().word(), std::memory_order_release);
  }
}

void SlabHeap::give_back_kept(Slab& slab, VirtualAddress address) {
  SlabShard* const home = home_of(slab);
  if (home == nullptr) return;
  Freed freed;
  {
    BriefLock lock(home->mutex);
    const uint32_t slot = slab.slot_around(address);
    if (!is_around_locked(*home, slab, address) || !slab.record(slot).kept()) return;
    freed = free_slot_locked(*home, slab, slot);
  }
  settle(freed);
}

SlabHeap::Freed SlabHeap::end_slot_locked(SlabShard& shard, Slab& slab, uint32_t slot) {
  if (!slab.record(slot).shared()) return free_slot_locked(shard, slab, slot);
  slab.records[slot].store(SlotRecord::make_kept().word(), std::memory_order_release);
  return {};
}

SlabHeap::Freed SlabHeap::free_slot_locked(SlabShard& shard, Slab& slab, uint32_t slot) {
  const bool was_full = slab.first_free == SlotRecord::kNoSlot;
  slab.records[slot].store(SlotRecord::make_freed(slab.first_free).word(),
                           std::memory_order_release);
  slab.first_free = slot;
  if (was_full) push(shard, slab);
  if (--slab.live != 0) return {};
  ++shard.empty;
  const bool alone = slab.next == nullptr && slab.previous == nullptr;
  if (alone && shard.empty <= kMaxEmpty) return {.keeps = true};
  Slab* const given_up = give_up_locked(shard, slab);
  return {.to_close = given_up, .keeps = given_up == nullptr};
}

void SlabHeap::settle(const Freed& freed) noexcept {
  close_all(freed.to_close);
  if (freed.keeps && decay_ != nullptr && !decay_->is_awake()) decay_->wake();
}

Slab* SlabHeap::give_up_locked(SlabShard& shard, Slab& slab) {
  // An exchange, not a store: the last slot was freed a moment ago, and the hazard pointers
  // must not be scanned before every thread can see that.
  slab.home.exchange(nullptr);
  if (slab.is_pinned()) {
    slab.home.store(&shard, std::memory_order_relaxed);
    return nullptr;
  }
  remove(shard, slab, slot_size_of(slab));
  note_used_locked(shard);
  slab.next = nullptr;
  return &slab;
}

void SlabHeap::note_used_locked(SlabShard& shard) {
  --shard.empty;
  shard.least_empty = std::min(shard.least_empty, shard.empty);
}

std::optional<SlabHeap::FreedSlot> SlabHeap::free_next(Slab& slab, uint32_t& slot) {
  SlabShard* const home = home_of(slab);
  if (home == nullptr) return std::nullopt;
  std::optional<FreedSlot> found;
  Freed freed;
  {
    BriefLock lock(home->mutex);
    if (slab.home.load(std::memory_order_relaxed) != home) return std::nullopt;
    while (slot < slab.slots && !slab.record(slot).live()) ++slot;
    if (slot >= slab.slots) return std::nullopt;
    found = FreedSlot{slab.slot_start(slot), slab.record(slot)};
    freed = end_slot_locked(*home, slab, slot++);
  }
  settle(freed);
  return found;
}

Slab* SlabHeap::give_up_some_locked(SlabShard& shard, unsigned most) {
  Slab* given_up = nullptr;
  for (Slab* const first : shard.with_space) {
    for (Slab* slab = first; slab != nullptr && most > 0;) {
      Slab& here = *std::exchange(slab, slab->next);
      if (here.live != 0 || give_up_locked(shard, here) == nullptr) continue;
      here.next = std::exchange(given_up, &here);
      --most;
    }
  }
  return given_up;
}

void SlabHeap::trim() {
  for (SlabShard& shard : shards_) {
    Slab* to_close = nullptr;
    {
      BriefLock lock(shard.mutex);
      to_close = give_up_some_locked(shard, shard.empty);
    }
    close_all(to_close);
  }
}

bool SlabHeap::give_back_idle() {
  bool keeps = false;
  for (SlabShard& shard : shards_) {
    Slab* to_close = nullptr;
    {
      BriefLock lock(shard.mutex);
      to_close = give_up_some_locked(shard, shard.least_empty);
      shard.least_empty = shard.empty;
      keeps |= shard.empty > 0;
    }
    close_all(to_close);
  }
  return keeps;
}

Result<Slab*> SlabHeap::open_slab(unsigned slot_size) {
  const std::optional<uint32_t> index = slabs_.take();
  if (!index) return out_of_numbers("slab");
  ScopeExit undo([&] { slabs_.give_back(*index); });
  Slab& slab = slabs_.at(*index);
  slab.index = *index;
  US_TRY(source_.open(slab, slot_size));
  undo.dismiss();
  return &slab;
}

void SlabHeap::adopt_locked(SlabShard& shard, Slab& slab) {
  slab.home.store(&shard, std::memory_order_release);
  push(shard, slab);
  ++shard.empty;
}

void SlabHeap::close_all(Slab* list) noexcept {
  while (list != nullptr) {
    Slab& slab = *std::exchange(list, list->next);
    if (source_.close(slab)) {
      slabs_.give_back(slab.index);
      continue;
    }
    SlabShard& shard = shards_[thread_shard()];
    BriefLock lock(shard.mutex);
    adopt_locked(shard, slab);
  }
}

uint64_t count_live_slots(const ObjectPool<Slab>& slabs) {
  uint64_t live = 0;
  slabs.for_each([&](const Slab& slab) {
    if (slab.home.load(std::memory_order_acquire) == nullptr) return;
    for (uint32_t slot = 0; slot < kPagesPerSlab; ++slot) live += slab.record(slot).live() ? 1 : 0;
  });
  return live;
}

}  // namespace understudy
