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

// The ladder for this machine as it is now, best first.
std::vector<FileKind> ladder(Backing backing) {
  std::vector<FileKind> kinds;
  if (backing == Backing::kAuto || backing == Backing::kHugetlb) {
    if (platform::has_hugetlb_pool(kGiantPage)) kinds.push_back(FileKind::kHugetlb1G);
    if (platform::has_hugetlb_pool(kHugePage)) kinds.push_back(FileKind::kHugetlb2M);
  }
  if (backing != Backing::kHugetlb) kinds.push_back(FileKind::kShared);
  return kinds;
}

// How much goes back to the system at a time. A smaller portion would only add calls.
constexpr uint64_t kPortion = 4 * kMiB;

// Giant pages of the pool can only be mapped at multiples of 1 GiB: giant blocks alone are.
bool fits(FileKind file, PageKind page) {
  return file != FileKind::kHugetlb1G || page == PageKind::kGiant;
}

}  // namespace

uint64_t free_memory_to_keep() { return std::min(platform::total_memory() / 8, 2 * kGiB); }

ExtentAllocator::ExtentAllocator(ExtentAllocatorOptions options, HostBudget& budget)
    : options_(std::move(options)), budget_(budget) {}

void ExtentAllocator::look_at_host_locked() {
  std::vector<Tier> tiers;
  for (const FileKind kind : ladder(options_.backing)) tiers.push_back({kind, {}, false});
  max_free_committed_ =
      options_.max_free_committed ? *options_.max_free_committed : free_memory_to_keep();
  tiers_ = std::move(tiers);
}

Result<Extent> ExtentAllocator::take(uint64_t size, PageKind kind) {
  std::optional<Extent> extent = take_recycled(size, kind);
  if (!extent) {
    MutexLock lock(mutex_);
    if (tiers_.empty()) look_at_host_locked();
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
    recycler.remove_locked(i, 1);
    return extent;
  }
  return std::nullopt;
}

void ExtentAllocator::Recycler::remove_locked(unsigned first, unsigned some) {
  for (unsigned i = first; i < first + some; ++i) bytes -= extents[i].size;
  std::move(extents.begin() + first + some, extents.begin() + count, extents.begin() + first);
  count -= some;
  if (idle > first) idle -= std::min(some, idle - first);
}

Result<Extent> ExtentAllocator::take_from_tier_locked(Tier& tier, uint64_t size) {
  for (Part& part : tier.parts) {
    if (part.free.free_bytes() < size) continue;
    if (auto taken = take_from_part_locked(part, size)) return *taken;
    if (tier.kind != FileKind::kShared) {
      return Error::format(ErrorCode::kOutOfMemory,
                           "a backing file of %s has no contiguous %s left", options_.name.c_str(),
                           SizeText(size).c_str());
    }
  }
  US_TRY(add_backing_file_locked(tier, size));
  return *take_from_part_locked(tier.parts.back(), size);
}

std::optional<Result<Extent>> ExtentAllocator::take_from_part_locked(Part& part, uint64_t size) {
  const std::optional<uint64_t> offset = part.free.take(size, part.backing->alignment());
  if (!offset) return std::nullopt;
  if (Result<void> set = part.backing->set_aside(*offset, size); !set.ok()) {
    part.free.give_back(*offset, size);
    return set.error();
  }
  note_taken_locked(part, *offset, size);
  return Extent{part.backing.get(), *offset, size};
}

void ExtentAllocator::note_taken_locked(Part& part, uint64_t offset, uint64_t size) {
  kept_ -= part.kept.remove(offset, size);
  least_kept_ = std::min(least_kept_, kept_);
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
      tier.parts.push_back(
          {std::move(backing.value()), ExtentMap(size, kGranule), KeptGranules(size)});
      return {};
    }
    if (size == *least) return backing.error();
    size = std::max(align_down(size / 2, unit), *least);
  }
}

void ExtentAllocator::give_back(const Extent& extent) noexcept {
  if (!try_recycle(extent)) {
    Spilled spilled;
    recycle(extent, spilled);
    for (unsigned i = 0; i < spilled.count; ++i) give_back_to_file(spilled.extents[i]);
  }
  note_kept(extent);
}

