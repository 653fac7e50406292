// SPDX-License-Identifier: Apache-2.0
//
// What this process exports. Imports are in sharing_import.cc.
#include "sharing/sharing.h"

#include <cinttypes>
#include <utility>

#include "base/scope_exit.h"
#include "base/size_text.h"

namespace understudy {

Sharing::Sharing(Ledger& ledger, Capacity& capacity, StorageSet& storages, PhysicalMemory& physical,
                 DeviceMemory& allocations)
    : ledger_(ledger),
      capacity_(capacity),
      storages_(storages),
      physical_(physical),
      allocations_(allocations),
      table_(ledger),
      own_stores_(ledger),
      foreign_stores_(ledger, storages.budget()),
      attendant_(ledger, *this) {
  physical.set_keeper(*this);
  allocations.set_keeper(*this);
  storages.add_cache(*this);
}

Sharing::~Sharing() = default;

Error Sharing::unknown_share() const {
  return Error::format(ErrorCode::kInvalidHandle,
                       "no memory is shared by this handle: it was never issued by this server, or "
                       "its exporter has freed the memory or ended");
}

Result<ShareView> Sharing::find(ShareToken token, ShareKind kind) const {
  const std::optional<ShareView> view = table_.find(token);
  if (!view) return unknown_share();
  if (view->description.kind != kind) {
    return Error::format(ErrorCode::kRefused, "the memory was exported as another kind of handle");
  }
  return *view;
}

Result<ShareView> Sharing::find_own(ShareToken token, ShareKind kind) const {
  US_TRY_ASSIGN(const ShareView view, find(token, kind));
  if (view.owner != ledger_.own_tag()) {
    return Error::format(ErrorCode::kNoPermission, "process %d exported it, not this one",
                         ledger_.slot(view.owner.slot()).process);
  }
  return view;
}

// ---- Export ----

Result<ShareToken> Sharing::publish(ShareDescription description, Extent extent,
                                    const Charge& charge) {
  US_TRY(attendant_.listen());
  description.store = own_stores_.number_of(*extent.store);
  description.offset += extent.offset;
  if (description.location.on_device()) {
    description.location.id = capacity_.number_of(description.location.id);
  }
  description.charged = charge.bytes;
  US_TRY_ASSIGN(const ShareToken token, table_.add(description));
  if (description.location.on_device()) capacity_.note_shared(charge);
  return token;
}

namespace {

// Lets one thread at a time change what a block has to do with others.
Result<BlockShare> begin_export(Block& block) {
  uint32_t word = block.share.load();
  while (true) {
    const BlockShare before = BlockShare::unpack(word);
    switch (before.sharing) {
      case BlockSharing::kNone:
      case BlockSharing::kClosed:
        break;
      case BlockSharing::kImported:
        return Error::format(ErrorCode::kRefused,
                             "the block was imported, and only its own process can export it");
      default:
        return Error::format(ErrorCode::kRefused, "the block is exported already");
    }
    const BlockShare during{BlockSharing::kExporting, before.number};
    if (block.share.compare_exchange_weak(word, during.pack())) return before;
  }
}

ShareDescription describe(const Block& block, ShareKind kind, bool open_to_all) {
  return {.kind = kind,
          .open_to_all = open_to_all,
          .page_kind = block.traits.page_kind(),
          .attribute = static_cast<uint8_t>(block.traits.attribute),
          .location = block.traits.location,
          .size = block.extent.size};
}

}  // namespace

Result<ShareToken> Sharing::export_block(BlockHandle handle, ShareKind kind, bool open_to_all) {
  reap();
  US_TRY_ASSIGN(Block* const block, physical_.add_mapping(handle));
  ScopeExit drop([&] { physical_.drop_mapping(*block); });
  US_TRY_ASSIGN(const BlockShare before, begin_export(*block));
  ScopeExit undo([&] { block->share.store(before.pack()); });
  Result<ShareToken> token =
      before.sharing == BlockSharing::kClosed
          ? table_.reopen(before.number, kind, open_to_all)
          : publish(describe(*block, kind, open_to_all), block->extent, block->charge());
  if (!token.ok()) return token;
  undo.dismiss();
  block->share.store(BlockShare{BlockSharing::kOpen, token.value().number()}.pack());
  // Another thread freed the last handle meanwhile.
  if (!PhysicalMemory::has_handle(*block)) close(*block);
  return token;
}

Result<ShareToken> Sharing::export_allocation(VirtualAddress address, uint64_t size,
                                              bool open_to_all) {
  reap();
  const auto check_size = [&](uint64_t usable) -> Result<void> {
    if (size <= usable) return {};
    return Error::format(ErrorCode::kRefused,
                         "size %" PRIu64 " is past the allocation, which has %s", size,
                         SizeText(usable).c_str());
  };
  if (const auto slot = allocations_.find_slot(address)) {
    US_TRY(check_size(slot->part.size));
    return export_slot(address, *slot, size, open_to_all);
  }
  US_TRY_ASSIGN(const AddressSpace::FoundAllocation found, allocations_.find_block(address));
  Block& block = *found.block;
  ScopeExit drop([&] { physical_.drop_mapping(block); });
  US_TRY(check_size(found.part.size));
  ShareDescription wanted = describe(block, ShareKind::kKey, open_to_all);
  wanted.size = size;
  wanted.read_only = found.part.read_only;
  if (block.shared().sharing == BlockSharing::kOpen) {
    return open_again(block.shared().number, wanted);
  }
  US_TRY_ASSIGN(const BlockShare before, begin_export(block));
  ScopeExit undo([&] { block.share.store(before.pack()); });
  Result<ShareToken> token = before.sharing == BlockSharing::kClosed
                                 ? open_again(before.number, wanted)
                                 : publish(wanted, block.extent, block.charge());
  if (!token.ok()) return token;
  undo.dismiss();
  block.share.store(BlockShare{BlockSharing::kOpen, token.value().number()}.pack());
  return token;
}

Result<ShareToken> Sharing::export_slot(VirtualAddress address,
                                        const DeviceMemory::SharedSlot& slot, uint64_t size,
                                        bool open_to_all) {
  const ShareDescription wanted{.kind = ShareKind::kKey,
                                .open_to_all = open_to_all,
                                .page_kind = PageKind::kNormal,
                                .attribute = static_cast<uint8_t>(BlockAttribute::kNormal),
                                .location = {LocationKind::kDevice, slot.charge.device},
                                .offset = slot.part.offset,
                                .size = size};
  MutexLock lock(mutex_);
  if (const auto known = slots_.find(address); known != slots_.end()) {
    return open_again(known->second, wanted);
  }
  // From here on, whoever frees it asks us, and waits for the lock.
  const auto entered = slots_.emplace(address, 0).first;
  ScopeExit undo([&] { slots_.erase(entered); });
  if (!allocations_.share_slot(address)) {
    return Error::format(ErrorCode::kRefused, "%p was freed meanwhile", to_pointer(address));
  }
  Result<ShareToken> token = publish(wanted, slot.granule, slot.charge);
  if (!token.ok()) {
    allocations_.unshare_slot(address);
    return token;
  }
  undo.dismiss();
  entered->second = token.value().number();
  return token;
}

// An allocation that was exported before: by the same token while that is good.
Result<ShareToken> Sharing::open_again(uint32_t number, const ShareDescription& wanted) {
  if (const std::optional<ShareToken> token = table_.token_of(number)) {
    const std::optional<ShareView> view = table_.find(*token);
    if (view && view->description.size == wanted.size &&
        view->description.open_to_all == wanted.open_to_all) {
      return *token;
    }
    return Error::format(ErrorCode::kRefused,
                         "it is exported already, with another size or other flags");
  }
  return table_.reopen(number, wanted.kind, wanted.open_to_all, wanted.size);
}

Result<void> Sharing::close_export(ShareToken token, ShareKind kind) {
  US_TRY_ASSIGN(const ShareView view, find_own(token, kind));
  whitelist_.remove(view.number);
  return table_.close(view.number);
}

Result<void> Sharing::admit(ShareToken token, ShareKind kind, std::span<const int32_t> processes) {
  US_TRY_ASSIGN(const ShareView view, find_own(token, kind));
  if (view.description.open_to_all) {
    return Error::format(ErrorCode::kNoPermission,
                         "it was exported with validation of processes switched off");
  }
  std::vector<int32_t> named;
  for (const int32_t each : processes) {
    if (each != 0) named.push_back(each);
  }
  if (named.empty()) return Error::format(ErrorCode::kRefused, "every process id is 0");
  whitelist_.add(token, named);
  return {};
}

// ---- The end of what was exported ----

void Sharing::close(Block& block) {
  const BlockShare open = block.shared();
  uint32_t word = open.pack();
  if (open.sharing != BlockSharing::kOpen ||
      !block.share.compare_exchange_strong(word,
                                           BlockShare{BlockSharing::kClosed, open.number}.pack())) {
    return;
  }
  whitelist_.remove(open.number);
  (void)table_.close(open.number);  // else it closes when the block ends
}

bool Sharing::drop_own_locked(uint32_t share) {
  if (imported_.contains(share)) {
    left_.try_emplace(share);
    return false;
  }
  const Result<AfterDrop> dropped = table_.drop(share);
  if (dropped.ok() && dropped.value() == AfterDrop::kOwnAgain) return true;
  Left& left = left_[share];
  left.is_held = !dropped.ok();
  if (left.is_held) has_unheld_.store(true);
  return false;
}

bool Sharing::leave(Block& block) {
  const uint32_t share = block.shared().number;
  whitelist_.remove(share);
  MutexLock lock(mutex_);
  return drop_own_locked(share);
}

void Sharing::keep(const Block& block) {
  const BlockShare share = block.shared();
  std::optional<Left> done;
  {
    MutexLock lock(mutex_);
    if (share.sharing == BlockSharing::kImported) {
      Imported& import = imported_.at(share.number);
      std::erase(import.blocks, &block);
      if (!import.blocks.empty()) return;
      const Imported ended = std::move(import);
      imported_.erase(share.number);
      release_locked(share.number, ended);
      if (const auto left = left_.find(share.number); left != left_.end() && ended.is_own) {
        if (left->second.is_returned && (left->second.extent || left->second.slot != 0)) {
          done = left->second;
          left_.erase(left);
        }
      }
    } else {
      Left& left = left_.at(share.number);
      left.extent = block.extent;
      left.location = block.traits.location;
      if (left.is_returned) {
        done = left;
        left_.erase(share.number);
      }
    }
  }
  if (done) give_back(*done);
}

bool Sharing::leave_slot(VirtualAddress address) {
  MutexLock lock(mutex_);
  const auto found = slots_.find(address);
  if (found == slots_.end()) return true;
  const uint32_t share = found->second;
  slots_.erase(found);
  whitelist_.remove(share);
  if (drop_own_locked(share)) return true;
  left_.at(share).slot = address;
  return false;
}

void Sharing::give_back(const Left& left) {
  if (left.slot != 0) {
    allocations_.give_back_slot(left.slot);
  } else {
    storages_.of(left.location).give_back(*left.extent);
  }
}

void Sharing::reap() {
  if (!table_.has_returns() && !has_unheld_.load(std::memory_order_relaxed)) return;
  std::vector<Left> done;
  {
    MutexLock lock(mutex_);
    std::vector<uint32_t> returned;
    if (Result<std::vector<uint32_t>> taken = table_.take_returns(); taken.ok()) {
      returned = std::move(taken.value());
    }
    if (has_unheld_.exchange(false)) {
      for (auto& [share, left] : left_) {
        if (!left.is_held) continue;
        const Result<AfterDrop> dropped = table_.drop(share);
        left.is_held = !dropped.ok();
        if (left.is_held) has_unheld_.store(true);
        if (dropped.ok() && dropped.value() == AfterDrop::kOwnAgain) returned.push_back(share);
      }
    }
    for (const uint32_t share : returned) {
      const auto left = left_.find(share);
      if (left == left_.end()) continue;
      left->second.is_returned = true;
      if (!left->second.extent && left->second.slot == 0) continue;
      done.push_back(left->second);
      left_.erase(left);
    }
  }
  for (const Left& each : done) give_back(each);
}

}  // namespace understudy
