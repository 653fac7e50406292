// SPDX-License-Identifier: Apache-2.0
#include "sharing/exporter.h"

#include <cinttypes>
#include <utility>

#include "base/scope_exit.h"
#include "base/size_text.h"
#include "observe/unwritten_memory.h"
#include "platform/futex.h"

namespace understudy {

namespace {

ShareDescription describe(const Block& block, ShareKind kind, bool open_to_all) {
  return {.kind = kind,
          .open_to_all = open_to_all,
          .page_kind = block.traits.page_kind(),
          .attribute = static_cast<uint8_t>(block.traits.attribute),
          .location = block.traits.location,
          .size = block.extent.size,
          .usable = block.extent.size};
}

Result<void> check_export_size(uint64_t size, uint64_t usable) {
  if (size <= usable) return {};
  return Error::format(ErrorCode::kInvalidParam,
                       "size %" PRIu64 " is past the allocation, which has %s", size,
                       SizeText(usable).c_str());
}

}  // namespace

// ---- Turns: one thread at a time exports a block or a slot ----

Result<BlockShare> Exporter::begin_block(Block& block, Again again, Deadline deadline) {
  while (true) {
    const uint32_t turn = turns_.load();
    uint32_t word = block.share.load();
    const BlockShare before = BlockShare::unpack(word);
    if (before.sharing == BlockSharing::kImported) {
      return Error::format(ErrorCode::kInvalidParam,
                           "the block was imported, and only its own process can export it");
    }
    const bool is_free =
        before.sharing == BlockSharing::kNone || before.sharing == BlockSharing::kClosed;
    if (!is_free && again == Again::kNo) {
      return Error::format(ErrorCode::kInvalidParam, "the block is exported already");
    }
    if (before.sharing == BlockSharing::kExporting) {
      US_TRY(wait_for_turn(turn, deadline));
      continue;
    }
    const BlockShare during{BlockSharing::kExporting, before.number};
    if (block.share.compare_exchange_strong(word, during.pack())) return before;
  }
}

void Exporter::end_block(Block& block, const BlockShare& share) {
  block.share.store(share.pack());
  end_turn();
}

// Nothing if no small allocation starts at the address.
Result<std::optional<Exporter::SlotTurn>> Exporter::begin_slot(VirtualAddress address,
                                                               Deadline deadline) {
  while (true) {
    const uint32_t turn = turns_.load();
    {
      MutexLock lock(mutex_);
      // A thread that frees it from here on asks us.
      const std::optional<DeviceMemory::SharedSlot> slot = memory_.allocations.share_slot(address);
      if (!slot) return std::optional<SlotTurn>();
      const auto known = slots_.find(address);
      if (known == slots_.end()) {
        ScopeExit undo([&] { memory_.allocations.unshare_slot(address); });
        slots_.emplace(address, SlotExport{});
        undo.dismiss();
        return std::optional(SlotTurn{*slot, std::nullopt});
      }
      if (known->second.state == SlotState::kExported) {
        known->second.state = SlotState::kExporting;
        return std::optional(SlotTurn{*slot, known->second.number});
      }
    }
    US_TRY(wait_for_turn(turn, deadline));
  }
}

// The slot is exported under a number now, or is not if it was not before.
void Exporter::end_slot(VirtualAddress address, const SlotTurn& turn,
                        std::optional<uint32_t> number) {
  bool was_freed = false;
  {
    MutexLock lock(mutex_);
    const auto found = slots_.find(address);
    SlotExport& slot = found->second;
    was_freed = slot.state == SlotState::kFreedInExporting;
    if (number) {
      slot = {SlotState::kExported, *number};
      if (was_freed) leave_slot_locked(slot);
    } else {
      slots_.erase(found);
      if (!was_freed) memory_.allocations.unshare_slot(address);
    }
  }
  end_turn();
  if (!was_freed) return;
  // What the thread that freed it has left to this one.
  if (number) {
    memory_.capacity.note_share_ended(turn.slot.charge);
  } else {
    memory_.capacity.credit(turn.slot.charge);
    memory_.allocations.give_back_slot(address);
  }
}

Result<void> Exporter::wait_for_turn(uint32_t turn, Deadline deadline) {
  if (has_passed(deadline)) {
    return Error::format(ErrorCode::kConnection,
                         "another thread, which exports the same memory, has waited for the "
                         "server's ledger for %d seconds",
                         static_cast<int>(kLedgerPatience.count()));
  }
  waiting_.fetch_add(1);
  platform::sleep_on(turns_, turn, deadline);
  waiting_.fetch_sub(1);
  return {};
}

void Exporter::end_turn() {
  turns_.fetch_add(1);
  if (waiting_.load() != 0) platform::wake_all(turns_);
}

// ---- Exports ----

Result<ShareToken> Exporter::export_block(BlockHandle handle, ShareKind kind, bool open_to_all,
                                          Deadline deadline) {
  US_TRY_ASSIGN(Block* const block, memory_.physical.add_internal_ref(handle));
  ScopeExit drop([&] { memory_.physical.drop_internal_ref(*block); });
  US_TRY_ASSIGN(const BlockShare before, begin_block(*block, Again::kNo, deadline));
  ScopeExit undo([&] { end_block(*block, before); });
  const ShareDescription wanted = describe(*block, kind, open_to_all);
  Result<ShareToken> token = before.sharing == BlockSharing::kClosed
                                 ? reopen(before.number, wanted, deadline)
                                 : publish(wanted, block->extent, block->charge(),
                                           ExportedMemory::of_block(block->index), deadline);
  if (!token.ok()) return token;
  undo.dismiss();
  MutexLock lock(mutex_);
  end_block(*block, {BlockSharing::kOpen, token.value().number()});
  // Another thread freed the last handle meanwhile.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!PhysicalMemory::has_handle(*block)) close_block_locked(*block);
  return token;
}

Result<ShareToken> Exporter::export_allocation(VirtualAddress address, uint64_t size,
                                               bool open_to_all, Deadline deadline) {
  US_TRY_ASSIGN(const std::optional<SlotTurn> turn, begin_slot(address, deadline));
  if (turn) {
    std::optional<uint32_t> number = turn->number;
    ScopeExit end([&] { end_slot(address, *turn, number); });
    Result<ShareToken> token = export_slot(address, *turn, size, open_to_all, deadline);
    if (token.ok()) number = token.value().number();
    return token;
  }
  US_TRY_ASSIGN(const AllocationPlacement::Found found, memory_.allocations.find_block(address));
  Block& block = *found.block;
  ScopeExit drop([&] { memory_.physical.drop_internal_ref(block); });
  US_TRY(check_export_size(size, found.part.size));
  ShareDescription wanted = describe(block, ShareKind::kKey, open_to_all);
  wanted.usable = size;
  wanted.read_only = found.part.read_only;
  US_TRY_ASSIGN(const BlockShare before, begin_block(block, Again::kYes, deadline));
  BlockShare after = before;
  ScopeExit end([&] { end_block(block, after); });
  Result<ShareToken> token = before.sharing != BlockSharing::kNone
                                 ? open_again(before.number, wanted, deadline)
                                 : publish(wanted, block.extent, block.charge(),
                                           ExportedMemory::of_block(block.index), deadline);
  if (token.ok()) after = {BlockSharing::kOpen, token.value().number()};
  return token;
}

Result<ShareToken> Exporter::export_slot(VirtualAddress address, const SlotTurn& turn,
                                         uint64_t size, bool open_to_all, Deadline deadline) {
  const DeviceMemory::SharedSlot& slot = turn.slot;
  US_TRY(check_export_size(size, slot.part.size));
  const ShareDescription wanted{.kind = ShareKind::kKey,
                                .open_to_all = open_to_all,
                                .page_kind = PageKind::kNormal,
                                .attribute = static_cast<uint8_t>(BlockAttribute::kNormal),
                                .location = {LocationKind::kDevice, slot.charge.device},
                                .offset = slot.part.offset,
                                .size = slot.part.size,
                                .usable = size};
  if (turn.number) return open_again(*turn.number, wanted, deadline);
  return publish(wanted, slot.granule, slot.charge, ExportedMemory::of_slot(address), deadline);
}

Result<ShareToken> Exporter::publish(ShareDescription description, const Extent& extent,
                                     const Charge& charge, ExportedMemory memory,
                                     Deadline deadline) {
  US_TRY(share_server_.listen());
  description.backing = files_.number_of(*extent.backing);
  description.offset += extent.offset;
  // Importers may write it from now on.
  if (is_init_checked()) [[unlikely]]
    UnwrittenMemory::write({extent.backing->alias(description.offset), description.size});
  if (description.location.on_device()) {
    description.location.id = memory_.capacity.number_of(description.location.id);
  }
  description.charged = charge.bytes;
  US_TRY_ASSIGN(const ShareToken token, table_.add(description, deadline));
  // It is exported: nothing from here on can fail.
  holds_.enter_export(token.number(), memory.in_backing_file(description.backing)
                                          .exported_as(description.kind, description.open_to_all));
  if (description.location.on_device()) memory_.capacity.note_shared(charge);
  return token;
}

Result<ShareToken> Exporter::reopen(uint32_t number, const ShareDescription& wanted,
                                    Deadline deadline) {
  US_TRY_ASSIGN(const ShareToken token,
                table_.reopen(number, wanted.kind, wanted.open_to_all, wanted.usable, deadline));
  holds_.change_export(number,
                       holds_.exported(number).exported_as(wanted.kind, wanted.open_to_all));
  return token;
}

// An allocation that was exported before: by the same token while that is good.
Result<ShareToken> Exporter::open_again(uint32_t number, const ShareDescription& wanted,
                                        Deadline deadline) {
  if (const std::optional<ShareToken> token = table_.token_of(number)) {
    US_TRY_ASSIGN(const std::optional<ShareView> view, table_.find(*token, deadline));
    if (view && view->description.usable == wanted.usable &&
        view->description.open_to_all == wanted.open_to_all) {
      return *token;
    }
    if (view) {
      return Error::format(ErrorCode::kInvalidParam,
                           "it is exported already, with another size or other flags");
    }
    // Closed meanwhile.
  }
  return reopen(number, wanted, deadline);
}

// ---- What the exporter is asked about its exports ----

std::optional<ExportedMemory> Exporter::exported_by(ShareToken token) const {
  const ExportedMemory memory = holds_.exported(token.number());
  if (!memory.exists()) return std::nullopt;
  const std::optional<ShareToken> open = table_.token_of(token.number());
  if (!open || open->word() != token.word()) return std::nullopt;
  return memory;
}

Result<ExportedMemory> Exporter::find_own(const ShareName& name, Deadline deadline) const {
  if (const std::optional<ExportedMemory> memory = exported_by(name.token);
      memory && memory->kind() == name.kind && name.is_whole) {
    return *memory;
  }
  US_TRY_ASSIGN(const ShareView view, find_share(server_, table_, name, deadline));
  if (view.owner == server_.slots().own_tag()) return unknown_share();  // closed meanwhile
  return Error::format(ErrorCode::kNoPermission, "process %d exported it, not this one",
                       server_.slots().process_id(view.owner));
}

Result<void> Exporter::close(const ShareName& name, Deadline deadline) {
  US_TRY(find_own(name, deadline));
  close_token(name.token);
  return {};
}

Result<void> Exporter::admit(const ShareName& name, std::span<const int32_t> processes,
                             Deadline deadline) {
  US_TRY_ASSIGN(const ExportedMemory memory, find_own(name, deadline));
  if (memory.open_to_all()) {
    return Error::format(ErrorCode::kNoPermission,
                         "it was exported with validation of processes switched off");
  }
  return whitelist_.add(name.token, processes);
}

std::vector<int> Exporter::answer(const ShareRequest& request, const platform::SocketPeer& peer,
                                  ShareAnswer& answer) {
  const ShareToken token(request.token);
  const std::optional<ExportedMemory> memory = exported_by(token);
  if (!memory) return {};
  if (!memory->open_to_all() && !whitelist_.has(token, peer.process)) {
    // The list goes when the share is closed.
    answer.verdict = exported_by(token) ? ShareVerdict::kNotListed : ShareVerdict::kUnknown;
    return {};
  }
  answer.verdict = ShareVerdict::kGranted;
  const BackingFile* const backing = files_.at(memory->backing_file());
  if (request.wants_file == 0 || backing == nullptr) return {};
  answer.backing = ExportedBackingFiles::describe(*backing);
  return {backing->file().usable_descriptor(), backing->states_file().usable_descriptor()};
}

// ---- The ends of exports: these wait for nothing, and cannot fail ----

void Exporter::on_last_handle_freed(Block& block) noexcept {
  MutexLock lock(mutex_);
  close_block_locked(block);
}

void Exporter::close_block_locked(Block& block) {
  const BlockShare open = block.shared();
  if (open.sharing != BlockSharing::kOpen) return;
  // In this order: once the block is closed, another thread may export it again under its number,
  // and that token must not be closed in place of this one. A thread that has begun to export the
  // allocation again finds the token closed, and says itself what the block is then.
  close_number_locked(open.number);
  uint32_t word = open.pack();
  block.share.compare_exchange_strong(word, BlockShare{BlockSharing::kClosed, open.number}.pack());
}

void Exporter::close_number_locked(uint32_t number) {
  if (const std::optional<ShareToken> token = table_.token_of(number)) close_token(*token);
}

// In this order: a process that is not listed any more must not find the share.
void Exporter::close_token(ShareToken token) {
  table_.close(token);
  whitelist_.remove(token);
}

void Exporter::on_export_unreferenced(const Block& block) noexcept {
  holds_.end_need(block.shared().number, HoldUser::kExporter);
}

SlotEnd Exporter::on_slot_freed(VirtualAddress address) noexcept {
  MutexLock lock(mutex_);
  const auto found = slots_.find(address);
  if (found == slots_.end()) return SlotEnd::kNeverShared;
  if (found->second.state == SlotState::kExporting) {
    found->second.state = SlotState::kFreedInExporting;
    return SlotEnd::kInExport;
  }
  leave_slot_locked(found->second);
  return SlotEnd::kShared;
}

void Exporter::leave_slot_locked(SlotExport& slot) {
  slot.state = SlotState::kLeft;
  close_number_locked(slot.number);
  holds_.end_need(slot.number, HoldUser::kExporter);
}

size_t Exporter::exported_slots() const {
  MutexLock lock(mutex_);
  return slots_.size();
}

void Exporter::reclaim(ExportedMemory memory) noexcept {
  if (!memory.is_slot()) {
    memory_.physical.take_back(memory.block());
    return;
  }
  {
    MutexLock lock(mutex_);
    slots_.erase(memory.slot());
  }
  memory_.allocations.give_back_slot(memory.slot());
}

}  // namespace understudy
