// SPDX-License-Identifier: Apache-2.0
#include "memory/physical_memory.h"

#include <cinttypes>

#include "base/handle.h"
#include "base/scope_exit.h"
#include "base/size_text.h"
#include "platform/host_facts.h"

namespace understudy {

namespace {

bool is_giant(BlockAttribute attribute) { return page_kind_of(attribute) == PageKind::kGiant; }

Feature feature_for_giant(BlockAttribute attribute) {
  switch (attribute) {
    case BlockAttribute::kHbmGiant:
      return Feature::kGiantHbmBlock;
    case BlockAttribute::kPeerGiant:
      return Feature::kGiantPeerBlock;
    default:
      return Feature::kGiantGenericBlock;
  }
}

}  // namespace

PhysicalMemory::PhysicalMemory(const Settings& settings, Capacity& capacity, StorageSet& storages)
    : settings_(settings), capacity_(capacity), storages_(storages) {}

Result<void> PhysicalMemory::check_supported(BlockAttribute attribute, Location location) const {
  if (location.kind == LocationKind::kHost && location.id != 0) {
    return Error::format(ErrorCode::kNotSupported, "the id of location HOST is %u and must be 0",
                         location.id);
  }
  if (!is_giant(attribute)) return {};
  if (!location.on_device()) {
    return Error::format(ErrorCode::kNotSupported, "1 GiB pages exist on devices only");
  }
  if (!settings_.product.has(feature_for_giant(attribute))) {
    return Error::format(ErrorCode::kNotSupported,
                         "product %s has no blocks of 1 GiB pages with this attribute",
                         settings_.product.key.data());
  }
  return {};
}

Result<uint64_t> PhysicalMemory::granularity(BlockAttribute attribute, Location location) const {
  // The id of a host location does not matter here (GRAN-13).
  if (!location.on_device()) location.id = 0;
  US_TRY(check_supported(attribute, location));
  return BlockTraits{.attribute = attribute, .location = location}.granularity();
}

Result<uint64_t> PhysicalMemory::rounded_size(const BlockRequest& request,
                                              uint64_t granularity) const {
  if (is_aligned(request.size, granularity)) return request.size;
  const std::optional<uint64_t> rounded = align_up(request.size, granularity);
  if (settings_.size_alignment == SizeAlignment::kRoundUp && rounded) return *rounded;
  return Error::format(ErrorCode::kRefused, "size %" PRIu64 " is not a multiple of %s",
                       request.size, SizeText(granularity).c_str());
}

Result<void> PhysicalMemory::charge(const BlockTraits& traits, uint64_t bytes) {
  if (!traits.location.on_device()) return {};
  return charge_or_explain(capacity_,
                           {traits.location.id, traits.page_kind(), bytes, traits.module});
}

void PhysicalMemory::credit(const BlockTraits& traits, uint64_t bytes) {
  if (!traits.location.on_device()) return;
  capacity_.credit({traits.location.id, traits.page_kind(), bytes, traits.module});
}

Result<BlockHandle> PhysicalMemory::create(const BlockRequest& request) {
  const BlockTraits traits{.attribute = request.attribute,
                           .home = static_cast<uint8_t>(request.location.id),
                           .location = request.location};
  US_TRY(check_supported(traits.attribute, traits.location));
  if (traits.location.kind == LocationKind::kHostNuma &&
      !platform::numa_node_exists(traits.location.id)) {
    return Error::format(ErrorCode::kRefused, "the host has no NUMA node %u", traits.location.id);
  }
  US_TRY_ASSIGN(const uint64_t size, rounded_size(request, traits.granularity()));
  US_TRY_ASSIGN(const Block* const block, make_block(traits, size, size, {.handles = 1}));
  return handle_of(*block);
}

Result<Block*> PhysicalMemory::create_mapped(const BlockTraits& traits, uint64_t bytes) {
  const std::optional<uint64_t> size = align_up(bytes, traits.granularity());
  if (!size) {
    return Error::format(ErrorCode::kOutOfMemory, "no device has %s", SizeText(bytes).c_str());
  }
  return make_block(traits, *size, bytes, {.mappings = 1});
}

Result<Block*> PhysicalMemory::make_block(const BlockTraits& traits, uint64_t size,
                                          uint64_t charged, const BlockState& references) {
  if (keeper_ != nullptr) keeper_->reap_if_any();
  US_TRY(charge(traits, charged));
  ScopeExit undo_charge([&] { credit(traits, charged); });
  US_TRY_ASSIGN(const Extent extent, storages_.take(traits.location, size, traits.page_kind()));
  ScopeExit undo_extent([&] { storages_.of(traits.location).give_back(extent); });
  if (settings_.commit == Commit::kEager) {
    US_TRY(storages_.warm(*extent.store, extent.offset, extent.size));
  }
  US_TRY_ASSIGN(Block* const block,
                enter_block(traits, extent, charged / kNormalPage, {}, references));
  undo_extent.dismiss();
  undo_charge.dismiss();
  return block;
}

Result<Block*> PhysicalMemory::adopt(const BlockTraits& traits, const Extent& extent,
                                     uint32_t share, Begins begins) {
  const BlockState references =
      begins == Begins::kMapped ? BlockState{.mappings = 1} : BlockState{.handles = 1};
  return enter_block(traits, extent, 0, {BlockSharing::kImported, share}, references);
}

Result<Block*> PhysicalMemory::enter_block(const BlockTraits& traits, const Extent& extent,
                                           uint64_t charged_pages, const BlockShare& share,
                                           const BlockState& references) {
  const std::optional<uint32_t> index = blocks_.take();
  if (!index) return out_of_numbers("block");
  Block& block = blocks_.at(*index);
  block.index = *index;
  block.traits = traits;
  block.extent = extent;
  block.charged_pages = static_cast<uint32_t>(charged_pages);
  block.share.store(share.pack(), std::memory_order_relaxed);
  block.storage_holds.store(1, std::memory_order_relaxed);
  BlockState state = BlockState::unpack(block.state.load(std::memory_order_relaxed));
  state.handles = references.handles;
  state.mappings = references.mappings;
  block.state.store(state.pack(), std::memory_order_release);
  return &block;
}

BlockHandle PhysicalMemory::handle_of(const Block& block) const {
  const BlockState state = BlockState::unpack(block.state.load(std::memory_order_acquire));
  return HandleParts{HandleTag::kBlock, state.generation, block.index}.pack();
}

Result<Block*> PhysicalMemory::find(BlockHandle handle) {
  const HandleParts parts = HandleParts::split(handle);
  if (parts.tag != HandleTag::kBlock || !blocks_.exists(parts.index)) return unknown_handle(handle);
  return &blocks_.at(parts.index);
}

Error PhysicalMemory::unknown_handle(BlockHandle handle) const {
  const HandleParts parts = HandleParts::split(handle);
  const bool was_ours = parts.tag == HandleTag::kBlock && blocks_.exists(parts.index);
  return Error::format(ErrorCode::kRefused, "handle 0x%" PRIx64 " %s", handle,
                       was_ours ? "was freed" : "was never given out");
}

template <typename Change>
bool PhysicalMemory::update(Block& block, uint32_t generation, Change change) {
  uint64_t word = block.state.load(std::memory_order_acquire);
  BlockState state;
  do {
    state = BlockState::unpack(word);
    if (state.generation != generation || !state.alive() || !change(state)) return false;
    if (!state.alive()) {
      state.generation = (state.generation + 1) & ((1U << BlockState::kGenerationBits) - 1);
    }
  } while (!block.state.compare_exchange_weak(word, state.pack(), std::memory_order_acq_rel,
                                              std::memory_order_acquire));
  if (!state.alive()) end(block);
  return true;
}

Result<void> PhysicalMemory::free(BlockHandle handle) {
  US_TRY_ASSIGN(Block* const block, find(handle));
  if (block->share.load(std::memory_order_acquire) != 0) return free_shared(handle);
  const uint32_t generation = HandleParts::split(handle).generation;
  if (!drop_handle(*block, generation)) return unknown_handle(handle);
  // Another thread may have exported it just now, and not have seen that this was the last handle.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (block->share.load(std::memory_order_relaxed) != 0 &&
      count_mapping(*block, generation, OwnedBy::kAnyone) == Counted::kYes) {
    close_if_last(*block);
    drop_mapping(*block);
  }
  return {};
}

