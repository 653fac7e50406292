// SPDX-License-Identifier: Apache-2.0
#include "stream/pool_growth.h"

#include <algorithm>
#include <utility>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "observe/order.h"
#include "observe/unwritten_memory.h"
#include "stream/pool_reuse.h"

namespace understudy {

using Move = PoolGrowth::Move;

Error pool_ended() {
  return Error::format(ErrorCode::kPoolUnable,
                       "memPool is no pool: it was destroyed, its device was reset, or it never "
                       "was one");
}

namespace {

// Where the free has yet to run, tasks that come before the allocation may read what was there:
// then all of it counts as written.
void note_begin(const Extent& extent, const FreeMark& before) {
  const VirtualRange host{extent.backing->alias(extent.offset), extent.size};
  if (has_run(before)) {
    UnwrittenMemory::renew(host);
  } else {
    UnwrittenMemory::write(host);
  }
}

}  // namespace

// ---- Planning ----

Result<Move> PoolGrowth::plan_growth_locked(MemoryPool& pool, uint64_t size) {
  PoolRanges& ranges = *pool.ranges;
  if (size > pool.max_size || ranges.used_bytes() > pool.max_size - size) {
    return Error::format(ErrorCode::kPoolUnable,
                         "pool limit (%s) reached: %s are in use and %s were asked for",
                         SizeText(pool.max_size).c_str(), SizeText(ranges.used_bytes()).c_str(),
                         SizeText(size).c_str());
  }
  // What is free, and not for this stream, is in the way.
  if (ranges.backed_bytes() + size > pool.max_size) {
    Move move = plan_release_locked(pool, ranges.backed_bytes() + size - pool.max_size);
    if (move.kind == Move::Kind::kNone && pool.movers > 0) move = wait_for_others_locked(pool);
    if (move.kind != Move::Kind::kNone) return move;
    return Error::format(ErrorCode::kPoolUnable,
                         "pool limit (%s) reached: %s are in use, %s were freed on streams that "
                         "have not got there yet, and %s were asked for",
                         SizeText(pool.max_size).c_str(), SizeText(ranges.used_bytes()).c_str(),
                         SizeText(ranges.free_bytes()).c_str(), SizeText(size).c_str());
  }
  Move move;
  move.size = size;
  const std::optional<PoolRange> bare = ranges.best_bare(size);
  if (bare) {
    if (bare->range.size > size) ranges.prepare_cut();
    ranges.begin_growth(bare->range.base, size);
    move.kind = Move::Kind::kGrow;
    move.range = {bare->range.base, size};
    move.segment = bare->segment;
  } else {
    move.kind = Move::Kind::kOpen;
    pool.segments.reserve(pool.segments.size() + pool.movers + 1);
  }
  ++pool.movers;
  return move;
}

Move PoolGrowth::plan_release_locked(MemoryPool& pool, uint64_t most) {
  PoolRanges& ranges = *pool.ranges;
  Move move;
  const std::optional<PoolRange> found = find_released(ranges);
  if (!found) return move;
  const VirtualAddress base = found->range.base;
  move.size = std::min(found->range.size, *align_up(most, kGranule));
  move.range = {base, move.size};
  move.segment = found->segment;
  if (move.size == found->range.size && ranges.is_alone(base)) {
    move.closing = take_segment_locked(pool, *found->segment);
    ranges.remove_segment(*move.closing);
  } else {
    if (move.size < found->range.size) ranges.prepare_cut();
    ranges.begin_release(base, move.size);
  }
  move.kind = Move::Kind::kRelease;
  ++pool.movers;
  return move;
}

Move PoolGrowth::wait_for_others_locked(const MemoryPool& pool) {
  Move move;
  move.kind = Move::Kind::kWait;
  move.moves = pool.moves.load();
  return move;
}

// ---- Moving ----

Result<std::optional<VirtualAddress>> PoolGrowth::carry_out(const PoolReference& reference,
                                                            Move move) {
  switch (move.kind) {
    case Move::Kind::kNone:
      break;
    case Move::Kind::kWait:
      reference.pool->moves.wait(move.moves);
      break;
    case Move::Kind::kOpen:
      US_TRY(open_segment(reference, move.size));
      break;
    case Move::Kind::kGrow:
      return grow(reference, move);
    case Move::Kind::kRelease:
      if (!release(*reference.pool, std::move(move))) {
        return Error::format(ErrorCode::kPoolUnable,
                             "free memory of the pool cannot be given back: the host has no map "
                             "entries left");
      }
      break;
  }
  return std::optional<VirtualAddress>();
}

Result<std::optional<VirtualAddress>> PoolGrowth::grow(const PoolReference& reference,
                                                       const Move& move) {
  MemoryPool& pool = *reference.pool;
  const Result<void> backed = backing_.back(*move.segment, move.range);
  if (backed.ok()) {
    MutexLock lock(pool.mutex);
    if (reference.valid()) {
      pool.ranges->finish_growth(move.range.base);
      begin_allocation_locked(pool, move.range, *move.segment, {});
      finish_move_locked(pool);
      return std::optional(move.range.base);
    }
  }
  // The pool has ended meanwhile, or there is no memory.
  if (backed.ok()) (void)backing_.unback(*move.segment, move.range);
  std::unique_ptr<PoolSegment> closing;
  Move next;
  {
    MutexLock lock(pool.mutex);
    closing = make_bare_locked(pool, move.range.base);
    if (reference.valid() && backed.error().code() == ErrorCode::kOutOfMemory) {
      // What the pool keeps free goes back first.
      next = plan_release_locked(pool, kAllOfIt);
      if (next.kind == Move::Kind::kNone && pool.movers > 1) next = wait_for_others_locked(pool);
    }
  }
  if (closing) backing_.close(std::move(closing), {});
  {
    MutexLock lock(pool.mutex);
    finish_move_locked(pool);
  }
  if (!reference.valid()) return pool_ended();
  if (next.kind != Move::Kind::kNone) return carry_out(reference, std::move(next));
  const bool no_memory = backed.error().code() == ErrorCode::kOutOfMemory;
  return no_memory ? backed.error().as(ErrorCode::kPoolUnable) : backed.error();
}

Result<std::unique_ptr<PoolSegment>> PoolGrowth::open_segment_of(const MemoryPool& pool,
                                                                 uint64_t wanted, uint64_t least) {
  const unsigned device = pool.device.load(std::memory_order_relaxed);
  Result<std::unique_ptr<PoolSegment>> opened = backing_.open(device, wanted, pool.index);
  // Where so many addresses cannot be had, just enough do as well.
  if (opened.ok() || wanted == least) return opened;
  return backing_.open(device, least, pool.index);
}

Result<void> PoolGrowth::open_segment(const PoolReference& reference, uint64_t size) {
  MemoryPool& pool = *reference.pool;
  ScopeExit finish([&] {
    MutexLock lock(pool.mutex);
    finish_move_locked(pool);
  });
  uint64_t wanted = 0;
  {
    MutexLock lock(pool.mutex);
    for (const auto& each : pool.segments) wanted += each->range.size;
    wanted = std::max(size, std::min(pool.max_size, std::max(wanted, kLeastSegment)));
  }
  US_TRY_ASSIGN(std::unique_ptr<PoolSegment> segment, open_segment_of(pool, wanted, size));
  ScopeExit undo([&] { backing_.close(std::move(segment), {}); });
  MutexLock lock(pool.mutex);
  if (!reference.valid()) return pool_ended();
  pool.ranges->prepare_cut();  // for the allocation that is to come
  pool.ranges->add_segment(*segment);
  pool.segments.push_back(std::move(segment));  // there is room
  undo.dismiss();
  return {};
}

bool PoolGrowth::release(MemoryPool& pool, Move move) noexcept {
  const bool closes = move.closing != nullptr;
  bool is_released = true;
  if (closes) {
    backing_.close(std::move(move.closing), move.range);
  } else {
    is_released = backing_.unback(*move.segment, move.range);
  }
  std::unique_ptr<PoolSegment> closing;
  {
    MutexLock lock(pool.mutex);
    if (!closes && is_released) closing = make_bare_locked(pool, move.range.base);
    if (!is_released) pool.ranges->cancel_release(move.range.base);
  }
  if (closing) backing_.close(std::move(closing), {});
  MutexLock lock(pool.mutex);
  finish_move_locked(pool);
  return is_released;
}

void PoolGrowth::shrink(const PoolReference& reference, Shrink what, uint64_t bytes) {
  MemoryPool& pool = *reference.pool;
  while (true) {
    Move move;
    {
      MutexLock lock(pool.mutex);
      if (!reference.valid()) return;
      const PoolRanges& ranges = *pool.ranges;
      const uint64_t now = what == Shrink::kReserved ? ranges.backed_bytes() : ranges.free_bytes();
      if (now <= bytes) return;
      pool.ranges->prepare_cut();  // before the first range goes: with none it fails as a whole
      move = plan_release_locked(pool, now - bytes);
    }
    if (move.kind == Move::Kind::kNone || !release(pool, std::move(move))) return;
  }
}

void PoolGrowth::drain(MemoryPool& pool) noexcept {
  while (true) {
    Move move;
    {
      MutexLock lock(pool.mutex);
      if (SlotState::alive(pool.state.load()) || pool.ranges == nullptr) return;
      move = plan_release_locked(pool, kAllOfIt);
      if (move.kind == Move::Kind::kNone) {
        recycle_if_over_locked(pool);
        return;
      }
    }
    if (!release(pool, std::move(move))) return;
  }
}

// ---- Under the lock ----

void PoolGrowth::begin_allocation_locked(MemoryPool& pool, VirtualRange range,
                                         const PoolSegment& segment, const FreeMark& before) {
  if (is_init_checked()) [[unlikely]]
    note_begin(segment.extent_of(range), before);
  // All of it, not only what was asked for.
  if (is_order_checked()) [[unlikely]]
    Order::note_begin(range);
  segment.parts->add(segment.granule_of(range.base), range.size / kGranule);
  pool.used_high = std::max(pool.used_high, pool.ranges->used_bytes());
  pool.reserved_high = std::max(pool.reserved_high, pool.ranges->backed_bytes());
}

void PoolGrowth::end_allocation_locked(MemoryPool& pool, const PoolRange& range,
                                       const FreeMark& mark) {
  range.segment->parts->remove(range.segment->granule_of(range.range.base));
  pool.ranges->free(range.range.base, mark);
}

std::unique_ptr<PoolSegment> PoolGrowth::take_segment_locked(MemoryPool& pool,
                                                             const PoolSegment& segment) {
  const auto found = std::find_if(pool.segments.begin(), pool.segments.end(),
                                  [&](const auto& each) { return each.get() == &segment; });
  std::swap(*found, pool.segments.back());
  std::unique_ptr<PoolSegment> taken = std::move(pool.segments.back());
  pool.segments.pop_back();
  return taken;
}

std::unique_ptr<PoolSegment> PoolGrowth::make_bare_locked(MemoryPool& pool, VirtualAddress base) {
  const PoolRange around = pool.ranges->make_bare(base);
  if (around.range != around.segment->range) return nullptr;
  pool.ranges->remove_segment(*around.segment);
  return take_segment_locked(pool, *around.segment);
}

void PoolGrowth::finish_move_locked(MemoryPool& pool) noexcept {
  --pool.movers;
  pool.moves.fetch_add(1);
  pool.moves.notify_all();
  if (!SlotState::alive(pool.state.load())) recycle_if_over_locked(pool);
}

void PoolGrowth::recycle_if_over_locked(MemoryPool& pool) noexcept {
  if (pool.ranges == nullptr || !pool.segments.empty() || pool.movers > 0) return;
  pool.ranges.reset();
  pools_.recycle(pool);
}

}  // namespace understudy
