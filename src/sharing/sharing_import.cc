// SPDX-License-Identifier: Apache-2.0
//
// What this process imports, and what it answers to those who import from it.
#include <algorithm>
#include <utility>

#include "base/pause.h"
#include "base/scope_exit.h"
#include "platform/system_number.h"
#include "platform/thread.h"
#include "sharing/sharing.h"

namespace understudy {

namespace {

constexpr std::chrono::seconds kPatience(5);
constexpr std::chrono::milliseconds kLook(50);

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

std::optional<ShareView> Sharing::look_up(ShareToken token) const {
  const Result<std::optional<ShareView>> view = table_.find(token);
  return view.ok() ? view.value() : std::nullopt;
}

std::optional<unsigned> Sharing::device_of(ShareToken token) const {
  const std::optional<ShareView> view = look_up(token);
  if (!view || !view->description.location.on_device()) return std::nullopt;
  return capacity_.device_of(view->description.location.id);
}

bool Sharing::is_of_kind(ShareToken token, ShareKind kind) const {
  const std::optional<ShareView> view = look_up(token);
  return view && view->description.kind == kind;
}

bool Sharing::is_on_other_device(ShareToken token, unsigned device) const {
  const std::optional<ShareView> view = look_up(token);
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
                                                   .size = view.description.usable,
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
    const StoreName name{view.owner, view.description.store};
    ScopeExit forget([&] {
      if (!is_own) forget_unused(name);
    });
    if (!is_own) US_TRY(prepare(token, view));

    MutexLock lock(mutex_);
    if (times == Times::kOnce && has_handle_locked(view.number)) {
      return Error::format(ErrorCode::kInvalidHandle,
                           "this process has imported it already and not freed it");
    }
    // Also when it is held already: by its number alone it could be another share by now.
    US_TRY_ASSIGN(const bool held, table_.hold(token));
    if (!held) return unknown_share();
    std::erase(undropped_, view.number);
    const bool is_first = !imported_.contains(view.number);
    if (is_first) {
      // If the store went meanwhile with the last that was imported from it: once more.
      if (!is_own && !foreign_stores_.has(name)) {
        (void)drop_locked(view.number);
        continue;
      }
      const Result<Extent> opened = open_locked(view);
      if (!opened.ok()) {
        if (!is_own) (void)drop_locked(view.number);
        return opened.error();
      }
      const bool is_whole = is_aligned(view.description.offset, kGranule) &&
                            is_aligned(view.description.size, kGranule);
      imported_.emplace(view.number, Imported{name, opened.value(), is_own, is_whole, {}});
    }
    Imported& import = imported_.at(view.number);
    Result<Block*> block =
        physical_.adopt(traits_of(view, device), import.extent, view.number, begins);
    if (block.ok()) import.blocks.push_back(block.value());
    if (import.blocks.empty()) {
      const Imported failed = std::move(import);
      imported_.erase(view.number);
      if (!is_own) release_locked(view.number, failed);
    }
    return block;
  }
}

void Sharing::forget_unused(const StoreName& name) {
  MutexLock lock(mutex_);
  if (foreign_stores_.detach_unused(name) && !foreign_stores_.has_any(name.owner)) {
    attendant_.forget(name.owner);
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
  const bool store_gone = foreign_stores_.close(import.store, import.extent);
  if (drop_locked(share) == AfterDrop::kNobodys && !store_gone) discard_part(import);
  if (store_gone && !foreign_stores_.has_any(import.store.owner)) {
    attendant_.forget(import.store.owner);
  }
}

// Of a dead process's store. A granule of small allocations may have others in it.
void Sharing::discard_part(const Imported& import) {
  if (import.is_whole) {
    foreign_stores_.discard_extent(import.store, import.extent);
  } else {
    discard_unheld(import.store.owner);
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
  MutexLock lock(mutex_);
  if (!foreign_stores_.has_any(view.owner)) {
    const ProcessSlot& slot = ledger_.slot(view.owner.slot());
    US_TRY(attendant_.watch(view.owner, {slot.process, slot.birth}));
  }
  return foreign_stores_.attach(name, std::move(*files));
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
  ShareAnswer answer;
  platform::Message message{.bytes = bytes_of(answer), .descriptors = {}};
  const ShareRequest request{.wants_store = wants_store ? 1U : 0U, .token = token.word()};
  US_TRY(converse(view.owner, request, message, deadline));
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

// Asks until there is an answer: an exporter whom very many ask sends some of them away.
Result<void> Sharing::converse(ProcessTag owner, ShareRequest request, platform::Message& answer,
                               Deadline deadline) const {
  if (ledger_.directory() == nullptr) return unknown_share();
  const int32_t process = ledger_.slot(owner.slot()).process;
  const std::string name = Ledger::socket_name(owner.slot());
  while (true) {
    const Result<platform::UnsharedFd> socket =
        platform::connect_to(*ledger_.directory(), name.c_str(), deadline);
    if (!socket.ok()) {
      // Its socket goes when it is about to end.
      const bool has_left =
          platform::means_nobody_there(socket.error()) || !ledger_.is_alive(owner);
      return has_left ? unknown_share() : socket.error();
    }
    const int connection = socket.value().get();
    if (platform::send_message(connection, bytes_of(request)) &&
        hears_answer(connection, owner, answer, deadline)) {
      return {};
    }
    if (!ledger_.is_alive(owner)) return unknown_share();
    if (has_passed(deadline)) return does_not_answer(process);
    nap();
  }
}

bool Sharing::hears_answer(int connection, ProcessTag owner, platform::Message& answer,
                           Deadline deadline) const {
  // The answer takes less time than to fall asleep and to be woken, if the exporter has a processor
  // to itself.
  const bool may_spin = platform::usable_processors() > 1;
  const Deadline spin_end = Clock::now() + std::chrono::microseconds(may_spin ? 100 : 0);
  while (true) {
    const bool spins = !has_passed(spin_end);
    if (!spins) {
      platform::Watched readable{connection};
      platform::wait_for_any({&readable, 1}, std::min(deadline, Clock::now() + kLook));
    }
    const platform::Received received = platform::receive_message(connection, answer);
    if (received == platform::Received::kMessage) return true;
    if (received != platform::Received::kNothingYet || has_passed(deadline)) return false;
    // A child of it may keep the connection open.
    if (!spins && !ledger_.is_alive(owner)) return false;
  }
}

std::vector<int> Sharing::answer(const ShareRequest& request, const platform::SocketPeer& peer,
                                 ShareAnswer& answer) {
  const ShareToken token(request.token);
  const std::optional<ShareView> view = look_up(token);
  if (!view || view->owner != ledger_.own_tag()) return {};
  if (!view->description.open_to_all && !whitelist_.has(token, peer.process)) {
    // The list goes when the share is closed.
    answer.verdict = look_up(token) ? ShareVerdict::kNotListed : ShareVerdict::kUnknown;
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