void PhysicalMemory::close_if_last(Block& block) {
  if (block.shared().sharing == BlockSharing::kOpen && !has_handle(block)) keeper_->close(block);
}

bool PhysicalMemory::drop_handle(Block& block, uint32_t generation) {
  return update(block, generation, [](BlockState& state) {
    if (state.handles == 0) return false;
    --state.handles;
    return true;
  });
}

Result<void> PhysicalMemory::free_shared(BlockHandle handle) {
  // A reference for the time of the call, so that it is the same block that is closed.
  US_TRY_ASSIGN(Block* const block, add_mapping_reference(handle, OwnedBy::kUser));
  const bool freed = drop_handle(*block, HandleParts::split(handle).generation);
  if (freed) close_if_last(*block);
  drop_mapping(*block);
  if (!freed) return unknown_handle(handle);
  return {};
}

bool PhysicalMemory::has_handle(const Block& block) {
  return BlockState::unpack(block.state.load(std::memory_order_acquire)).handles != 0;
}

Result<BlockProperties> PhysicalMemory::properties(BlockHandle handle) {
  // A reference for the time of the look keeps the slot from being used for another block.
  US_TRY_ASSIGN(Block* const block, add_mapping_reference(handle, OwnedBy::kAnyone));
  const BlockProperties properties{block->extent.size, block->traits.attribute,
                                   block->traits.location};
  drop_mapping(*block);
  return properties;
}

