// SPDX-License-Identifier: Apache-2.0
//
// What aclrtMalloc gives: memory of a device at an address of its own. Charges the page kind that
// the policy asks for, and finds room: a slot of a slab for little memory in normal pages, a block
// of its own for the rest. Rules: MALLOC, FREE, POLICY. Any thread may call anything.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "device/settings.h"
#include "memory/address_arena.h"
#include "memory/address_space.h"
#include "memory/physical_memory.h"
#include "memory/pool_hooks.h"
#include "memory/slab_heap.h"
#include "observe/order.h"
#include "server/capacity.h"

namespace understudy {

// Which pages an allocation is to have.
enum class PagePolicy : uint8_t {
  kPeerHugeFirst,  // huge pages, normal ones if they run short
  kHugeFirst,      // the same, but normal pages up to 1 MiB
  kHugeOnly,
  kNormalOnly,
  kGiantOnly,
  kBySize,  // huge pages from 2 MiB on
};

struct AllocationRequest {
  unsigned device = 0;
  uint64_t asked = 0;   // the size the caller named
  uint64_t usable = 0;  // the same with rounding and padding
  PagePolicy policy = PagePolicy::kHugeFirst;
  bool read_only = false;
  uint8_t module = kApplicationModule;
  bool is_internal = false;
};

class DeviceMemory final : public MemoryCache {
 public:
  DeviceMemory(const Settings& settings, Capacity& capacity, BackingPools& pools,
               PhysicalMemory& physical, AddressSpace& space);
  ~DeviceMemory() override;

  Result<VirtualAddress> allocate(const AllocationRequest& request);
  // Ends the allocation that starts at an address, whatever device it is on; managed memory, too.
  // Memory of a pool goes back to it (FREE-07).
  Result<void> free(VirtualAddress address) {
    return is_observed() ? free_observed(address) : free_unobserved(address);
  }
  // The same where the call of the program that ends the allocation has noted that.
  Result<void> free_unobserved(VirtualAddress address);
  // A little memory for the library itself: only the caller ends it, never the program.
  Result<VirtualAddress> allocate_internal(unsigned device, uint64_t bytes);
  void free_internal(VirtualAddress address);
  // Ends all allocations of the program and all pools on a device, and the managed memory that ends
  // with it.
  // REQUIRES: the calling thread has prepared its pins. Allocates nothing.
  void free_all(unsigned device);
  void trim() override;
  bool give_back_idle() override;
  // Gives host memory back to the system that is only kept for the next allocation: behind one
  // device, or all that the process keeps.
  void give_back_kept(unsigned device);
  void give_back_all_kept() { pools_.relieve_pressure(); }

  // Before other threads use it.
  void set_share_hooks(ShareHooks& hooks) { share_hooks_ = &hooks; }
  void set_pool_hooks(PoolHooks& hooks) { pool_hooks_ = &hooks; }
  // Marks the small allocation that starts at an address, if one does: from now on the share
  // hooks are told when it is freed, and its slot may be kept until it is given back.
  struct SharedSlot {
    Extent granule;
    UsablePart part;
    Charge charge;
  };
  std::optional<SharedSlot> share_slot(VirtualAddress address);
  void unshare_slot(VirtualAddress address);
  // The block of the large allocation that starts at an address, with a reference for the caller.
  Result<AllocationPlacement::Found> find_block(VirtualAddress address) {
    return space_.allocations().find(address);
  }
  void give_back_slot(VirtualAddress address);
  // Memory of another process at an address of its own. Takes the caller's reference to the block
  // over if it succeeds.
  Result<VirtualAddress> place_import(Block& block, const UsablePart& part);
  Result<void> end_import(VirtualAddress address);

  AddressArena& addresses() { return arena_; }

 private:
  class Slabs;

  // The same as free; notes the end of the allocation's life.
  [[gnu::cold]] Result<void> free_observed(VirtualAddress address);
  Result<VirtualAddress> allocate_of(const AllocationRequest& request, PageKind kind);
  Result<VirtualAddress> allocate_slot(const AllocationRequest& request, uint64_t bytes);
  Result<VirtualAddress> allocate_block(const AllocationRequest& request, PageKind kind,
                                        uint64_t bytes);
  Result<void> free_block(VirtualAddress address, std::optional<unsigned> device = {});
  Result<VirtualAddress> place(Block& block, const UsablePart& part);
  // The slab around an address, if there is one.
  struct SlabPlace {
    SlabHeap* heap;
    Slab* slab;
    unsigned device;
  };
  std::optional<SlabPlace> slab_around(VirtualAddress address);
  // A slot is freed that was charged.
  void settle_slot(unsigned device, VirtualAddress address, SlotRecord record);

  const Settings& settings_;
  Capacity& capacity_;
  BackingPools& pools_;
  PhysicalMemory& physical_;
  AddressSpace& space_;
  ShareHooks* share_hooks_ = nullptr;
  PoolHooks* pool_hooks_ = nullptr;
  AddressArena arena_;
  std::vector<std::unique_ptr<Slabs>> slabs_;  // by device
};

}  // namespace understudy
