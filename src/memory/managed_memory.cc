// SPDX-License-Identifier: Apache-2.0
#include "memory/managed_memory.h"

#include <algorithm>
#include <cinttypes>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "platform/address_window.h"
#include "platform/host_facts.h"

namespace understudy {

ManagedMemory::ManagedMemory(const Settings& settings, PhysicalMemory& physical,
                             BackingPools& pools, const Translation& translation,
                             Reservations& reservations, RetireList& retired,
                             AllocationPlacement& placement)
    : settings_(settings),
      physical_(physical),
      pools_(pools),
      translation_(translation),
      retired_(retired),
      placement_(placement),
      arena_(reservations.index(), ArenaHold::kHost) {
  physical.set_managed_memory(*this);
}

// ---- Allocations ----

Result<VirtualAddress> ManagedMemory::allocate(uint64_t size, unsigned device) {
  retired_.reclaim();
  const std::optional<uint64_t> rounded = align_up(size, kGranule);
  if (!rounded) {
    return Error::format(ErrorCode::kOutOfMemory, "no process has %s of managed memory",
                         SizeText(size).c_str());
  }
  US_TRY(count(*rounded));
  ScopeExit undo_count([&] { discount(*rounded); });
  // Whole GiB have one entry each in the translation.
  US_TRY_ASSIGN(const Arena place, arena_.take(*rounded, *rounded >= kGiB ? kGiB : kGranule));
  ScopeExit undo_addresses([&] { arena_.give_back(place.range); });
  {
    MutexLock lock(mutex_);
    allocations_.try_emplace(place.range.base, *rounded, device);
  }
  const auto pages = settings_.backing == Backing::kSmall ? platform::TouchedPages::kSmall
                                                          : platform::TouchedPages::kHuge;
  Result<void> placed = platform::place_memory(place.range, pages);
  if (placed.ok() && settings_.commit == Commit::kEager) placed = commit(place.range);
  // From here on the block, or this, gives everything back.
  undo_addresses.dismiss();
  undo_count.dismiss();
  ScopeExit undo([&] { on_managed_unreferenced(place.range); });
  US_TRY(placed);
  US_TRY_ASSIGN(Block* const block, physical_.enter_managed(place.range, device));
  undo.dismiss();
  ScopeExit undo_block([&] { physical_.drop_internal_ref(*block); });
  US_TRY(placement_.place_managed(place, *block));
  undo_block.dismiss();
  return place.range.base;
}

Result<void> ManagedMemory::count(uint64_t size) {
  MutexLock lock(mutex_);
  if (size > kMost - total_) {
    return Error::format(ErrorCode::kOutOfMemory,
                         "%s more would pass %s, the most managed memory of a process, of which %s "
                         "are allocated",
                         SizeText(size).c_str(), SizeText(kMost).c_str(), SizeText(total_).c_str());
  }
  total_ += size;
  return {};
}

void ManagedMemory::discount(uint64_t size) noexcept {
  MutexLock lock(mutex_);
  total_ -= size;
}

void ManagedMemory::on_managed_unreferenced(VirtualRange range) noexcept {
  uint64_t committed = 0;
  {
    MutexLock lock(mutex_);
    const auto found = allocations_.find(range.base);
    const std::vector<bool>& granules = found->second.committed;
    committed = static_cast<uint64_t>(std::count(granules.begin(), granules.end(), true));
    allocations_.erase(found);
    total_ -= range.size;
  }
  platform::discard_pages(range);
  pools_.budget().give_back(committed * kGranule);
  // Addresses that the CPU cannot be kept from, for want of map entries, are not used again.
  if (platform::cover(range).ok()) arena_.give_back(range);
}

void ManagedMemory::free_all(unsigned device) {
  for (VirtualAddress from = 0;;) {
    {
      MutexLock lock(mutex_);
      auto next = allocations_.lower_bound(from);
      while (next != allocations_.end() && next->second.device != device) ++next;
      if (next == allocations_.end()) return;
      from = next->first;
    }
    // Another thread may have freed it meanwhile.
    (void)placement_.end(from, device);
    ++from;
  }
}

// ---- Ranges ----

ManagedMemory::Granules ManagedMemory::granules_locked(VirtualRange range) {
  const auto around = std::prev(allocations_.upper_bound(range.base));
  const uint64_t begin = range.base - around->first;
  return {&around->second, begin / kGranule, (begin + range.size - 1) / kGranule + 1};
}

Result<ManagedMemory::Granules> ManagedMemory::find_locked(VirtualRange range) {
  const auto behind = allocations_.upper_bound(range.base);
  // One that was freed may still be in the table, for the sake of a copy.
  if (behind == allocations_.begin() || !translation_.look_up(range.base).is_managed()) {
    return Error::format(ErrorCode::kInvalidParam, "%p is not managed memory",
                         to_pointer(range.base));
  }
  const auto& [base, allocation] = *std::prev(behind);
  if (range.size > base + allocation.size - range.base) {
    return Error::format(ErrorCode::kInvalidParam, "%s at %p leave the %s of managed memory at %p",
                         SizeText(range.size).c_str(), to_pointer(range.base),
                         SizeText(allocation.size).c_str(), to_pointer(base));
  }
  return granules_locked(range);
}

Result<void> ManagedMemory::check_whole_granules(uint64_t size) const {
  if (is_aligned(size, kGranule)) return {};
  return Error::format(ErrorCode::kInvalidParam, "size %" PRIu64 " is not a multiple of 2 MiB",
                       size);
}

// ---- Advice ----

Result<AdvisedLocation> ManagedMemory::locate(LocationRequest request, int32_t id) const {
  using Kind = AdvisedLocation::Kind;
  switch (request) {
    case LocationRequest::kNone:
      return AdvisedLocation{};
    case LocationRequest::kDevice:
      if (id >= 0 && static_cast<unsigned>(id) < settings_.devices) {
        return AdvisedLocation{Kind::kDevice, id};
      }
      return Error::format(ErrorCode::kInvalidParam, "location names device %d; there are %u", id,
                           settings_.devices);
    case LocationRequest::kHost:
      return AdvisedLocation{Kind::kHost, 0};
    case LocationRequest::kHostNuma:
      if (id >= 0 && platform::numa_node_exists(static_cast<uint64_t>(id))) {
        return AdvisedLocation{Kind::kHostNuma, id};
      }
      return Error::format(ErrorCode::kInvalidParam, "the host has no NUMA node %d", id);
    case LocationRequest::kHostNumaCurrent:
      return AdvisedLocation{Kind::kHostNuma, static_cast<int32_t>(platform::current_numa_node())};
  }
  return Error::format(ErrorCode::kInvalidParam, "location.type is %d and must be 0 to 4",
                       static_cast<int>(request));
}

namespace {

// Who reads and writes, as the location says: the host is one, whatever its nodes.
void set_accessed_by(UsageAdvice& known, AdvisedLocation location, bool accessed) {
  switch (location.kind) {
    case AdvisedLocation::Kind::kNone:
      return;
    case AdvisedLocation::Kind::kDevice: {
      const uint32_t device = 1U << location.id;
      known.accessed_by_devices =
          accessed ? known.accessed_by_devices | device : known.accessed_by_devices & ~device;
      return;
    }
    case AdvisedLocation::Kind::kHost:
    case AdvisedLocation::Kind::kHostNuma:
      known.accessed_by_host = accessed;
      return;
  }
}

void apply_advice(UsageAdvice& known, Advice advice, AdvisedLocation location) {
  switch (advice) {
    case Advice::kSetReadMostly:
    case Advice::kUnsetReadMostly:
      known.read_mostly = advice == Advice::kSetReadMostly;
      return;
    case Advice::kSetPreferredLocation:
      known.preferred = location;
      return;
    case Advice::kUnsetPreferredLocation:
      known.preferred = {};
      return;
    case Advice::kSetAccessedBy:
    case Advice::kUnsetAccessedBy:
      set_accessed_by(known, location, advice == Advice::kSetAccessedBy);
      return;
  }
}

}  // namespace

Result<void> ManagedMemory::advise(VirtualRange range, Advice advice, AdvisedLocation location) {
  US_TRY(check_whole_granules(range.size));
  AdviceMap::Spare spare;
  MutexLock lock(mutex_);
  US_TRY_ASSIGN(const Granules found, find_locked(range));
  found.allocation->advice.apply(found.begin, found.end, std::move(spare), [&](UsageAdvice& known) {
    apply_advice(known, advice, location);
  });
  return {};
}

Result<UsageAdvice> ManagedMemory::advice_on(VirtualRange range) {
  MutexLock lock(mutex_);
  US_TRY_ASSIGN(const Granules found, find_locked(range));
  return found.allocation->advice.common(found.begin, found.end);
}

Result<ManagedMemory::PrefetchPlan> ManagedMemory::plan_prefetch(
    std::span<const PrefetchRequest> requests) {
  PrefetchPlan plan;
  plan.steps_.reserve(requests.size());
  for (const PrefetchRequest& request : requests) {
    US_TRY(check_whole_granules(request.range.size));
    plan.steps_.push_back({request, {}});
    MutexLock lock(mutex_);
    US_TRY(find_locked(request.range));
  }
  return plan;
}

void ManagedMemory::commit(PrefetchPlan plan) noexcept {
  for (PrefetchPlan::Step& step : plan.steps_) {
    MutexLock lock(mutex_);
    const Result<Granules> found = find_locked(step.request.range);
    if (!found.ok()) continue;  // freed meanwhile
    const Granules& granules = found.value();
    granules.allocation->advice.apply(
        granules.begin, granules.end, std::move(step.spare),
        [&](UsageAdvice& known) { known.last_prefetch = step.request.location; });
  }
}

// ---- Host memory ----

uint64_t ManagedMemory::count_cold_locked(const Granules& granules) {
  const std::vector<bool>& committed = granules.allocation->committed;
  return static_cast<uint64_t>(
      std::count(committed.begin() + static_cast<ptrdiff_t>(granules.begin),
                 committed.begin() + static_cast<ptrdiff_t>(granules.end), false));
}

Result<void> ManagedMemory::commit(VirtualRange range) {
  uint64_t cold = 0;
  {
    MutexLock lock(mutex_);
    cold = count_cold_locked(granules_locked(range));
  }
  if (cold == 0) return {};
  HostBudget& budget = pools_.budget();
  const auto take = [&] { return budget.take(cold * kGranule, HostBudget::Source::kMachine); };
  if (!take().ok()) {
    pools_.relieve_pressure();
    US_TRY(take());
  }
  // The write that needs them follows at once.
  budget.note_committed(cold * kGranule, HostBudget::Source::kMachine);
  uint64_t still_cold = 0;
  {
    MutexLock lock(mutex_);
    const Granules granules = granules_locked(range);
    still_cold = count_cold_locked(granules);
    std::fill(granules.allocation->committed.begin() + static_cast<ptrdiff_t>(granules.begin),
              granules.allocation->committed.begin() + static_cast<ptrdiff_t>(granules.end), true);
  }
  // What another thread has taken meanwhile is on its account.
  budget.give_back((cold - still_cold) * kGranule);
  return {};
}

bool ManagedMemory::is_committed(VirtualRange range) {
  MutexLock lock(mutex_);
  return count_cold_locked(granules_locked(range)) == 0;
}

}  // namespace understudy
