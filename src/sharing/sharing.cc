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
    : MemoryKeeper(ledger.own().returned),
      ledger_(ledger),
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
  US_TRY_ASSIGN(const std::optional<ShareView> view, table_.find(token));
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
          .size = block.extent.size,
          .usable = block.extent.size};
}

}  // namespace

Result<ShareToken> Sharing::export_block(BlockHandle handle, ShareKind kind, bool open_to_all) {
  reap();
  US_TRY_ASSIGN(Block* const block, physical_.add_mapping(handle));
  ScopeExit drop([&] { physical_.drop_mapping(*block); });
  MutexLock lock(mutex_);
  US_TRY_ASSIGN(const BlockShare before, begin_export(*block));
  ScopeExit undo([&] { block->share.store(before.pack()); });
  Result<ShareToken> token =
      before.sharing == BlockSharing::kClosed
          ? table_.reopen(before.number, kind, open_to_all, block->extent.size)
          : publish(describe(*block, kind, open_to_all), block->extent, block->charge());
  if (!token.ok()) return token;
  undo.dismiss();
  block->share.store(BlockShare{BlockSharing::kOpen, token.value().number()}.pack());
  // Another thread freed the last handle meanwhile.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!PhysicalMemory::has_handle(*block)) close_locked(*block);
  return token;
}

namespace {

Result<void> check_export_size(uint64_t size, uint64_t usable) {
  if (size <= usable) return {};
  return Error::format(ErrorCode::kRefused, "size %" PRIu64 " is past the allocation, which has %s",
                       size, SizeText(usable).c_str());
}

}  // namespace

Result<ShareToken> Sharing::export_allocation(VirtualAddress address, uint64_t size,
                                              bool open_to_all) {
  reap();
  {
    MutexLock lock(mutex_);
    const std::optional<Result<ShareToken>> small = export_slot_locked(address, size, open_to_all);
    if (small) return *small;
  }
  US_TRY_ASSIGN(const AddressSpace::FoundAllocation found, allocations_.find_block(address));
  Block& block = *found.block;
  ScopeExit drop([&] { physical_.drop_mapping(block); });
  US_TRY(check_export_size(size, found.part.size));
  ShareDescription wanted = describe(block, ShareKind::kKey, open_to_all);
  wanted.usable = size;
  wanted.read_only = found.part.read_only;
  MutexLock lock(mutex_);
  if (block.shared().sharing == BlockSharing::kOpen) {
    return open_again(block.shared().number, wanted);
  }
  US_TRY_ASSIGN(const BlockShare before, begin_export(block));
  ScopeExit undo([&] { block.share.store(before.pack()); });
  Result<ShareToken> token = publish(wanted, block.extent, block.charge());
  if (!token.ok()) return token;
  undo.dismiss();
  block.share.store(BlockShare{BlockSharing::kOpen, token.value().number()}.pack());
  return token;
}

// Nothing if no small allocation starts at the address.
std::optional<Result<ShareToken>> Sharing::export_slot_locked(VirtualAddress address, uint64_t size,
                                                              bool open_to_all) {
  // Whoever frees it from here on asks us, and waits for the lock.
  const std::optional<DeviceMemory::SharedSlot> slot = allocations_.share_slot(address);
  if (!slot) return std::nullopt;
  const ShareDescription wanted{.kind = ShareKind::kKey,
                                .open_to_all = open_to_all,
                                .page_kind = PageKind::kNormal,
                                .attribute = static_cast<uint8_t>(BlockAttribute::kNormal),
                                .location = {LocationKind::kDevice, slot->charge.device},
                                .offset = slot->part.offset,
                                .size = slot->part.size,
                                .usable = size};
  const Result<void> checked = check_export_size(size, slot->part.size);
  if (const auto known = slots_.find(address); known != slots_.end()) {
    if (!checked.ok()) return Result<ShareToken>(checked.error());
    return open_again(known->second, wanted);
  }
  const auto entered = slots_.emplace(address, 0).first;  // before anything that would be undone
  Result<ShareToken> token = checked.ok() ? publish(wanted, slot->granule, slot->charge)
                                          : Result<ShareToken>(checked.error());
  if (token.ok()) {
    entered->second = token.value().number();
  } else {
    slots_.erase(entered);
    allocations_.unshare_slot(address);
  }
  return token;
}

