// SPDX-License-Identifier: Apache-2.0
#include "memory/pinned_memory.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <new>
#include <utility>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "memory/address_layout.h"
#include "platform/host_facts.h"
#include "platform/log.h"

namespace understudy {

namespace {

using platform::HostPages;

std::vector<HostPages> page_ladder(Backing backing) {
  std::vector<HostPages> kinds;
  const bool pool = (backing == Backing::kAuto || backing == Backing::kHugetlb) &&
                    platform::has_hugetlb_pool(kHugePage);
  if (pool) kinds.push_back(HostPages::kHugetlb);
  if (backing == Backing::kAuto || backing == Backing::kThp) {
    kinds.push_back(HostPages::kTransparent);
  }
  if (backing == Backing::kSmall) kinds.push_back(HostPages::kSmall);
  return kinds;
}

HostBudget::Source source_of(HostPages pages) {
  return pages == HostPages::kHugetlb ? HostBudget::Source::kPool : HostBudget::Source::kMachine;
}

// A cached chunk serves requests that waste an eighth of it at most.
bool fits(uint64_t chunk, uint64_t size) { return chunk >= size && chunk - size <= size / 8; }

}  // namespace

PinnedMemory::PinnedMemory(const Settings& settings, BackingPools& pools)
    : settings_(settings), pools_(pools), heap_(*this, slabs_, &pools.decay()) {
  MutexLock lock(mutex_);
  cached_.reserve(kMaxCached);
  pools.add_cache(*this);
}

Result<VirtualAddress> PinnedMemory::allocate(uint64_t size, DeviceAddress address) {
  if (size > kMaxSlotBytes) return allocate_chunk(size, address);
  return heap_.allocate(size, static_cast<uint8_t>(address));
}

Result<VirtualAddress> PinnedMemory::allocate_chunk(uint64_t size, DeviceAddress address) {
  const std::optional<uint64_t> rounded = align_up(size, kGranule);
  if (!rounded || *rounded >= kHostEnd) {
    return Error::format(ErrorCode::kOutOfMemory, "no host has %s", SizeText(size).c_str());
  }
  US_TRY_ASSIGN(Chunk* const chunk, take_chunk(*rounded));
  ScopeExit undo([&] { return_chunk(*chunk); });
  table_.prepare(chunk->range);
  undo.dismiss();
  MutexLock lock(mutex_);
  chunk->given = {{chunk->range.base, size}, address};
  table_.set(chunk->range,
             PageEntry::make(chunk->range.base, chunk->index, PageEntry::kHostOwner, true),
             [](uint64_t) { return true; });
  return chunk->range.base;
}

bool PinnedMemory::free(VirtualAddress address) {
  const PageEntry entry = table_.look_up(address);
  if (!entry.present()) return false;
  if (!entry.divided()) return free_chunk(address);
  return heap_.free(slabs_.at(entry.mapping()), address).has_value();
}

bool PinnedMemory::free_chunk(VirtualAddress address) {
  Chunk* chunk = nullptr;
  {
    MutexLock lock(mutex_);
    const PageEntry entry = table_.look_up(address);
    if (!entry.present() || entry.divided()) return false;
    chunk = &chunks_.at(entry.mapping());
    if (chunk->range.base != address) return false;
    table_.clear(chunk->range);
  }
  return_chunk(*chunk);
  return true;
}

std::optional<PinnedView> PinnedMemory::find(VirtualAddress address) {
  while (true) {
    const PageEntry entry = table_.look_up(address);
    if (!entry.present()) return std::nullopt;
    if (!entry.divided()) break;
    const Slab& slab = slabs_.at(entry.mapping());
    const uint32_t slot = slab.slot_around(address);
    const uint64_t offset = slot * slab.slot_bytes();
    const SlotRecord record = slab.record(slot);
    if (table_.look_up(address) != entry) continue;  // all of it may be of another slab
    if (!record.live() || address % kGranule - offset >= record.usable()) return std::nullopt;
    return PinnedView{{align_down(address, kGranule) + offset, record.usable()},
                      static_cast<DeviceAddress>(record.tag())};
  }
  MutexLock lock(mutex_);
  const PageEntry entry = table_.look_up(address);
  if (!entry.present() || entry.divided()) return std::nullopt;
  const PinnedView& given = chunks_.at(entry.mapping()).given;
  if (!given.range.contains(address)) return std::nullopt;
  return given;
}

uint64_t PinnedMemory::count() const {
  uint64_t blocks = count_live_slots(slabs_);
  MutexLock lock(mutex_);
  for (const auto& [base, chunk] : by_base_) {
    const PageEntry entry = table_.look_up(base);
    blocks += entry.present() && !entry.divided() ? 1 : 0;
  }
  return blocks;
}

bool PinnedMemory::pin(VirtualRange range, HazardPin& pin) {
  while (true) {
    const PageEntry entry = table_.look_up(range.base);
    if (!entry.present()) return false;
    if (!entry.divided()) {
      // A thread that takes the chunk for something else clears the entry before it scans the pins.
      Chunk& chunk = chunks_.at(entry.mapping());
      pin.publish(&chunk);
      MutexLock lock(mutex_);
      if (table_.look_up(range.base) != entry) continue;
      return chunk.given.range.contains(range);
    }
    const Slab& slab = slabs_.at(entry.mapping());
    const uint32_t slot = slab.slot_around(range.base);
    const uint64_t offset = range.base % kGranule - slot * slab.slot_bytes();
    pin.publish(&slab.records[slot]);
    const SlotRecord record = slab.record(slot);
    // All of it may be of another slab, or of the same one divided anew.
    if (table_.look_up(range.base) != entry || slab.slot_around(range.base) != slot) continue;
    return record.live() && offset < record.usable() && range.size <= record.usable() - offset;
  }
}

Result<void> PinnedMemory::open(Slab& slab, unsigned slot_size) {
  US_TRY_ASSIGN(Chunk* const chunk, take_chunk(kGranule));
  ScopeExit undo([&] { return_chunk(*chunk); });
  table_.prepare(chunk->range);
  undo.dismiss();
  slab.chunk = chunk->index;
  slab.divide(chunk->range.base, slot_size);
  table_.set(
      chunk->range,
      PageEntry::make(chunk->range.base, slab.index, PageEntry::kHostOwner, true).with_division(),
      [](uint64_t) { return true; });
  return {};
}

bool PinnedMemory::close(Slab& slab) noexcept {
  Chunk& chunk = chunks_.at(slab.chunk);
  table_.clear(chunk.range);
  return_chunk(chunk);
  return true;
}

Result<PinnedMemory::Chunk*> PinnedMemory::take_chunk(uint64_t size) {
  discard_retired();
  if (Chunk* const cached = take_cached(size); cached != nullptr) return cached;
  Result<Chunk*> made = make_chunk(size);
  if (made.ok() || made.error().code() != ErrorCode::kOutOfMemory) return made;
  pools_.relieve_pressure();
  return make_chunk(size);
}

PinnedMemory::Chunk* PinnedMemory::take_cached(uint64_t size) {
  MutexLock lock(mutex_);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // see pin()
  // Newest first: it is the most likely to be in a cache still.
  const auto found = std::find_if(cached_.rbegin(), cached_.rend(), [&](const Chunk* chunk) {
    return fits(chunk->range.size, size) && !is_pinned(chunk);
  });
  if (found == cached_.rend()) return nullptr;
  Chunk* const chunk = *found;
  cached_.erase(std::next(found).base());
  figures_.cached -= chunk->range.size;
  return chunk;
}

Result<PinnedMemory::Chunk*> PinnedMemory::make_chunk(uint64_t size) {
  const std::optional<uint32_t> index = chunks_.take();
  if (!index) return out_of_numbers("chunk");
  ScopeExit undo([&] { chunks_.give_back(*index); });
  Chunk& chunk = chunks_.at(*index);
  chunk.index = *index;
  Result<void> mapped = Error::format(ErrorCode::kOutOfMemory,
                                      "backing is set to hugetlb and the host has no hugetlb pool");
  for (const HostPages pages : find_ladder()) {
    mapped = map_chunk(chunk, size, pages);
    if (mapped.ok()) break;
  }
  if (!mapped.ok()) return mapped.error().as(ErrorCode::kOutOfMemory);
  MutexLock lock(mutex_);
  try {
    by_base_.emplace(chunk.range.base, &chunk);
  } catch (const std::bad_alloc&) {
    unmap_chunk(chunk);
    throw;
  }
  undo.dismiss();
  count_locked(chunk, Change::kAdded);
  return &chunk;
}

std::vector<HostPages> PinnedMemory::find_ladder() {
  MutexLock lock(mutex_);
  if (ladder_.empty()) {
    max_cached_ = free_memory_to_keep();
    ladder_ = page_ladder(settings_.backing);
  }
  return ladder_;
}

Result<void> PinnedMemory::map_chunk(Chunk& chunk, uint64_t size, HostPages pages) {
  HostBudget& budget = pools_.budget();
  US_TRY(budget.take(size, source_of(pages)));
  ScopeExit give_back([&] { budget.give_back(size); });
  ScopeExit settle([&] { budget.note_committed(size, source_of(pages)); });
  US_TRY_ASSIGN(chunk.range, platform::map_host_memory(size, pages));
  ScopeExit unmap([&] { platform::unmap_host_memory(chunk.range); });
  US_TRY(platform::populate(chunk.range, pages));
  chunk.pages = pages;
  US_TRY(lock_chunk(chunk));
  unmap.dismiss();
  give_back.dismiss();
  return {};
}

Result<void> PinnedMemory::lock_chunk(Chunk& chunk) {
  // Pages of the pool are never moved out of main memory and do not count as locked.
  chunk.locked = chunk.pages == HostPages::kHugetlb;
  if (chunk.locked) return {};
  Result<void> locked = platform::lock_pages(chunk.range);
  if (!locked.ok() && trim_locked_cache()) locked = platform::lock_pages(chunk.range);
  // A lock that failed half-way still counts.
  if (!locked.ok()) platform::unlock_pages(chunk.range);
  chunk.locked = locked.ok();
  if (locked.ok()) return {};
  if (settings_.host_lock == HostLock::kBestEffort) {
    platform::log_note("host_lock=best_effort: %s; allocations in it are present and not locked",
                       locked.error().text());
    return {};
  }
  return Error::format(ErrorCode::kOutOfMemory,
                       "host_lock is strict and the user's limit of locked memory does not allow "
                       "%s more",
                       SizeText(chunk.range.size).c_str());
}

void PinnedMemory::return_chunk(Chunk& chunk) noexcept {
  std::array<Chunk*, kMaxCached + 1> leaving;
  size_t count = 0;
  {
    MutexLock lock(mutex_);
    const uint64_t size = chunk.range.size;
    if (size > max_cached_) {
      leaving[count++] = &chunk;
    } else {
      while (cached_.size() == kMaxCached || figures_.cached + size > max_cached_) {
        leaving[count++] = cached_.front();
        figures_.cached -= cached_.front()->range.size;
        cached_.erase(cached_.begin());
      }
      chunk.idle = false;
      cached_.push_back(&chunk);
      figures_.cached += size;
    }
  }
  for (size_t i = 0; i < count; ++i) discard(*leaving[i]);
  if (!pools_.decay().is_awake()) pools_.decay().wake();
}

void PinnedMemory::discard(Chunk& chunk) noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // see pin()
  const bool in_use = is_pinned(&chunk);
  {
    MutexLock lock(mutex_);
    if (in_use) {
      chunk.next_retired = std::exchange(retired_, &chunk);
      return;
    }
    by_base_.erase(chunk.range.base);
    count_locked(chunk, Change::kRemoved);
  }
  unmap_chunk(chunk);
  chunks_.give_back(chunk.index);
}