Result<Block*> PhysicalMemory::add_mapping(BlockHandle handle) {
  // MAP-20: a block that is only mapped elsewhere has no handle any more.
  return add_mapping_reference(handle, OwnedBy::kUser);
}

Result<Block*> PhysicalMemory::add_mapping_reference(BlockHandle handle, OwnedBy owner) {
  US_TRY_ASSIGN(Block* const block, find(handle));
  const Counted counted = count_mapping(*block, HandleParts::split(handle).generation, owner);
  if (counted == Counted::kYes) return block;
  if (counted == Counted::kFull) return mapped_too_often();
  return unknown_handle(handle);
}

Result<void> PhysicalMemory::add_mapping_of_mapped(Block& block) {
  const BlockState seen = BlockState::unpack(block.state.load(std::memory_order_acquire));
  switch (count_mapping(block, seen.generation, OwnedBy::kMapping)) {
    case Counted::kYes:
      return {};
    case Counted::kFull:
      return mapped_too_often();
    case Counted::kNo:
      break;
  }
  return Error::format(ErrorCode::kRefused, "the block was unmapped meanwhile");
}

PhysicalMemory::Counted PhysicalMemory::count_mapping(Block& block, uint32_t generation,
                                                      OwnedBy owner) {
  bool full = false;
  const bool counted = update(block, generation, [&](BlockState& state) {
    if (owner == OwnedBy::kUser && state.handles == 0) return false;
    if (owner == OwnedBy::kMapping && state.mappings == 0) return false;
    full = state.mappings == kMaxMappings;
    if (full) return false;
    ++state.mappings;
    return true;
  });
  if (counted) return Counted::kYes;
  return full ? Counted::kFull : Counted::kNo;
}

Error PhysicalMemory::mapped_too_often() const {
  return Error::format(ErrorCode::kOutOfResources,
                       "a block is mapped %u times, the most there can be", kMaxMappings);
}

void PhysicalMemory::drop_mapping(Block& block) {
  const BlockState seen = BlockState::unpack(block.state.load(std::memory_order_acquire));
  update(block, seen.generation, [](BlockState& state) {
    --state.mappings;
    return true;
  });
}

Result<BlockHandle> PhysicalMemory::retain(Block& block) {
  constexpr uint32_t kMaxHandles = (1U << BlockState::kHandleBits) - 1;
  const BlockState seen = BlockState::unpack(block.state.load(std::memory_order_acquire));
  const bool retained = update(block, seen.generation, [](BlockState& state) {
    if (state.handles == kMaxHandles) return false;
    ++state.handles;
    return true;
  });
  if (retained) return handle_of(block);
  return Error::format(ErrorCode::kOutOfResources, "a block is retained %u times", kMaxHandles);
}

void PhysicalMemory::end(Block& block) {
  switch (block.shared().sharing) {
    case BlockSharing::kNone:
      credit(block.traits, block.charged_pages * kNormalPage);
      break;
    case BlockSharing::kImported:
      break;
    default:
      // Its charge is the share's by now.
      if (block.traits.location.on_device()) capacity_.note_share_ended(block.charge());
      keeper_->close(block);
      block.share.store(BlockShare{BlockSharing::kLeft, block.shared().number}.pack(),
                        std::memory_order_release);
  }
  drop_storage(block);
}

void PhysicalMemory::hold_storage(Block& block) {
  block.storage_holds.fetch_add(1, std::memory_order_relaxed);
}

void PhysicalMemory::drop_storage(Block& block) {
  if (block.storage_holds.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (block.shared().sharing == BlockSharing::kNone) {
    storages_.of(block.traits.location).give_back(block.extent);
  } else {
    keeper_->keep(block);
  }
  // A slot whose generations are used up is not used again: an ancient handle would fit it.
  const BlockState state = BlockState::unpack(block.state.load(std::memory_order_relaxed));
  if (state.generation != 0) blocks_.give_back(block.index);
}

uint64_t PhysicalMemory::count_handles() const {
  uint64_t handles = 0;
  blocks_.for_each([&](const Block& block) {
    handles += BlockState::unpack(block.state.load(std::memory_order_relaxed)).handles;
  });
  return handles;
}

}  // namespace understudy
