// SPDX-License-Identifier: Apache-2.0
//
// What this process imports, and what it answers to those who import from it.
#include <utility>

#include "base/scope_exit.h"
#include "sharing/sharing.h"

namespace understudy {

namespace {

constexpr std::chrono::seconds kPatience(5);

Error does_not_answer(int32_t process) {
  return Error::format(ErrorCode::kConnection,
                       "process %d, which exported the memory, has not answered for %d seconds",
                       process, static_cast<int>(kPatience.count()));
}

StoreFiles files_of(const StoreRecord& record, platform::UniqueFd file, platform::UniqueFd states) {
  const auto kind = static_cast<platform::FileKind>(record.file_kind);
  const uint64_t granules = record.size / kGranule;
  return {record, platform::MemoryFile::adopt(std::move(file), kind, record.size),
          platform::MemoryFile::adopt(std::move(states), platform::FileKind::kShared,
                                      granules * sizeof(uint32_t))};
}

}  // namespace

std::optional<unsigned> Sharing::device_of(ShareToken token) const {
  const std::optional<ShareView> view = table_.find(token);
  if (!view || !view->description.location.on_device()) return std::nullopt;
  return capacity_.device_of(view->description.location.id);
}

bool Sharing::is_of_kind(ShareToken token, ShareKind kind) const {
  const std::optional<ShareView> view = table_.find(token);
  return view && view->description.kind == kind;
}

bool Sharing::is_on_other_device(ShareToken token, unsigned device) const {
  const std::optional<ShareView> view = table_.find(token);
  return view && view->description.location.on_device() &&
         view->description.location.id != capacity_.number_of(device);
}

BlockTraits Sharing::traits_of(const ShareView& view, unsigned device) const {
  Location location = view.description.location;
  // A device that this process does not see has no number here: it is as if on the importing one.
  if (location.on_device()) location.id = capacity_.device_of(location.id).value_or(device);
  return {static_cast<BlockAttribute>(view.description.attribute), kApplicationModule,
          static_cast<uint8_t>(device), location};
}

bool Sharing::has_handle_locked(uint32_t share) const {
  const auto found = imported_.find(share);
  if (found == imported_.end()) return false;
  for (const Block* const block : found->second.blocks) {
    if (PhysicalMemory::has_handle(*block)) return true;
  }
  return false;
}

Result<BlockHandle> Sharing::import_block(ShareToken token, ShareKind kind, unsigned device) {
  ShareView view;
  US_TRY_ASSIGN(const Block* const block, import(token, kind, device, Times::kOnce,
                                                 PhysicalMemory::Begins::kWithHandle, view));
  return physical_.handle_of(*block);
}

Result<VirtualAddress> Sharing::import_allocation(ShareToken token, unsigned device) {
  ShareView view;
  US_TRY_ASSIGN(Block* const block, import(token, ShareKind::kKey, device, Times::kOften,
                                           PhysicalMemory::Begins::kMapped, view));
  ScopeExit undo([&] { physical_.drop_mapping(*block); });
  US_TRY_ASSIGN(const VirtualAddress address,
                allocations_.place_import(*block, {.offset = view.description.offset % kGranule,
                                                   .size = view.description.size,
                                                   .read_only = view.description.read_only}));
  undo.dismiss();
  return address;
}

Result<Block*> Sharing::import(ShareToken token, ShareKind kind, unsigned device, Times times,
                               PhysicalMemory::Begins begins, ShareView& view) {
  reap();
  while (true) {
    US_TRY_ASSIGN(view, find(token, kind));
    const bool is_own = view.owner == ledger_.own_tag();
    if (is_own && times == Times::kOnce) {
      return Error::format(ErrorCode::kNoPermission,
                           "this process exported it, and has the block already");
    }
    if (!is_own && !ledger_.is_alive(view.owner)) return unknown_share();
    if (!is_own) US_TRY(prepare(token, view));

    MutexLock lock(mutex_);
    if (times == Times::kOnce && has_handle_locked(view.number)) {
      return Error::format(ErrorCode::kInvalidHandle,
                           "this process has imported it already and not freed it");
    }
    const bool is_first = !imported_.contains(view.number);
    if (is_first) {
      US_TRY_ASSIGN(const bool held, table_.hold(token));
      if (!held) return unknown_share();
    }
    // If the store went meanwhile with the last that was imported from it: once more.
    const StoreName name{view.owner, view.description.store};
    if (is_first && !is_own && !foreign_stores_.has(name)) {
      (void)table_.drop(view.number);
      continue;
    }
    if (is_first) {
      Imported fresh{.store = name, .extent = {}, .is_own = is_own, .blocks = {}};
      Result<Extent> opened = open_locked(view);
      if (!opened.ok()) {
        if (!is_own) (void)table_.drop(view.number);
        return opened.error();
      }
      fresh.extent = opened.value();
      imported_.emplace(view.number, std::move(fresh));
    }
    Imported& import = imported_.at(view.number);
    Result<Block*> block =
        physical_.adopt(traits_of(view, device), import.extent, view.number, begins);
    if (block.ok()) import.blocks.push_back(block.value());
    if (import.blocks.empty()) {
      const Imported failed = std::move(import);
      imported_.erase(view.number);
      release_locked(view.number, failed);
    }
    return block;
  }
}

Result<Extent> Sharing::open_locked(const ShareView& view) {
  const ShareDescription& what = view.description;
  if (view.owner == ledger_.own_tag()) {
    const uint64_t first = align_down(what.offset, kGranule);
    return Extent{own_stores_.at(what.store), first,
                  *align_up(what.offset + what.size, kGranule) - first};
  }
  US_TRY_ASSIGN(const std::optional<Extent> extent,
                foreign_stores_.open({view.owner, what.store}, what.offset, what.size));
  if (!extent) return unknown_share();
  return *extent;
}

void Sharing::release_locked(uint32_t share, const Imported& import) {
  if (import.is_own) {
    // The exporter's side of this process may have waited for this.
    const auto left = left_.find(share);
    if (left == left_.end() || left->second.is_returned) return;
    const Result<AfterDrop> dropped = table_.drop(share);
    left->second.is_returned = dropped.ok() && dropped.value() == AfterDrop::kOwnAgain;
    left->second.is_held = !dropped.ok();
    if (left->second.is_held) has_unheld_.store(true);
    return;
  }
  const bool store_gone = foreign_stores_.close(import.store, import.extent);
  const Result<AfterDrop> dropped = table_.drop(share);
  if (dropped.ok() && dropped.value() == AfterDrop::kNobodys && !store_gone) {
    discard_unheld(import.store.owner);
  }
  if (store_gone && !foreign_stores_.has_any(import.store.owner)) {
    attendant_.forget(import.store.owner);
  }
}

// After the end of its process: what nobody has of its stores goes back to the system.
void Sharing::discard_unheld(ProcessTag owner) {
  const Result<std::vector<ShareTable::HeldPart>> held = table_.held_parts(owner);
  if (!held.ok()) return;
  for (const uint16_t number : foreign_stores_.numbers_of(owner)) {
    std::vector<ForeignStores::Held> parts;
    for (const ShareTable::HeldPart& part : held.value()) {
      if (part.store == number) parts.push_back({part.offset, part.size});
    }
    foreign_stores_.discard({owner, number}, parts);
  }
}

// ---- Between importer and exporter ----

Result<void> Sharing::prepare(ShareToken token, const ShareView& view) {
  const StoreName name{view.owner, view.description.store};
  const bool wants_store = !foreign_stores_.has(name);
  if (view.description.open_to_all && !wants_store) return {};
  US_TRY_ASSIGN(std::optional<StoreFiles> files, obtain(token, view, wants_store));
  if (!files) return {};
  const bool is_known = foreign_stores_.has_any(view.owner);
  US_TRY(foreign_stores_.attach(name, std::move(*files)));
  if (is_known) return {};
  return attendant_.watch(view.owner, ledger_.slot(view.owner.slot()).process);
}

Result<std::optional<StoreFiles>> Sharing::obtain(ShareToken token, const ShareView& view,
                                                  bool wants_store) const {
  if (view.description.open_to_all) {
    Result<StoreFiles> fetched = fetch_directly(view);
    if (fetched.ok()) return std::optional<StoreFiles>(std::move(fetched.value()));
  }
  return ask_owner(token, view, wants_store);
}

// The quick way, without the exporter's help: its descriptors can be opened by other processes of
// the user.
Result<StoreFiles> Sharing::fetch_directly(const ShareView& view) const {
  const ProcessSlot& slot = ledger_.slot(view.owner.slot());
  const uint16_t number = view.description.store;
  if (number >= slot.stores.load() || number >= ProcessSlot::kStores) return unknown_share();
  const StoreRecord record = slot.store[number];
  const int32_t process = slot.process;
  const uint64_t granules = record.size / kGranule;
  US_TRY_ASSIGN(platform::MemoryFile file,
                platform::MemoryFile::open_of_process(
                    process, record.descriptor, {record.file_system, record.inode},
                    static_cast<platform::FileKind>(record.file_kind), record.size));
  US_TRY_ASSIGN(
      platform::MemoryFile states,
      platform::MemoryFile::open_of_process(
          process, record.states_descriptor, {record.states_file_system, record.states_inode},
          platform::FileKind::kShared, granules * sizeof(uint32_t)));
  // The slot may have changed hands while it was read.
  if (ledger_.tag_of(view.owner.slot()) != view.owner) return unknown_share();
  return StoreFiles{record, std::move(file), std::move(states)};
}

Result<std::optional<StoreFiles>> Sharing::ask_owner(ShareToken token, const ShareView& view,
                                                     bool wants_store) const {
  const Deadline deadline = Clock::now() + kPatience;
  const int32_t process = ledger_.slot(view.owner.slot()).process;
  const auto is_gone = [&] { return !ledger_.is_alive(view.owner); };
  if (ledger_.directory() == nullptr) return unknown_share();
  Result<platform::UniqueFd> socket = platform::connect_to(
      *ledger_.directory(), Ledger::socket_name(view.owner.slot()).c_str(), deadline);
  if (!socket.ok()) return is_gone() ? unknown_share() : socket.error();
  const int connection = socket.value().get();
  ShareRequest request{.wants_store = wants_store ? 1U : 0U, .token = token.word()};
  ShareAnswer answer;
  platform::Message message{.bytes = bytes_of(answer), .descriptors = {}};
  if (!platform::send_message(connection, bytes_of(request))) {
    return is_gone() ? unknown_share() : does_not_answer(process);
  }
  while (true) {
    platform::Watched readable{connection};
    platform::wait_for_any({&readable, 1}, deadline);
    const platform::Received received = platform::receive_message(connection, message);
    if (received == platform::Received::kMessage) break;
    if (received != platform::Received::kNothingYet) {
      return is_gone() ? unknown_share()
                       : Error::format(ErrorCode::kConnection,
                                       "process %d, which exported the memory, ended the "
                                       "connection without an answer",
                                       process);
    }
    if (has_passed(deadline)) return does_not_answer(process);
  }
  switch (answer.protocol == kShareProtocol ? answer.verdict : ShareVerdict::kBusy) {
    case ShareVerdict::kGranted:
      break;
    case ShareVerdict::kUnknown:
      return unknown_share();
    case ShareVerdict::kNotListed:
      return Error::format(ErrorCode::kNoPermission,
                           "process %d did not list this process among those who may import",
                           process);
    case ShareVerdict::kBusy:
      return Error::format(ErrorCode::kConnection,
                           "process %d cannot hand over its memory at the moment", process);
  }
  if (!wants_store) return std::optional<StoreFiles>();
  auto& [file, states] = message.descriptors;
  if (!file.valid() || !states.valid()) return unknown_share();
  return std::optional(files_of(answer.store, std::move(file), std::move(states)));
}

std::vector<int> Sharing::answer(const ShareRequest& request, const platform::SocketPeer& peer,
                                 ShareAnswer& answer) {
  const ShareToken token(request.token);
  const std::optional<ShareView> view = table_.find(token);
  if (!view || view->owner != ledger_.own_tag()) return {};
  if (!view->description.open_to_all && !whitelist_.has(token, peer.process)) {
    answer.verdict = ShareVerdict::kNotListed;
    return {};
  }
  answer.verdict = ShareVerdict::kGranted;
  const Store* const store = own_stores_.at(view->description.store);
  if (request.wants_store == 0 || store == nullptr) return {};
  answer.store = OwnStores::describe(*store);
  return {store->file().descriptor(), store->states_file().descriptor()};
}

void Sharing::note_end(ProcessTag process) {
  ledger_.reclaim_if_any();
  MutexLock lock(mutex_);
  discard_unheld(process);
}

}  // namespace understudy