void PinnedMemory::discard_retired() noexcept {
  Chunk* chunk = nullptr;
  {
    MutexLock lock(mutex_);
    chunk = std::exchange(retired_, nullptr);
  }
  while (chunk != nullptr) discard(*std::exchange(chunk, chunk->next_retired));
}

void PinnedMemory::unmap_chunk(const Chunk& chunk) noexcept {
  platform::unmap_host_memory(chunk.range);
  pools_.budget().give_back(chunk.range.size);
}

void PinnedMemory::count_locked(const Chunk& chunk, Change change) {
  const uint64_t bytes = change == Change::kAdded ? chunk.range.size : -chunk.range.size;
  (chunk.locked ? figures_.locked : figures_.unlocked) += bytes;
  if (chunk.pages != HostPages::kSmall) figures_.huge += bytes;
  pools_.figures().set_page_locked(figures_.locked + figures_.unlocked);
}

bool PinnedMemory::overlaps(VirtualRange range) {
  MutexLock lock(mutex_);
  const auto behind = by_base_.lower_bound(range.end());
  return behind != by_base_.begin() && std::prev(behind)->second->range.end() > range.base;
}

PinnedFigures PinnedMemory::figures() const {
  MutexLock lock(mutex_);
  return figures_;
}

template <typename Leaves>
size_t PinnedMemory::discard_cached(Leaves leaves) {
  std::array<Chunk*, kMaxCached> leaving;
  size_t count = 0;
  {
    MutexLock lock(mutex_);
    for (Chunk*& chunk : cached_) {
      if (!leaves(*chunk)) continue;
      figures_.cached -= chunk->range.size;
      leaving[count++] = std::exchange(chunk, nullptr);
    }
    std::erase(cached_, nullptr);
  }
  for (size_t i = 0; i < count; ++i) discard(*leaving[i]);
  return count;
}

void PinnedMemory::trim() {
  discard_retired();
  heap_.trim();
  discard_cached([](const Chunk&) { return true; });
}

bool PinnedMemory::give_back_idle() {
  discard_retired();
  const bool keeps_slabs = heap_.give_back_idle();
  discard_cached([](const Chunk& chunk) { return chunk.idle; });
  MutexLock lock(mutex_);
  for (Chunk* const chunk : cached_) chunk->idle = true;
  return keeps_slabs || !cached_.empty();
}

bool PinnedMemory::trim_locked_cache() {
  heap_.trim();
  return discard_cached([](const Chunk& chunk) {
           return chunk.locked && chunk.pages != HostPages::kHugetlb;
         }) > 0;
}

}  // namespace understudy