// An allocation that was exported before: by the same token while that is good.
Result<ShareToken> Sharing::open_again(uint32_t number, const ShareDescription& wanted) {
  if (const std::optional<ShareToken> token = table_.token_of(number)) {
    US_TRY_ASSIGN(const std::optional<ShareView> view, table_.find(*token));
    if (view && view->description.usable == wanted.usable &&
        view->description.open_to_all == wanted.open_to_all) {
      return *token;
    }
    return Error::format(ErrorCode::kRefused,
                         "it is exported already, with another size or other flags");
  }
  return table_.reopen(number, wanted.kind, wanted.open_to_all, wanted.usable);
}

Result<void> Sharing::close_export(ShareToken token, ShareKind kind) {
  US_TRY(find_own(token, kind));
  US_TRY(table_.close(token));
  whitelist_.remove(token);
  return {};
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
  return whitelist_.add(token, named);
}

// ---- The end of what was exported ----

void Sharing::close(Block& block) {
  MutexLock lock(mutex_);
  close_locked(block);
}

void Sharing::close_locked(Block& block) {
  const BlockShare open = block.shared();
  if (open.sharing != BlockSharing::kOpen) return;
  block.share.store(BlockShare{BlockSharing::kClosed, open.number}.pack());
  if (const std::optional<ShareToken> token = table_.token_of(open.number)) {
    close_token_locked(*token);
  }
}

// In this order: whoever is not listed any more must not find the share.
void Sharing::close_token_locked(ShareToken token) {
  if (!table_.close(token).ok()) {
    unclosed_.push_back(token);
    return;
  }
  whitelist_.remove(token);
}

std::optional<AfterDrop> Sharing::drop_locked(uint32_t share) {
  const Result<AfterDrop> dropped = table_.drop(share);
  if (dropped.ok()) return dropped.value();
  undropped_.push_back(share);
  return std::nullopt;
}

bool Sharing::leave_locked(uint32_t share, const Left& left) {
  // An import by this very process holds it as well.
  if (!imported_.contains(share) && drop_locked(share) == AfterDrop::kOwnAgain) return true;
  left_.insert_or_assign(share, left);
  return false;
}

void Sharing::keep(const Block& block) {
  const uint32_t share = block.shared().number;
  std::optional<Left> own_again;
  {
    MutexLock lock(mutex_);
    if (!block.is_imported()) {
      const Left left{block.extent, block.traits.location, 0};
      if (leave_locked(share, left)) own_again = left;
    } else {
      Imported& import = imported_.at(share);
      std::erase(import.blocks, &block);
      if (!import.blocks.empty()) return;
      const Imported ended = std::move(import);
      imported_.erase(share);
      if (!ended.is_own) {
        release_locked(share, ended);
      } else if (const auto left = left_.find(share); left != left_.end()) {
        // The exporter's side of this process has ended before.
        if (drop_locked(share) == AfterDrop::kOwnAgain) {
          own_again = left->second;
          left_.erase(left);
        }
      }
    }
  }
  if (own_again) give_back(*own_again);
}

SlotEnd Sharing::leave_slot(VirtualAddress address) {
  MutexLock lock(mutex_);
  const auto found = slots_.find(address);
  if (found == slots_.end()) return SlotEnd::kNeverShared;
  const uint32_t share = found->second;
  slots_.erase(found);
  if (const std::optional<ShareToken> token = table_.token_of(share)) close_token_locked(*token);
  return leave_locked(share, {{}, {}, address}) ? SlotEnd::kOwnAgain : SlotEnd::kKept;
}

void Sharing::give_back(const Left& left) {
  if (left.slot != 0) {
    allocations_.give_back_slot(left.slot);
  } else {
    storages_.of(left.location).give_back(left.extent);
  }
}

void Sharing::reap() {
  std::vector<Left> done;
  {
    MutexLock lock(mutex_);
    for (const ShareToken token : std::exchange(unclosed_, {})) close_token_locked(token);
    std::vector<uint32_t> returned;
    for (const uint32_t share : std::exchange(undropped_, {})) {
      if (drop_locked(share) == AfterDrop::kOwnAgain) returned.push_back(share);
    }
    if (table_.returns().load() != 0) {
      if (const Result<std::vector<uint32_t>> taken = table_.take_returns(); taken.ok()) {
        returned.insert(returned.end(), taken.value().begin(), taken.value().end());
      }
    }
    for (const uint32_t share : returned) {
      const auto left = left_.find(share);
      if (left == left_.end()) continue;
      done.push_back(left->second);
      left_.erase(left);
    }
  }
  for (const Left& each : done) give_back(each);
}

}  // namespace understudy