void ExtentAllocator::note_kept(const Extent& extent) noexcept {
  if (options_.decay == nullptr || options_.decay->is_awake()) return;
  // The first look costs less.
  if (extent.backing->backing().total() == 0) return;
  if (extent.backing->committed_bytes_in(extent.offset, extent.size) > 0) options_.decay->wake();
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
  uint64_t stay = recycler.bytes;
  while (recycler.count - leave == kMaxRecycled || stay + extent.size > kMaxRecycledBytes) {
    stay -= recycler.extents[leave++].size;
  }
  spill_oldest_locked(recycler, leave, spilled);
  recycler.put_locked(extent);
}

void ExtentAllocator::spill_oldest_locked(Recycler& recycler, unsigned some, Spilled& spilled) {
  for (unsigned i = 0; i < some; ++i) spilled.add(recycler.extents[i]);
  recycler.remove_locked(0, some);
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
  Part& part = part_of_locked(extent.backing);
  part.free.give_back(extent.offset, extent.size);
  kept_ += part.kept.add(extent.offset, extent.size,
                         [&](uint64_t at) { return extent.backing->is_committed_at(at); });
}

void ExtentAllocator::add_free(const Extent& extent) noexcept {
  MutexLock lock(mutex_);
  add_free_locked(extent);
}

void ExtentAllocator::give_back_to_file(const Extent& extent) noexcept {
  // Few bytes, which are not worth being kept, nor an account of their own.
  (void)extent.backing->decommit_partial(extent.offset, extent.size);
  const uint64_t committed = extent.backing->committed_bytes_in(extent.offset, extent.size);
  {
    MutexLock lock(mutex_);
    if (kept_ + committed <= max_free_committed_) return add_free_locked(extent);
  }
  give_back_decommitted(extent);
}

void ExtentAllocator::give_back_decommitted(const Extent& extent) noexcept {
  extent.backing->decommit(extent.offset, extent.size);
  add_free(extent);
}

std::optional<Extent> ExtentAllocator::take_kept_locked(Search& search, uint64_t most) {
  for (; search.tier < tiers_.size(); ++search.tier, search.part = 0) {
    std::vector<Part>& parts = tiers_[search.tier].parts;
    for (; search.part < parts.size(); ++search.part, search.offset = 0) {
      Part& part = parts[search.part];
      const uint64_t least = part.backing->alignment();
      const auto run =
          part.kept.next(search.offset, std::clamp(most, least, std::max(kPortion, least)));
      if (!run) continue;
      search.offset = run->offset + run->size;
      part.free.take_at(run->offset, run->size);
      note_taken_locked(part, run->offset, run->size);
      return Extent{part.backing.get(), run->offset, run->size};
    }
  }
  return std::nullopt;
}

uint64_t ExtentAllocator::give_back_kept(uint64_t most) noexcept {
  Search search;
  uint64_t given_back = 0;
  while (given_back < most) {
    std::optional<Extent> portion;
    {
      MutexLock lock(mutex_);
      portion = take_kept_locked(search, most - given_back);
    }
    if (!portion) break;
    portion->backing->decommit(portion->offset, portion->size);
    // All of it, unless the host did not take it back.
    given_back +=
        portion->size - portion->backing->committed_bytes_in(portion->offset, portion->size);
    add_free(*portion);
  }
  return given_back;
}

uint64_t ExtentAllocator::trim() {
  uint64_t parts = 0;
  for (Recycler& recycler : recyclers_) {
    Spilled recycled;
    {
      MutexLock lock(recycler.mutex);
      spill_oldest_locked(recycler, recycler.count, recycled);
    }
    for (unsigned i = 0; i < recycled.count; ++i) {
      const Extent& extent = recycled.extents[i];
      parts += extent.backing->decommit_partial(extent.offset, extent.size);
      add_free(extent);
    }
  }
  return parts + give_back_kept(UINT64_MAX);
}

uint64_t ExtentAllocator::give_back_idle() {
  for (Recycler& recycler : recyclers_) {
    Spilled idle;
    {
      MutexLock lock(recycler.mutex);
      spill_oldest_locked(recycler, recycler.idle, idle);
      recycler.idle = recycler.count;
    }
    for (unsigned i = 0; i < idle.count; ++i) give_back_decommitted(idle.extents[i]);
  }
  uint64_t unused = 0;
  {
    MutexLock lock(mutex_);
    unused = least_kept_;
  }
  give_back_kept(unused);
  {
    MutexLock lock(mutex_);
    least_kept_ = kept_;
  }
  return free_committed_bytes();
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
  return bytes + kept_;
}

}  // namespace understudy
