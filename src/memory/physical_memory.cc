// SPDX-License-Identifier: Apache-2.0
#include "memory/physical_memory.h"

#include <cinttypes>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "device/switched_features.h"
#include "platform/host_facts.h"

namespace understudy {

namespace {

// What refers to a block at first.
constexpr BlockState kOneHandle(0, 1, 0);
constexpr BlockState kOneInternalRef(0, 0, 1);

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

PhysicalMemory::PhysicalMemory(const Settings& settings, Capacity& capacity, BackingPools& pools)
    : settings_(settings), capacity_(capacity), pools_(pools) {}

Result<void> PhysicalMemory::check_supported(BlockAttribute attribute, Location location) const {
  if (location.kind == LocationKind::kHost && location.id != 0) {
    return Error::format(ErrorCode::kNotSupported, "the id of location HOST is %d and must be 0",
                         static_cast<int>(location.id));
  }
  if (!is_giant(attribute)) return {};
  if (!location.on_device()) {
    if (attribute == BlockAttribute::kPeerGiant &&
        settings_.product.has(Feature::kHostGiantPeerBlock)) {
      if (is_advised()) advise_if_switched_on(settings_, Feature::kHostGiantPeerBlock);
      return {};
    }
    return Error::format(ErrorCode::kNotSupported, "1 GiB pages exist on devices only");
  }
  if (!settings_.product.has(feature_for_giant(attribute))) {
    return Error::format(ErrorCode::kNotInProduct,
                         "product %s has no blocks of 1 GiB pages with this attribute",
                         settings_.product.key.data());
  }
  if (is_advised()) advise_if_switched_on(settings_, feature_for_giant(attribute));
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
  return Error::format(ErrorCode::kInvalidParam, "size %" PRIu64 " is not a multiple of %s",
                       request.size, SizeText(granularity).c_str());
}

// Whether a block comes from the part of the host's memory that devices reach over their links.
bool PhysicalMemory::is_in_host_window(const BlockTraits& traits) const {
  return settings_.host_peer_memory && traits.location.kind == LocationKind::kHostNuma &&
         is_peer(traits.attribute);
}

Result<void> PhysicalMemory::charge_host_window(uint64_t bytes) {
  if (capacity_.charge_host_window(bytes)) return {};
  const PoolFigures window = capacity_.host_window();
  return Error::format(ErrorCode::kOutOfMemory,
                       "%s for copies between devices were asked of the host; it has %s of %s free "
                       "(host_p2p_memory)",
                       SizeText(bytes).c_str(), RoughSizeText(window.free).c_str(),
                       RoughSizeText(window.total).c_str());
}

Result<void> PhysicalMemory::charge(const BlockTraits& traits, uint64_t bytes) {
  if (!traits.location.on_device()) {
    if (is_in_host_window(traits)) return charge_host_window(bytes);
    return {};
  }
  return charge_or_explain(capacity_,
                           {traits.location.id, traits.page_kind(), bytes, traits.module});
}

void PhysicalMemory::credit(const BlockTraits& traits, uint64_t bytes) {
  if (!traits.location.on_device()) {
    if (is_in_host_window(traits)) capacity_.credit_host_window(bytes);
    return;
  }
  capacity_.credit({traits.location.id, traits.page_kind(), bytes, traits.module});
}

Result<BlockHandle> PhysicalMemory::create(const BlockRequest& request) {
  const BlockTraits traits{.attribute = request.attribute,
                           .home = static_cast<uint8_t>(request.location.id),
                           .location = request.location};
  US_TRY(check_supported(traits.attribute, traits.location));
  if (traits.location.kind == LocationKind::kHostNuma &&
      !platform::numa_node_exists(traits.location.id)) {
    return Error::format(ErrorCode::kInvalidParam, "the host has no NUMA node %d",
                         static_cast<int>(traits.location.id));
  }
  US_TRY_ASSIGN(const uint64_t size, rounded_size(request, traits.granularity()));
  US_TRY_ASSIGN(const Block* const block, make_block(traits, size, size, kOneHandle));
  return handle_of(*block);
}

Result<Block*> PhysicalMemory::create_mapped(const BlockTraits& traits, uint64_t bytes) {
  const std::optional<uint64_t> size = align_up(bytes, traits.granularity());
  if (!size) {
    return Error::format(ErrorCode::kOutOfMemory, "no device has %s", SizeText(bytes).c_str());
  }
  return make_block(traits, *size, bytes, kOneInternalRef);
}

Result<Block*> PhysicalMemory::create_uncharged(const BlockTraits& traits, uint64_t size) {
  US_TRY_ASSIGN(const Extent extent, pools_.take(traits.location, size, traits.page_kind()));
  ScopeExit undo_extent([&] { pools_.of(traits.location).give_back(extent); });
  US_TRY_ASSIGN(Block* const block, enter_block(traits, extent, 0, {}, kOneInternalRef));
  undo_extent.dismiss();
  return block;
}

Result<Block*> PhysicalMemory::make_block(const BlockTraits& traits, uint64_t size,
                                          uint64_t charged, BlockState references) {
  if (share_hooks_ != nullptr) share_hooks_->reclaim_returned_if_any();
  US_TRY(charge(traits, charged));
  ScopeExit undo_charge([&] { credit(traits, charged); });
  US_TRY_ASSIGN(const Extent extent, pools_.take(traits.location, size, traits.page_kind()));
  ScopeExit undo_extent([&] { pools_.of(traits.location).give_back(extent); });
  if (settings_.commit == Commit::kEager) {
    US_TRY(pools_.commit(*extent.backing, extent.offset, extent.size));
  }
  US_TRY_ASSIGN(Block* const block,
                enter_block(traits, extent, charged / kNormalPage, {}, references));
  undo_extent.dismiss();
  undo_charge.dismiss();
  return block;
}

Result<Block*> PhysicalMemory::adopt(const BlockTraits& traits, const Extent& extent,
                                     uint32_t share, Begins begins) {
  return enter_block(traits, extent, 0, {BlockSharing::kImported, share},
                     begins == Begins::kMapped ? kOneInternalRef : kOneHandle);
}

Result<Block*> PhysicalMemory::enter_managed(VirtualRange range, unsigned device) {
  const BlockTraits traits{.attribute = BlockAttribute::kHuge,
                           .home = static_cast<uint8_t>(device),
                           .location = {LocationKind::kManaged, device}};
  return enter_block(traits, {nullptr, range.base, range.size}, 0, {}, kOneInternalRef);
}

Result<Block*> PhysicalMemory::enter_block(const BlockTraits& traits, const Extent& extent,
                                           uint64_t charged_pages, const BlockShare& share,
                                           BlockState references) {
  US_TRY_ASSIGN(Block* const taken, blocks_.take());
  Block& block = *taken;
  block.traits = traits;
  block.extent = extent;
  block.charged_pages = static_cast<uint32_t>(charged_pages);
  block.share.store(share.pack(), std::memory_order_relaxed);
  block.extent_holds.store(1, std::memory_order_relaxed);
  const BlockState ended(block.state.load(std::memory_order_relaxed));
  block.state.store(ended.word() + references.word(), std::memory_order_release);
  return &block;
}

Result<Block*> PhysicalMemory::slot_of(BlockHandle handle) const {
  Block* const block = blocks_.slot_of(handle);
  if (block == nullptr) return blocks_.unknown(handle);
  return block;
}

template <typename Change>
bool PhysicalMemory::update(Block& block, uint32_t generation, Change change) {
  uint64_t word = block.state.load(std::memory_order_acquire);
  bool lives_on = true;
  BlockState state;
  do {
    state = BlockState(word);
    if (state.generation() != generation || !state.alive() || !change(state)) return false;
    lives_on = state.alive();
    if (!lives_on) state.begin_generation();
  } while (!block.state.compare_exchange_weak(word, state.word(), std::memory_order_seq_cst,
                                              std::memory_order_acquire));
  if (!lives_on) end(block);
  return true;
}

Result<void> PhysicalMemory::free(BlockHandle handle) {
  US_TRY_ASSIGN(Block* const block, slot_of(handle));
  if (block->share.load(std::memory_order_acquire) != 0) return free_shared(handle);
  const uint32_t generation = HandleParts::split(handle).generation;
  if (!drop_handle(*block, generation)) return blocks_.unknown(handle);
  // Another thread may have exported it just now, and not have seen that this was the last handle.
  // In this order for all threads, as the handle was dropped.
  if (block->share.load(std::memory_order_seq_cst) != 0 &&
      count_internal_ref(*block, generation, OwnedBy::kAny) == Counted::kYes) {
    close_if_last(*block);
    drop_internal_ref(*block);
  }
  return {};
}

void PhysicalMemory::close_if_last(Block& block) {
  if (block.shared().sharing == BlockSharing::kOpen && !has_handle(block))
    share_hooks_->on_last_handle_freed(block);
}

bool PhysicalMemory::drop_handle(Block& block, uint32_t generation) {
  return update(block, generation, [](BlockState& state) {
    if (state.handles() == 0) return false;
    state.drop_handle();
    return true;
  });
}

Result<void> PhysicalMemory::free_shared(BlockHandle handle) {
  // A reference for the time of the call, so that it is the same block that is closed.
  US_TRY_ASSIGN(Block* const block, add_internal_ref_of(handle, OwnedBy::kUser));
  const bool freed = drop_handle(*block, HandleParts::split(handle).generation);
  if (freed) close_if_last(*block);
  drop_internal_ref(*block);
  if (!freed) return blocks_.unknown(handle);
  return {};
}

bool PhysicalMemory::has_handle(const Block& block) {
  return BlockState(block.state.load(std::memory_order_acquire)).handles() != 0;
}

Result<BlockProperties> PhysicalMemory::properties(BlockHandle handle) {
  // A reference for the time of the look keeps the slot from being used for another block.
  US_TRY_ASSIGN(Block* const block, add_internal_ref_of(handle, OwnedBy::kAny));
  const BlockProperties properties{block->extent.size, block->traits.attribute,
                                   block->traits.location};
  drop_internal_ref(*block);
  return properties;
}

Result<Block*> PhysicalMemory::add_internal_ref(BlockHandle handle) {
  // MAP-20: a block that is only mapped elsewhere has no handle any more.
  return add_internal_ref_of(handle, OwnedBy::kUser);
}

Result<Block*> PhysicalMemory::add_internal_ref_of(BlockHandle handle, OwnedBy owner) {
  US_TRY_ASSIGN(Block* const block, slot_of(handle));
  const Counted counted = count_internal_ref(*block, HandleParts::split(handle).generation, owner);
  if (counted == Counted::kYes) return block;
  if (counted == Counted::kFull) return too_many_internal_refs();
  return blocks_.unknown(handle);
}

Result<void> PhysicalMemory::add_internal_ref_to_mapped(Block& block) {
  const BlockState seen(block.state.load(std::memory_order_acquire));
  switch (count_internal_ref(block, seen.generation(), OwnedBy::kMapping)) {
    case Counted::kYes:
      return {};
    case Counted::kFull:
      return too_many_internal_refs();
    case Counted::kNo:
      break;
  }
  return Error::format(ErrorCode::kInvalidParam, "the block was unmapped meanwhile");
}

PhysicalMemory::Counted PhysicalMemory::count_internal_ref(Block& block, uint32_t generation,
                                                           OwnedBy owner) {
  bool full = false;
  const bool counted = update(block, generation, [&](BlockState& state) {
    if (owner == OwnedBy::kUser && state.handles() == 0) return false;
    if (owner == OwnedBy::kMapping && state.internal_refs() == 0) return false;
    full = state.internal_refs() == BlockState::kMaxInternalRefs;
    if (full) return false;
    state.add_internal_ref();
    return true;
  });
  if (counted) return Counted::kYes;
  return full ? Counted::kFull : Counted::kNo;
}

Error PhysicalMemory::too_many_internal_refs() const {
  return Error::format(ErrorCode::kOutOfResources,
                       "a block is mapped %u times, the most there can be",
                       BlockState::kMaxInternalRefs);
}

void PhysicalMemory::drop_internal_ref(Block& block) {
  const BlockState seen(block.state.load(std::memory_order_acquire));
  update(block, seen.generation(), [](BlockState& state) {
    state.drop_internal_ref();
    return true;
  });
}

Result<BlockHandle> PhysicalMemory::retain(Block& block) {
  const BlockState seen(block.state.load(std::memory_order_acquire));
  const bool retained = update(block, seen.generation(), [](BlockState& state) {
    if (state.handles() == BlockState::kMaxHandles) return false;
    state.add_handle();
    return true;
  });
  if (retained) return handle_of(block);
  return Error::format(ErrorCode::kOutOfResources, "a block is retained %u times",
                       BlockState::kMaxHandles);
}

void PhysicalMemory::end(Block& block) {
  switch (block.shared().sharing) {
    case BlockSharing::kNone:
      credit(block.traits, block.charged_pages * kNormalPage);
      break;
    case BlockSharing::kImported:
      break;
    default:
      // Its charge is the share's by now; that of the host's window stays with this process.
      if (block.traits.location.on_device()) {
        capacity_.note_share_ended(block.charge());
      } else {
        credit(block.traits, block.charged_pages * kNormalPage);
      }
      share_hooks_->on_last_handle_freed(block);
      block.share.store(BlockShare{BlockSharing::kLeft, block.shared().number}.pack(),
                        std::memory_order_release);
  }
  drop_extent(block);
}

void PhysicalMemory::hold_extent(Block& block) {
  block.extent_holds.fetch_add(1, std::memory_order_relaxed);
}

void PhysicalMemory::drop_extent(Block& block) {
  // The last hold cannot become two: holds are added by those that have a reference to the block.
  if (block.extent_holds.load(std::memory_order_acquire) != 1 &&
      block.extent_holds.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  switch (block.shared().sharing) {
    case BlockSharing::kNone:
      give_back_extent(block);
      break;
    case BlockSharing::kImported:
      share_hooks_->on_import_unreferenced(block);
      break;
    default:
      share_hooks_->on_export_unreferenced(block);
      return;
  }
  blocks_.recycle(block);
}

void PhysicalMemory::give_back_extent(const Block& block) {
  const Extent& extent = block.extent;
  if (block.traits.location.kind == LocationKind::kManaged) {
    managed_memory_->on_managed_unreferenced({extent.offset, extent.size});
  } else {
    pools_.of(block.traits.location).give_back(extent);
  }
}

void PhysicalMemory::take_back(uint32_t index) {
  Block& block = blocks_.at(index);
  pools_.of(block.traits.location).give_back(block.extent);
  blocks_.recycle(block);
}

uint64_t PhysicalMemory::count_handles() const {
  uint64_t handles = 0;
  blocks_.for_each([&](const Block& block) {
    handles += BlockState(block.state.load(std::memory_order_relaxed)).handles();
  });
  return handles;
}

}  // namespace understudy
