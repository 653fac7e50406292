// SPDX-License-Identifier: Apache-2.0
//
// Stream-ordered pools of device memory, by handle. An allocation is ready for the tasks that its
// stream gets next; a free takes effect behind the tasks that its stream has. Both are bookkeeping
// of the calling thread: no task is queued, unless the pool has to let a stream wait.
//
//   PoolRanges   which addresses of a pool are in use, free, or without memory
//   pool_reuse   which free range a stream may have
//   PoolGrowth   memory on its way between a pool and its device
//   StreamOrder  which streams come behind which tasks of others
//
// Rules: POOL, FREE-07. Any thread may call anything, without a lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/handle_table.h"
#include "base/result.h"
#include "memory/device_memory.h"
#include "memory/pool_backing.h"
#include "memory/pool_hooks.h"
#include "stream/memory_pool.h"
#include "stream/pool_growth.h"
#include "stream/streams.h"

namespace understudy {

struct PoolDescription {
  unsigned device = 0;
  uint64_t max_size = 0;  // 0: all that the device has
};

enum class PoolSwitch : uint8_t { kFollowEvents, kOpportunistic, kAddWaits };

// What a pool has, in bytes.
struct PoolUsage {
  uint64_t reserved = 0;
  uint64_t reserved_high = 0;
  uint64_t used = 0;
  uint64_t used_high = 0;
};

class MemoryPools final : private PoolHooks, private SynchronizationObserver {
 public:
  // Hears from now on what memory and streams tell pools.
  MemoryPools(Capacity& capacity, PhysicalMemory& physical, AddressSpace& space,
              DeviceMemory& memory, Streams& streams);
  MemoryPools(const MemoryPools&) = delete;
  MemoryPools& operator=(const MemoryPools&) = delete;

  // Gives the handle.
  Result<uint64_t> create(const PoolDescription& description);
  // Its memory goes back to the device: what is in use at once, and what was freed on streams when
  // they are that far.
  Result<void> destroy(uint64_t handle);
  uint64_t count() const { return pools_.count_live(); }

  // REQUIRES: size > 0.
  Result<VirtualAddress> allocate(uint64_t handle, uint64_t size, const StreamReference& stream);
  // Frees in the order of the stream: memory of a pool, or any other allocation.
  Result<void> free(VirtualAddress address, const StreamReference& stream);
  // Gives unused memory back until at most so much is reserved.
  Result<void> trim(uint64_t handle, uint64_t keep);

  // ---- Attributes. Unknown pools are an invalid parameter here (POOL-15).
  Result<bool> reuse_switch(uint64_t handle, PoolSwitch which);
  Result<void> set_reuse_switch(uint64_t handle, PoolSwitch which, bool on);
  Result<uint64_t> release_threshold(uint64_t handle);
  Result<void> set_release_threshold(uint64_t handle, uint64_t bytes);
  Result<PoolUsage> usage(uint64_t handle);
  enum class Mark : uint8_t { kReserved, kUsed };
  // From now on the mark is the highest figure since this call.
  Result<void> reset_high_mark(uint64_t handle, Mark mark);

 private:
  // PoolHooks
  Result<void> free_at_once(uint32_t pool, VirtualAddress address) override;
  void end_device(unsigned device) noexcept override;
  // SynchronizationObserver
  void on_synchronized(unsigned device) override;

  Result<PoolReference> find(uint64_t handle) const;
  // The same for calls that speak of unknown pools as invalid parameters.
  Result<PoolReference> find_parameter(uint64_t handle) const;
  static Result<void> check(const PoolReference& reference);
  Result<void> free_in(MemoryPool& pool, VirtualAddress address, const FreeMark& mark);
  Result<void> queue_free(VirtualAddress address, const StreamReference& stream);
  // What can be had of what the pool has. `may_wait`: the stream is prepared for one more task.
  Result<std::optional<VirtualAddress>> reuse_locked(MemoryPool& pool, uint64_t size,
                                                     const StreamReference& stream, bool may_wait)
      US_REQUIRES(pool.mutex);
  // False if the pool has ended already.
  bool end(const PoolReference& reference) noexcept;
  // Gives back what is left of pools that have ended.
  void drain_ended() noexcept;

  const Translation& translation_;
  Reservations& reservations_;
  DeviceMemory& memory_;
  Streams& streams_;
  PoolBacking backing_;
  HandleTable<MemoryPool> pools_{HandleTag::kMemoryPool, {"memPool", "created", "destroyed"}};
  PoolGrowth growth_{backing_, pools_};
  std::atomic<bool> has_pools_{false};  // there was one
};

}  // namespace understudy
