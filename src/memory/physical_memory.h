// SPDX-License-Identifier: Apache-2.0
//
// All physical blocks of the process, by handle. A handle names a slot and its generation: a stale,
// foreign or invented one is found out, never followed. Charges the capacity of the device when a
// block is made and credits it the moment nothing refers to the block any more.
// Rules: PHYS, PFREE, RETAIN, PROP, GRAN. Any thread may call anything; no call takes a lock of its
// own for long.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "device/capacity.h"
#include "device/settings.h"
#include "memory/block.h"
#include "memory/memory_keeper.h"
#include "memory/object_pool.h"
#include "memory/storage_set.h"

namespace understudy {

// What the user holds. Never 0, never an address.
using BlockHandle = uint64_t;

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
  PhysicalMemory(const Settings& settings, Capacity& capacity, StorageSet& storages);

  // Before other threads use it. Without one nothing is ever shared.
  void set_keeper(MemoryKeeper& keeper) { keeper_ = &keeper; }

  Result<BlockHandle> create(const BlockRequest& request);
  // A block that has no handle but one mapping, which the caller makes: what an allocation is
  // made of. Charges `bytes`, and takes whole granules for them.
  Result<Block*> create_mapped(const BlockTraits& traits, uint64_t bytes);
  // A block of another process: an extent that the keeper knows by the number of its share. It has
  // a handle, or a mapping which the caller makes.
  enum class Begins : uint8_t { kWithHandle, kMapped };
  Result<Block*> adopt(const BlockTraits& traits, const Extent& extent, uint32_t share,
                       Begins begins);
  // Drops one reference that the user holds.
  Result<void> free(BlockHandle handle);
  Result<BlockProperties> properties(BlockHandle handle);
  // Refuses attributes that the product lacks at that location.
  Result<uint64_t> granularity(BlockAttribute attribute, Location location) const;

  // For mappings. Each reference taken is dropped exactly once.
  Result<Block*> add_mapping(BlockHandle handle);
  // One more mapping of a block that someone has mapped, unless it is gone meanwhile.
  Result<void> add_mapping_of_mapped(Block& block);
  void drop_mapping(Block& block);
  // One more handle to a mapped block.
  Result<BlockHandle> retain(Block& block);
  // Keep the extent for a reader although the block may be gone.
  void hold_storage(Block& block);
  void drop_storage(Block& block);

  BlockHandle handle_of(const Block& block) const;
  // How many handles the program has, one block's counted as often as it was retained.
  uint64_t count_handles() const;
  // Whether the program has a handle of it. REQUIRES: the caller has a reference.
  static bool has_handle(const Block& block);

 private:
  static constexpr uint32_t kMaxMappings = (1U << BlockState::kMappingBits) - 1;
  // Who must hold the block already for one more reference of the mapping kind.
  enum class OwnedBy : uint8_t { kUser, kMapping, kAnyone };
  enum class Counted : uint8_t { kYes, kNo, kFull };

  Result<void> check_supported(BlockAttribute attribute, Location location) const;
  Result<uint64_t> rounded_size(const BlockRequest& request, uint64_t granularity) const;
  Result<Block*> make_block(const BlockTraits& traits, uint64_t size, uint64_t charged,
                            const BlockState& references);
  Result<void> charge(const BlockTraits& traits, uint64_t bytes);
  void credit(const BlockTraits& traits, uint64_t bytes);
  Result<Block*> find(BlockHandle handle);
  Error unknown_handle(BlockHandle handle) const;
  bool drop_handle(Block& block, uint32_t generation);
  Result<void> free_shared(BlockHandle handle);
  // The caller has a reference.
  void close_if_last(Block& block);
  Result<Block*> enter_block(const BlockTraits& traits, const Extent& extent,
                             uint64_t charged_pages, const BlockShare& share,
                             const BlockState& references);
  Error mapped_too_often() const;
  Result<Block*> add_mapping_reference(BlockHandle handle, OwnedBy owner);
  Counted count_mapping(Block& block, uint32_t generation, OwnedBy owner);
  // Changes the state if `change` allows it. The block ends if nothing refers to it afterwards.
  template <typename Change>
  bool update(Block& block, uint32_t generation, Change change);
  void end(Block& block);

  const Settings& settings_;
  Capacity& capacity_;
  StorageSet& storages_;
  MemoryKeeper* keeper_ = nullptr;
  ObjectPool<Block> blocks_;
};

}  // namespace understudy
