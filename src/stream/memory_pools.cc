// SPDX-License-Identifier: Apache-2.0
#include "stream/memory_pools.h"

#include <memory>
#include <new>
#include <utility>

#include "base/size_text.h"
#include "memory/address_errors.h"
#include "observe/history.h"
#include "stream/task_uses.h"

namespace understudy {

namespace {

bool& switch_of(ReuseRules& rules, PoolSwitch which) {
  switch (which) {
    case PoolSwitch::kFollowEvents:
      return rules.follow_events;
    case PoolSwitch::kOpportunistic:
      return rules.opportunistic;
    case PoolSwitch::kAddWaits:
      break;
  }
  return rules.add_waits;
}

Error not_in_use(VirtualAddress address) {
  return Error::format(ErrorCode::kInvalidParam,
                       "%p is memory of a pool, but not the start of an allocation, or was freed",
                       to_pointer(address))
      .about(address);
}

// Lets the stream of a choice wait until the free has run.
Task wait_for_free(const PoolRange& range, const StreamReference& stream) {
  Task task(TaskKind::kWaitForRecord, stream.device());
  task.wait = {.stream = freed_on(range.mark),
               .position = range.mark.position,
               .moment = {},
               .limit_seconds = 0,
               .is_counted = false,
               .has_begun = false,
               .deadline = kNever};
  return task;
}

}  // namespace

MemoryPools::MemoryPools(Capacity& capacity, PhysicalMemory& physical, AddressSpace& space,
                         DeviceMemory& memory, Streams& streams)
    : translation_(space.translation()),
      reservations_(space.reservations()),
      memory_(memory),
      streams_(streams),
      backing_(capacity, physical, space, memory.addresses()) {
  memory.set_pool_hooks(*this);
  streams.set_observer(*this);
}

// ---- Pools ----

Result<uint64_t> MemoryPools::create(const PoolDescription& description) {
  const uint64_t total = backing_.device_total(description.device);
  const std::optional<uint64_t> rounded = align_up(description.max_size, kGranule);
  if (!rounded || description.max_size > total) {
    return Error::format(ErrorCode::kInvalidParam, "maxSize is %s and device %u has %s",
                         SizeText(description.max_size).c_str(), description.device,
                         SizeText(total).c_str());
  }
  drain_ended();
  auto ranges = std::make_unique<PoolRanges>();
  US_TRY_ASSIGN(MemoryPool* const taken, pools_.take());
  MemoryPool& pool = *taken;
  streams_.order().begin();
  has_pools_.store(true);
  MutexLock lock(pool.mutex);
  pool.device.store(description.device, std::memory_order_relaxed);
  pool.may_add_waits.store(false, std::memory_order_relaxed);
  pool.max_size = description.max_size == 0 ? align_down(total, kGranule) : *rounded;
  pool.reuse = {};
  pool.release_threshold = 0;
  pool.reserved_high = 0;
  pool.used_high = 0;
  pool.ranges = std::move(ranges);
  pool.state.fetch_add(1, std::memory_order_release);
  return pools_.handle_of(pool);
}

Result<PoolReference> MemoryPools::find_parameter(uint64_t handle) const {
  US_TRY_ASSIGN(MemoryPool* const pool, pools_.find(handle));
  const uint32_t state = pool->state.load(std::memory_order_acquire);
  // It may have ended since, and be another pool's slot.
  if (!SlotState::alive(state) ||
      SlotState::generation(state) != HandleParts::split(handle).generation) {
    return pools_.unknown(handle);
  }
  return PoolReference{pool, state};
}

Result<PoolReference> MemoryPools::find(uint64_t handle) const {
  Result<PoolReference> found = find_parameter(handle);
  if (found.ok()) [[likely]]
    return found;
  return found.error().as(ErrorCode::kPoolUnable);
}

Result<void> MemoryPools::check(const PoolReference& reference) {
  if (reference.valid()) [[likely]]
    return {};
  return pool_ended();
}

Result<void> MemoryPools::destroy(uint64_t handle) {
  US_TRY_ASSIGN(const PoolReference reference, find_parameter(handle));
  if (!end(reference)) return pools_.unknown(handle);
  return {};
}

bool MemoryPools::end(const PoolReference& reference) noexcept {
  MemoryPool& pool = *reference.pool;
  {
    MutexLock lock(pool.mutex);
    if (!reference.valid()) return false;
    pool.state.store(reference.state + 1, std::memory_order_release);
    std::optional<PoolRange> used = pool.ranges->used_from(0);
    while (used) {
      PoolGrowth::end_allocation_locked(pool, *used, {});
      used = pool.ranges->used_from(used->range.end());
    }
  }
  growth_.drain(pool);
  return true;
}

void MemoryPools::drain_ended() noexcept {
  pools_.for_each([&](MemoryPool& pool) { growth_.drain(pool); });
}

void MemoryPools::end_device(unsigned device) noexcept {
  pools_.for_each([&](MemoryPool& pool) {
    if (pool.device.load(std::memory_order_relaxed) != device) return;
    const uint32_t state = pool.state.load(std::memory_order_acquire);
    if (!SlotState::alive(state) || !end({&pool, state})) growth_.drain(pool);
  });
}

void MemoryPools::on_synchronized(unsigned device) {
  if (!has_pools_.load(std::memory_order_relaxed)) [[likely]]
    return;
  pools_.for_each([&](MemoryPool& pool) {
    if (pool.device.load(std::memory_order_relaxed) != device) return;
    const uint32_t state = pool.state.load(std::memory_order_acquire);
    if (!SlotState::alive(state)) return growth_.drain(pool);
    uint64_t threshold = 0;
    {
      MutexLock lock(pool.mutex);
      threshold = pool.release_threshold;
    }
    try {
      growth_.shrink({&pool, state}, PoolGrowth::Shrink::kFree, threshold);
    } catch (const std::bad_alloc&) {
      // No memory to cut a range. The synchronization has succeeded; a later one gives it back.
    }
  });
}

// ---- Allocations ----

Result<VirtualAddress> MemoryPools::allocate(uint64_t handle, uint64_t size,
                                             const StreamReference& stream) {
  US_TRY_ASSIGN(const PoolReference reference, find(handle));
  MemoryPool& pool = *reference.pool;
  const std::optional<uint64_t> rounded = align_up(size, kGranule);
  if (!rounded) {
    return Error::format(ErrorCode::kPoolUnable, "no pool has %s", SizeText(size).c_str());
  }
  // May wait until the stream has room for a task, which is not to be done under the lock.
  const bool may_wait = pool.may_add_waits.load(std::memory_order_relaxed);
  if (may_wait) US_TRY(streams_.prepare(stream));
  while (true) {
    PoolGrowth::Move move;
    {
      MutexLock lock(pool.mutex);
      US_TRY(check(reference));
      US_TRY_ASSIGN(const auto reused, reuse_locked(pool, *rounded, stream, may_wait));
      if (reused) return *reused;
      US_TRY_ASSIGN(move, growth_.plan_growth_locked(pool, *rounded));
    }
    US_TRY_ASSIGN(const auto grown, growth_.carry_out(reference, std::move(move)));
    if (grown) return *grown;
  }
}

Result<std::optional<VirtualAddress>> MemoryPools::reuse_locked(MemoryPool& pool, uint64_t size,
                                                                const StreamReference& stream,
                                                                bool may_wait) {
  ReuseRules rules = pool.reuse;
  rules.add_waits = rules.add_waits && may_wait;
  PoolRanges& ranges = *pool.ranges;
  const std::optional<ReuseChoice> choice =
      choose_range(ranges, rules, size, *stream.stream, streams_.order());
  if (!choice) return std::optional<VirtualAddress>();
  const PoolRange& range = choice->range;
  const VirtualAddress base = range.range.base;
  if (range.range.size > size) ranges.prepare_cut();
  if (choice->needs_wait) {
    US_TRY_ASSIGN(const uint64_t queued,
                  streams_.submit_prepared(stream, wait_for_free(range, stream)));
    streams_.order().note(*stream.stream, *freed_on(range.mark), range.mark.position, queued);
  }
  ranges.use(base, size);
  PoolGrowth::begin_allocation_locked(pool, {base, size}, *range.segment, range.mark);
  return std::optional(base);
}

Result<void> MemoryPools::free(VirtualAddress address, const StreamReference& stream) {
  const ObjectEnd end(ObjectKind::kAllocation, address);
  if (const std::optional<uint32_t> pool = translation_.pool_of(address)) {
    US_TRY(free_in(pools_.at(*pool), address, free_mark(*stream.stream)));
  } else {
    US_TRY(queue_free(address, stream));
  }
  end.confirm();
  return {};
}

Result<void> MemoryPools::free_at_once(uint32_t pool, VirtualAddress address) {
  return free_in(pools_.at(pool), address, {});
}

Result<void> MemoryPools::free_in(MemoryPool& pool, VirtualAddress address, const FreeMark& mark) {
  MutexLock lock(pool.mutex);
  if (pool.ranges == nullptr) return not_in_use(address);
  const std::optional<PoolRange> range = pool.ranges->at(address);
  if (!range || range->use != RangeUse::kUsed) return not_in_use(address);
  // Others may have the memory from then on.
  if (freed_on(mark) != nullptr && is_order_checked()) [[unlikely]]
    note_freed(mark, range->range);
  PoolGrowth::end_allocation_locked(pool, *range, mark);
  return {};
}

Result<void> MemoryPools::queue_free(VirtualAddress address, const StreamReference& stream) {
  const std::optional<MappingView> found = translation_.find(address);
  if (!found || !found->is_allocation || found->range.base != address) {
    return not_an_allocation(translation_, reservations_, address);
  }
  Task task(TaskKind::kFree, stream.device());
  task.free = {&memory_, found->range};
  US_TRY(streams_.submit(stream, task));
  return {};
}

Result<void> MemoryPools::trim(uint64_t handle, uint64_t keep) {
  US_TRY_ASSIGN(const PoolReference reference, find(handle));
  {
    MutexLock lock(reference.pool->mutex);
    US_TRY(check(reference));
    if (keep > reference.pool->max_size) {
      return Error::format(ErrorCode::kPoolUnable, "minBytesToKeep is %s and the pool's limit %s",
                           SizeText(keep).c_str(), SizeText(reference.pool->max_size).c_str());
    }
  }
  growth_.shrink(reference, PoolGrowth::Shrink::kReserved, keep);
  return {};
}

// ---- Attributes ----

Result<bool> MemoryPools::reuse_switch(uint64_t handle, PoolSwitch which) {
  US_TRY_ASSIGN(const PoolReference reference, find_parameter(handle));
  MutexLock lock(reference.pool->mutex);
  if (!reference.valid()) return pools_.unknown(handle);
  return switch_of(reference.pool->reuse, which);
}

Result<void> MemoryPools::set_reuse_switch(uint64_t handle, PoolSwitch which, bool on) {
  US_TRY_ASSIGN(const PoolReference reference, find_parameter(handle));
  MutexLock lock(reference.pool->mutex);
  if (!reference.valid()) return pools_.unknown(handle);
  switch_of(reference.pool->reuse, which) = on;
  reference.pool->may_add_waits.store(reference.pool->reuse.add_waits, std::memory_order_relaxed);
  return {};
}

Result<uint64_t> MemoryPools::release_threshold(uint64_t handle) {
  US_TRY_ASSIGN(const PoolReference reference, find_parameter(handle));
  MutexLock lock(reference.pool->mutex);
  if (!reference.valid()) return pools_.unknown(handle);
  return reference.pool->release_threshold;
}

Result<void> MemoryPools::set_release_threshold(uint64_t handle, uint64_t bytes) {
  US_TRY_ASSIGN(const PoolReference reference, find_parameter(handle));
  MutexLock lock(reference.pool->mutex);
  if (!reference.valid()) return pools_.unknown(handle);
  if (bytes > reference.pool->max_size) {
    return Error::format(ErrorCode::kPoolUnable, "the threshold is %s and the pool's limit %s",
                         SizeText(bytes).c_str(), SizeText(reference.pool->max_size).c_str());
  }
  reference.pool->release_threshold = bytes;
  return {};
}

Result<PoolUsage> MemoryPools::usage(uint64_t handle) {
  US_TRY_ASSIGN(const PoolReference reference, find_parameter(handle));
  MemoryPool& pool = *reference.pool;
  MutexLock lock(pool.mutex);
  if (!reference.valid()) return pools_.unknown(handle);
  return PoolUsage{.reserved = pool.ranges->backed_bytes(),
                   .reserved_high = pool.reserved_high,
                   .used = pool.ranges->used_bytes(),
                   .used_high = pool.used_high};
}

Result<void> MemoryPools::reset_high_mark(uint64_t handle, Mark mark) {
  US_TRY_ASSIGN(const PoolReference reference, find_parameter(handle));
  MemoryPool& pool = *reference.pool;
  MutexLock lock(pool.mutex);
  if (!reference.valid()) return pools_.unknown(handle);
  if (mark == Mark::kReserved) {
    pool.reserved_high = pool.ranges->backed_bytes();
  } else {
    pool.used_high = pool.ranges->used_bytes();
  }
  return {};
}

}  // namespace understudy
