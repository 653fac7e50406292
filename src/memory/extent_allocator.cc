// SPDX-License-Identifier: Apache-2.0
#include "memory/extent_allocator.h"

#include <algorithm>
#include <utility>

#include "base/invariant.h"
#include "base/size_text.h"
#include "observe/unwritten_memory.h"
#include "platform/host_facts.h"
#include "platform/log.h"

namespace understudy {

namespace {

using platform::FileKind;

// The ladder for this machine, best first.
std::vector<FileKind> ladder(Backing backing) {
  std::vector<FileKind> kinds;
  if (backing == Backing::kAuto || backing == Backing::kHugetlb) {
    if (platform::has_hugetlb_pool(kGiantPage)) kinds.push_back(FileKind::kHugetlb1G);
    if (platform::has_hugetlb_pool(kHugePage)) kinds.push_back(FileKind::kHugetlb2M);
  }
  if (backing != Backing::kHugetlb) kinds.push_back(FileKind::kShared);
  return kinds;
}

// Giant pages of the pool can only be mapped at multiples of 1 GiB: giant blocks alone are.
bool fits(FileKind file, PageKind page) {
  return file != FileKind::kHugetlb1G || page == PageKind::kGiant;
}

}  // namespace

ExtentAllocator::ExtentAllocator(ExtentAllocatorOptions options, HostBudget& budget)
    : options_(std::move(options)), budget_(budget) {
  MutexLock lock(mutex_);
  for (const FileKind kind : ladder(options_.backing)) tiers_.push_back({kind, {}, false});
}

Result<Extent> ExtentAllocator::take(uint64_t size, PageKind kind) {
  std::optional<Extent> extent = take_recycled(size, kind);
  if (!extent) {
    MutexLock lock(mutex_);
    std::optional<Error> last;
    for (Tier& tier : tiers_) {
      if (!fits(tier.kind, kind)) continue;
      Result<Extent> taken = take_from_tier_locked(tier, size);
      if (taken.ok()) {
        extent = taken.value();
        break;
      }
      last = taken.error();
      if (&tier != &tiers_.back() && !std::exchange(tier.was_short, true)) {
        platform::log_note("a hugetlb pool has no page left for %s (%s); other pages are used",
                           options_.name.c_str(), last->text());
      }
    }
    if (!extent && !last) {
      return Error::format(ErrorCode::kOutOfMemory,
                           "backing is set to hugetlb and the host has no hugetlb pool");
    }
    if (!extent) return last->as(ErrorCode::kOutOfMemory);
  }
  if (options_.poison == Poison::kOn) extent->backing->refill(extent->offset, extent->size);
  if (options_.is_written_by_transfers && is_init_checked()) [[unlikely]]
    UnwrittenMemory::begin({extent->backing->alias(extent->offset), extent->size});
  return *extent;
}

std::optional<Extent> ExtentAllocator::take_recycled(uint64_t size, PageKind kind) {
  Recycler& recycler = recyclers_[thread_shard()];
  MutexLock lock(recycler.mutex);
  for (unsigned i = recycler.count; i-- > 0;) {
    const Extent extent = recycler.extents[i];
    if (extent.size != size || !fits(extent.backing->kind(), kind)) continue;
    recycler.bytes -= size;
    --recycler.count;
    for (; i < recycler.count; ++i) recycler.extents[i] = recycler.extents[i + 1];
    return extent;
  }
  return std::nullopt;
}

Result<Extent> ExtentAllocator::take_from_tier_locked(Tier& tier, uint64_t size) {
  for (Part& part : tier.parts) {
    if (part.free.free_bytes() < size) continue;
    Result<Extent> taken = take_from_part_locked(part, size);
    if (taken.ok() || tier.kind != FileKind::kShared) return taken;
  }
  US_TRY(add_backing_file_locked(tier, size));
  return take_from_part_locked(tier.parts.back(), size);
}

Result<Extent> ExtentAllocator::take_from_part_locked(Part& part, uint64_t size) {
  const std::optional<uint64_t> offset = part.free.take(size, part.backing->alignment());
  if (!offset) {
    return Error::format(ErrorCode::kOutOfMemory, "a backing file of %s has no contiguous %s left",
                         options_.name.c_str(), SizeText(size).c_str());
  }
  if (Result<void> set = part.backing->set_aside(*offset, size); !set.ok()) {
    part.free.give_back(*offset, size);
    return set.error();
  }
  const Extent extent{part.backing.get(), *offset, size};
  free_committed_ -= extent.backing->committed_bytes_in(extent.offset, extent.size);
  return extent;
}

// A large mapping may be refused (address space limit, sanitizers): smaller backing files do as
// well.
Result<void> ExtentAllocator::add_backing_file_locked(Tier& tier, uint64_t at_least) {
  const uint64_t unit = tier.kind == FileKind::kHugetlb1G ? kGiantPage : kGranule;
  const std::optional<uint64_t> least = align_up(at_least, unit);
  if (!least) {
    return Error::format(ErrorCode::kOutOfMemory, "no backing file can hold %s",
                         SizeText(at_least).c_str());
  }
  const BackingFileOptions file_options{.kind = tier.kind,
                                        .name = options_.name.c_str(),
                                        .collapse = options_.backing != Backing::kSmall,
                                        .poison = options_.poison,
                                        .numa_node = options_.numa_node,
                                        .slots = options_.slots,
                                        .figures = options_.figures};
  uint64_t size = std::max(*align_up(options_.file_size, unit), *least);
  while (true) {
    Result<std::unique_ptr<BackingFile>> backing = BackingFile::create(file_options, size, budget_);
    if (backing.ok()) {
      tier.parts.push_back({std::move(backing.value()), ExtentMap(size, kGranule)});
      return {};
    }
    if (size == *least) return backing.error();
    size = std::max(align_down(size / 2, unit), *least);
  }
}

void ExtentAllocator::give_back(const Extent& extent) noexcept {
  if (try_recycle(extent)) [[likely]]
    return;
  Spilled spilled;
  recycle(extent, spilled);
  for (unsigned i = 0; i < spilled.count; ++i) give_back_to_file(spilled.extents[i]);
}

bool ExtentAllocator::try_recycle(const Extent& extent) {
  Recycler& recycler = recyclers_[thread_shard()];
  MutexLock lock(recycler.mutex);
  if (!recycler.has_room_locked(extent.size)) return false;
  recycler.put_locked(extent);
  return true;
}

void ExtentAllocator::recycle(const Extent& extent, Spilled& spilled) {
  if (extent.size > kMaxRecycledBytes) {
    spilled.add(extent);
    return;
  }
  Recycler& recycler = recyclers_[thread_shard()];
  MutexLock lock(recycler.mutex);
  unsigned leave = 0;
  while (recycler.count - leave == kMaxRecycled ||
         recycler.bytes + extent.size > kMaxRecycledBytes) {
    recycler.bytes -= recycler.extents[leave].size;
    spilled.add(recycler.extents[leave++]);
  }
  if (leave > 0) {
    std::move(recycler.extents.begin() + leave, recycler.extents.begin() + recycler.count,
              recycler.extents.begin());
  }
  recycler.count -= leave;
  recycler.put_locked(extent);
}

void ExtentAllocator::drain(Recycler& recycler, Spilled& spilled) {
  MutexLock lock(recycler.mutex);
  for (unsigned i = 0; i < recycler.count; ++i) spilled.add(recycler.extents[i]);
  recycler.count = 0;
  recycler.bytes = 0;
}

ExtentAllocator::Part& ExtentAllocator::part_of_locked(const BackingFile* backing) {
  for (Tier& tier : tiers_) {
    for (Part& part : tier.parts) {
      if (part.backing.get() == backing) return part;
    }
  }
  stop_with_sentence(__FILE__, __LINE__, "an extent came back to an allocator that never had it");
}

void ExtentAllocator::add_free_locked(const Extent& extent) noexcept {
  part_of_locked(extent.backing).free.give_back(extent.offset, extent.size);
  free_committed_ += extent.backing->committed_bytes_in(extent.offset, extent.size);
}

void ExtentAllocator::give_back_to_file(const Extent& extent) noexcept {
  {
    MutexLock lock(mutex_);
    const uint64_t committed = extent.backing->committed_bytes_in(extent.offset, extent.size);
    if (free_committed_ + committed <= options_.max_free_committed) return add_free_locked(extent);
  }
  // Until it is entered as free, no other thread can have it.
  extent.backing->decommit(extent.offset, extent.size);
  MutexLock lock(mutex_);
  add_free_locked(extent);
}

ExtentAllocator::Spilled ExtentAllocator::take_committed_parts_locked() {
  Spilled taken;
  for (Tier& tier : tiers_) {
    for (Part& part : tier.parts) {
      const unsigned before = taken.count;
      part.free.for_each([&](uint64_t offset, uint64_t size) {
        if (taken.count == taken.extents.size()) return;
        if (part.backing->committed_bytes_in(offset, size) == 0) return;
        taken.add({part.backing.get(), offset, size});
      });
      for (unsigned i = before; i < taken.count; ++i) {
        const Extent& extent = taken.extents[i];
        free_committed_ -= extent.backing->committed_bytes_in(extent.offset, extent.size);
        part.free.take_part(extent.offset);
      }
    }
  }
  return taken;
}

uint64_t ExtentAllocator::trim() {
  for (Recycler& recycler : recyclers_) {
    Spilled recycled;
    drain(recycler, recycled);
    MutexLock lock(mutex_);
    for (unsigned i = 0; i < recycled.count; ++i) add_free_locked(recycled.extents[i]);
  }
  uint64_t given_back = 0;
  while (true) {
    Spilled taken;
    {
      MutexLock lock(mutex_);
      taken = take_committed_parts_locked();
    }
    uint64_t before = 0;
    uint64_t left = 0;  // where the host did not take it back
    for (unsigned i = 0; i < taken.count; ++i) {
      const Extent& extent = taken.extents[i];
      before += extent.backing->committed_bytes_in(extent.offset, extent.size);
      extent.backing->decommit(extent.offset, extent.size);
      left += extent.backing->committed_bytes_in(extent.offset, extent.size);
    }
    MutexLock lock(mutex_);
    for (unsigned i = 0; i < taken.count; ++i) add_free_locked(taken.extents[i]);
    given_back += before - left;
    if (before == left) return given_back;
  }
}

HostBacking ExtentAllocator::backing() const {
  HostBacking sum;
  MutexLock lock(mutex_);
  for (const Tier& tier : tiers_) {
    for (const Part& part : tier.parts) {
      const HostBacking one = part.backing->backing();
      sum.small_pages += one.small_pages;
      sum.collapsed += one.collapsed;
      sum.pool_2m += one.pool_2m;
      sum.pool_1g += one.pool_1g;
    }
  }
  return sum;
}

uint64_t ExtentAllocator::free_committed_bytes() const {
  uint64_t bytes = 0;
  for (const Recycler& recycler : recyclers_) {
    MutexLock lock(recycler.mutex);
    for (unsigned i = 0; i < recycler.count; ++i) {
      const Extent& extent = recycler.extents[i];
      bytes += extent.backing->committed_bytes_in(extent.offset, extent.size);
    }
  }
  MutexLock lock(mutex_);
  return bytes + free_committed_;
}

}  // namespace understudy
