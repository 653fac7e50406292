// SPDX-License-Identifier: Apache-2.0
//
// All physical blocks of the process, by handle. Charges the capacity of the device when a
// block is made and credits it the moment nothing refers to the block any more.
// Rules: PHYS, PFREE, RETAIN, PROP, GRAN. Any thread may call anything; no call takes a lock of its
// own for long.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/handle_table.h"
#include "base/result.h"
#include "device/settings.h"
#include "memory/backing_pools.h"
#include "memory/block.h"
#include "memory/share_hooks.h"
#include "server/capacity.h"

namespace understudy {

// What the user holds. Never 0, never an address.
using BlockHandle = uint64_t;

// Whose managed memory is: told when nothing uses some of it any more.
class ManagedMemoryOwner {
 public:
  virtual void on_managed_unreferenced(VirtualRange range) noexcept = 0;

 protected:
  ~ManagedMemoryOwner() = default;
};

struct BlockRequest {
  uint64_t size = 0;
  BlockAttribute attribute = BlockAttribute::kHuge;
  Location location;
};

struct BlockProperties {
  uint64_t size = 0;
  BlockAttribute attribute = BlockAttribute::kHuge;
  Location location;
};

class PhysicalMemory {
 public:
  PhysicalMemory(const Settings& settings, Capacity& capacity, BackingPools& pools);

  // Before other threads use it. Without one nothing is ever shared.
  void set_share_hooks(ShareHooks& hooks) { share_hooks_ = &hooks; }
  // The same for managed memory.
  void set_managed_memory(ManagedMemoryOwner& owner) { managed_memory_ = &owner; }

  Result<BlockHandle> create(const BlockRequest& request);
  // A block that has no handle but one mapping, which the caller makes: what an allocation is
  // made of. Charges `bytes`, and takes whole granules for them.
  Result<Block*> create_mapped(const BlockTraits& traits, uint64_t bytes);
  // The same for memory that is charged part by part, by the caller.
  Result<Block*> create_uncharged(const BlockTraits& traits, uint64_t size);
  // A block of another process: an extent that the share hooks know by the number of its share. It
  // has a handle, or a mapping which the caller makes.
  enum class Begins : uint8_t { kWithHandle, kMapped };
  Result<Block*> adopt(const BlockTraits& traits, const Extent& extent, uint32_t share,
                       Begins begins);
  // A block of managed memory, which has no extent. It has one mapping, which the caller makes.
  Result<Block*> enter_managed(VirtualRange range, unsigned device);
  // Drops one reference that the user holds.
  Result<void> free(BlockHandle handle);
  Result<BlockProperties> properties(BlockHandle handle);
  // Refuses attributes that the product lacks at that location.
  Result<uint64_t> granularity(BlockAttribute attribute, Location location) const;

  // Internal references, for mappings and calls. Each one taken is dropped exactly once.
  Result<Block*> add_internal_ref(BlockHandle handle);
  // One more to a block that is mapped, unless it was unmapped meanwhile.
  Result<void> add_internal_ref_to_mapped(Block& block);
  void drop_internal_ref(Block& block);
  // One more handle to a mapped block.
  Result<BlockHandle> retain(Block& block);
  // An exported block that ended, and that no other process holds any more: its extent and its
  // number can be used again.
  void take_back(uint32_t index);
  // Keep the extent for a reader although the block may be gone.
  void hold_extent(Block& block);
  void drop_extent(Block& block);

  // The block of that number may be asked for soon.
  void prefetch_slot(uint32_t index) const { blocks_.prefetch(index); }

  BlockHandle handle_of(const Block& block) const { return blocks_.handle_of(block); }
  // How many handles the program has, one block's counted as often as it was retained.
  uint64_t count_handles() const;
  // Whether the program has a handle of it. REQUIRES: the caller has a reference.
  static bool has_handle(const Block& block);

 private:
  // Which reference must exist already for one more internal reference.
  enum class OwnedBy : uint8_t { kUser, kMapping, kAny };
  enum class Counted : uint8_t { kYes, kNo, kFull };

  Result<void> check_supported(BlockAttribute attribute, Location location) const;
  Result<uint64_t> rounded_size(const BlockRequest& request, uint64_t granularity) const;
  Result<Block*> make_block(const BlockTraits& traits, uint64_t size, uint64_t charged,
                            BlockState references);
  // Of the memory of devices, or of what the host has for copies between them.
  Result<void> charge(const BlockTraits& traits, uint64_t bytes);
  bool is_in_host_window(const BlockTraits& traits) const;
  Result<void> charge_host_window(uint64_t bytes);
  void credit(const BlockTraits& traits, uint64_t bytes);
  // The slot that a handle names. Whether its block is still the handle's is compared in the step
  // that takes or drops a reference.
  Result<Block*> slot_of(BlockHandle handle) const;
  bool drop_handle(Block& block, uint32_t generation);
  Result<void> free_shared(BlockHandle handle);
  // The caller has a reference.
  void close_if_last(Block& block);
  Result<Block*> enter_block(const BlockTraits& traits, const Extent& extent,
                             uint64_t charged_pages, const BlockShare& share,
                             BlockState references);
  Error too_many_internal_refs() const;
  Result<Block*> add_internal_ref_of(BlockHandle handle, OwnedBy owner);
  Counted count_internal_ref(Block& block, uint32_t generation, OwnedBy owner);
  // Changes the state if `change` allows it. The block ends if nothing refers to it afterwards.
  template <typename Change>
  bool update(Block& block, uint32_t generation, Change change);
  void end(Block& block);
  void give_back_extent(const Block& block);

  const Settings& settings_;
  Capacity& capacity_;
  BackingPools& pools_;
  ShareHooks* share_hooks_ = nullptr;
  ManagedMemoryOwner* managed_memory_ = nullptr;
  HandleTable<Block> blocks_{HandleTag::kBlock, {"handle", "given out", "freed"}};
};

}  // namespace understudy
