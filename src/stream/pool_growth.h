// SPDX-License-Identifier: Apache-2.0
//
// How memory moves between a pool and its device. What is to move is decided under the lock of the
// pool and moved without it, since charging may wait for other processes; meanwhile the range is
// marked as moving, and no other thread touches it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/handle_table.h"
#include "base/result.h"
#include "memory/pool_backing.h"
#include "stream/memory_pool.h"

namespace understudy {

class PoolGrowth {
 public:
  PoolGrowth(PoolBacking& backing, HandleTable<MemoryPool>& pools)
      : backing_(backing), pools_(pools) {}

  // A range whose memory is on its way.
  struct Move {
    enum class Kind : uint8_t {
      kNone,
      kWait,     // for what another thread moves
      kOpen,     // a segment
      kGrow,     // gets memory
      kRelease,  // loses it
    };
    Kind kind = Kind::kNone;
    uint64_t size = 0;
    VirtualRange range;
    PoolSegment* segment = nullptr;
    std::unique_ptr<PoolSegment> closing;  // the segment, if all of it goes
    uint32_t moves = 0;                    // how many had ended when it was planned
  };

  // The next step towards `size` more bytes in use. kPoolUnable if the pool cannot have them.
  Result<Move> plan_growth_locked(MemoryPool& pool, uint64_t size) US_REQUIRES(pool.mutex);
  // Carries it out. The address, once there is an allocation of that size.
  Result<std::optional<VirtualAddress>> carry_out(const PoolReference& reference, Move move);

  // Gives free memory back whose free has run, until no more than so much is left.
  enum class Shrink : uint8_t { kReserved, kFree };
  void shrink(const PoolReference& reference, Shrink what, uint64_t bytes);
  // The same with all of a pool that has ended; with the last of it the slot is free. Allocates
  // nothing.
  void drain(MemoryPool& pool) noexcept;

  // An allocation begins or ends. `before` is the mark of a free range that it takes.
  static void begin_allocation_locked(MemoryPool& pool, VirtualRange range,
                                      const PoolSegment& segment, const FreeMark& before)
      US_REQUIRES(pool.mutex);
  static void end_allocation_locked(MemoryPool& pool, const PoolRange& range, const FreeMark& mark)
      US_REQUIRES(pool.mutex);

 private:
  // New segments have at least this size, and together double each time, so that there are few.
  static constexpr uint64_t kLeastSegment = 64 * kMiB;

  Result<std::optional<VirtualAddress>> grow(const PoolReference& reference, const Move& move);
  Result<void> open_segment(const PoolReference& reference, uint64_t size);
  Result<std::unique_ptr<PoolSegment>> open_segment_of(const MemoryPool& pool, uint64_t wanted,
                                                       uint64_t least);
  // A whole range, which needs no cut and so no memory.
  static constexpr uint64_t kAllOfIt = UINT64_MAX - kGranule;
  // Memory of the pool that is not in use, if there is any to give back.
  static Move plan_release_locked(MemoryPool& pool, uint64_t most) US_REQUIRES(pool.mutex);
  // False if it stays.
  bool release(MemoryPool& pool, Move move) noexcept;

  static Move wait_for_others_locked(const MemoryPool& pool) US_REQUIRES(pool.mutex);
  static std::unique_ptr<PoolSegment> take_segment_locked(MemoryPool& pool,
                                                          const PoolSegment& segment)
      US_REQUIRES(pool.mutex);
  // The segment, if nothing of it has memory any more.
  static std::unique_ptr<PoolSegment> make_bare_locked(MemoryPool& pool, VirtualAddress base)
      US_REQUIRES(pool.mutex);
  void finish_move_locked(MemoryPool& pool) noexcept US_REQUIRES(pool.mutex);
  void recycle_if_over_locked(MemoryPool& pool) noexcept US_REQUIRES(pool.mutex);

  PoolBacking& backing_;
  HandleTable<MemoryPool>& pools_;
};

// The pool ended, or never was.
Error pool_ended();

}  // namespace understudy
