// SPDX-License-Identifier: Apache-2.0
#include "sharing/importer.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/scope_exit.h"

namespace understudy {

// One thread's import of a share, until it has a block of it or has failed. Before this process
// takes a hold on the share, so that the release queue does not give it up meanwhile.
class Importer::Start {
 public:
  Start(Importer& importer, uint32_t number) : importer_(importer) {
    MutexLock lock(importer_.mutex_);
    import_ = importer_.start_locked(number);
  }
  ~Start() {
    MutexLock lock(importer_.mutex_);
    --import_->second.starting;
    importer_.end_if_unused_locked(import_);
  }
  Start(const Start&) = delete;
  Start& operator=(const Start&) = delete;

  Import& import() const { return import_->second; }

 private:
  Importer& importer_;
  Imports::iterator import_;
};

Importer::Imports::iterator Importer::active_locked(uint32_t number) {
  const auto [first, last] = imports_.equal_range(number);
  const auto active =
      std::find_if(first, last, [](const auto& each) { return !each.second.is_releasing; });
  return active != last ? active : imports_.end();
}

Importer::Imports::iterator Importer::start_locked(uint32_t number) {
  auto import = active_locked(number);
  if (import == imports_.end()) {
    // Before the hold is needed: this may find no memory.
    import = imports_.emplace(number, Import{});
    if (holds_.need_for_import(number)) {
      // The latest import was on its way out, and goes on with what it had.
      import = std::prev(imports_.erase(import));
      import->second.is_releasing = false;
    }
  }
  ++import->second.starting;
  return import;
}

void Importer::end_if_unused_locked(Imports::iterator import) noexcept {
  Import& ended = import->second;
  if (ended.starting > 0 || !ended.blocks.empty()) return;
  const bool is_queued = holds_.end_need(import->first, HoldUser::kImporter);
  // What is shown of another process's backing file stays until the hold is given up. If it never
  // was the import's, the number is that of another share by now, and so is the hold on the queue.
  if (is_queued && ended.is_held && !ended.is_own) {
    ended.is_releasing = true;
  } else {
    imports_.erase(import);
  }
}

// ---- Imports ----

std::optional<unsigned> Importer::device_of(const ShareView& view) const {
  if (!view.description.location.on_device()) return std::nullopt;
  return memory_.capacity.device_of(view.description.location.id);
}

BlockTraits Importer::traits_of(const ShareView& view, unsigned device) const {
  Location location = view.description.location;
  // A device that this process does not see has no number here: it is as if on the importing one.
  if (location.on_device()) location.id = device_of(view).value_or(device);
  return {static_cast<BlockAttribute>(view.description.attribute), kApplicationModule,
          static_cast<uint8_t>(device), location};
}

Result<ImportedBlock> Importer::import_block(const ImportRequest& request, Deadline deadline) {
  US_TRY_ASSIGN(const Found found,
                import(request, Times::kOnce, PhysicalMemory::Begins::kWithHandle, deadline));
  return ImportedBlock{memory_.physical.handle_of(*found.block), found.device};
}

Result<ImportedAllocation> Importer::import_allocation(const ImportRequest& request,
                                                       Deadline deadline) {
  US_TRY_ASSIGN(const Found found,
                import(request, Times::kOften, PhysicalMemory::Begins::kMapped, deadline));
  ScopeExit undo([&] { memory_.physical.drop_internal_ref(*found.block); });
  const ShareDescription& what = found.view.description;
  US_TRY_ASSIGN(const VirtualAddress address,
                memory_.allocations.place_import(*found.block, {.offset = what.offset % kGranule,
                                                                .size = what.usable,
                                                                .read_only = what.read_only}));
  undo.dismiss();
  return ImportedAllocation{address, found.device};
}

Result<Importer::Found> Importer::import(const ImportRequest& request, Times times,
                                         PhysicalMemory::Begins begins, Deadline deadline) {
  US_TRY_ASSIGN(const ShareView view, find_share(server_, table_, request.name, deadline));
  const Location location = view.description.location;
  if (request.reach == DeviceReach::kOwnMemory && location.on_device() &&
      location.id != memory_.capacity.number_of(request.device)) {
    return Error::format(ErrorCode::kNotSupported,
                         "the memory is on another device than %u, and the devices of this product "
                         "do not reach each other",
                         request.device);
  }
  const bool is_own = view.owner == server_.slots().own_tag();
  // SHARE-29: for another device, or for a device where the block is the host's, it is of use.
  if (is_own && times == Times::kOnce && location.on_device() &&
      location.id == memory_.capacity.number_of(request.device)) {
    return Error::format(ErrorCode::kNoPermission,
                         "this process exported it from device %u, and has the block there already",
                         request.device);
  }
  ScopeExit forget([&] {
    if (!is_own) forget_if_unused(view.owner);
  });
  RemoteBackingFiles::Use file;
  if (!is_own) {
    US_TRY_ASSIGN(file, attach(request.name.token, view, deadline));
  }

  const Start start(*this, view.number);
  // Also if it is held already: by its number alone it could be another share by now.
  US_TRY_ASSIGN(const bool is_held, table_.hold(request.name.token, deadline));
  if (!is_held) return unknown_share();
  holds_.note_held(view.number);
  US_TRY_ASSIGN(Block* const block,
                commit(start.import(), view, std::move(file), request, times, begins));
  return Found{block, view, device_of(view)};
}

Result<RemoteBackingFiles::Use> Importer::attach(ShareToken token, const ShareView& view,
                                                 Deadline deadline) {
  const BackingFileName name{view.owner, view.description.backing};
  RemoteBackingFiles::Use attached = files_.use(name);
  if (view.description.open_to_all && attached.valid()) return attached;
  US_TRY_ASSIGN(std::optional<OpenedBackingFile> files,
                client_.obtain(token, view, !attached.valid(), deadline));
  if (!files) return attached;
  MutexLock lock(mutex_);
  if (!files_.has_any(view.owner)) {
    US_TRY(share_server_.watch(view.owner, server_.slots().identity_of(view.owner)));
  }
  return files_.attach(name, std::move(*files));
}

// Of a share that this process holds.
Result<Block*> Importer::commit(Import& import, const ShareView& view, RemoteBackingFiles::Use file,
                                const ImportRequest& request, Times times,
                                PhysicalMemory::Begins begins) {
  MutexLock lock(mutex_);
  if (!import.is_held) {
    // Not earlier: until the ledger has found the token good, another thread may have begun it for
    // a share that had the number before.
    import.is_held = true;
    import.is_own = view.owner == server_.slots().own_tag();
    import.owner = view.owner;
  }
  if (times == Times::kOnce &&
      std::any_of(import.blocks.begin(), import.blocks.end(),
                  [](const Block* block) { return PhysicalMemory::has_handle(*block); })) {
    return Error::format(ErrorCode::kInvalidHandle,
                         "this process has imported it already and not freed it");
  }
  import.blocks.reserve(import.blocks.size() + 1);
  if (!import.is_shown) US_TRY(show_locked(import, view, std::move(file)));
  US_TRY_ASSIGN(Block* const block, memory_.physical.adopt(traits_of(view, request.device),
                                                           import.extent, view.number, begins));
  import.blocks.push_back(block);
  return block;
}

Result<void> Importer::show_locked(Import& import, const ShareView& view,
                                   RemoteBackingFiles::Use file) {
  const ShareDescription& what = view.description;
  if (import.is_own) {
    const uint64_t first = align_down(what.offset, kGranule);
    import.extent = {exported_files_.at(what.backing), first,
                     *align_up(what.offset + what.size, kGranule) - first};
  } else {
    US_TRY_ASSIGN(import.extent, files_.show(file, what.offset, what.size));
    import.file = std::move(file);
  }
  import.is_whole = is_aligned(what.offset, kGranule) && is_aligned(what.size, kGranule);
  import.is_shown = true;
  return {};
}

// ---- Their ends: these wait for nothing, and cannot fail ----

void Importer::on_import_unreferenced(const Block& block) noexcept {
  MutexLock lock(mutex_);
  const auto import = active_locked(block.shared().number);
  std::erase(import->second.blocks, &block);
  end_if_unused_locked(import);
}

void Importer::on_released(uint32_t number, AfterDrop after) noexcept {
  Imports::node_type ended;
  {
    MutexLock lock(mutex_);
    // Holds are given up one after the other, so that it is the oldest one.
    const auto import = imports_.lower_bound(number);
    if (import == imports_.end() || import->first != number || !import->second.is_releasing) return;
    ended = imports_.extract(import);
  }
  Import& import = ended.mapped();
  if (import.is_shown) {
    if (after == AfterDrop::kOrphaned) discard(import);
    files_.hide(import.file, import.extent);
  }
  const ProcessTag owner = import.owner;
  ended = {};
  forget_if_unused(owner);
}

// Of a process that has ended. A granule of small allocations may have others in it.
void Importer::discard(const Import& import) noexcept {
  if (import.is_whole) {
    files_.discard(import.file, import.extent);
    return;
  }
  try {
    // If the ledger is busy it goes with the last import from that process.
    (void)on_process_ended(import.owner);
  } catch (const std::bad_alloc&) {
  }
}

bool Importer::on_process_ended(ProcessTag process) {
  // Until its slot is cleared, it counts as a holder itself.
  server_.slots().reclaim_if_any(kOneAttempt);
  if (server_.slots().has_slot(process)) return false;
  std::vector<ShareTable::HeldPart> held(16);
  while (true) {
    const Result<size_t> count = table_.held_parts(process, held, kOneAttempt);
    if (!count.ok()) return false;
    const bool is_all = count.value() <= held.size();
    held.resize(count.value());
    if (is_all) break;
  }
  files_.discard_unheld(process, held);
  return true;
}

void Importer::forget_if_unused(ProcessTag process) noexcept {
  MutexLock lock(mutex_);
  if (!files_.has_any(process)) share_server_.forget(process);
}

}  // namespace understudy
