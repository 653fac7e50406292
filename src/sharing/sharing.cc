// SPDX-License-Identifier: Apache-2.0
#include "sharing/sharing.h"

#include <array>

#include "base/pause.h"
#include "base/scope_exit.h"

namespace understudy {

Sharing::Sharing(Server& server, const ProcessMemory& memory)
    : ShareHooks(server.shares().returns()),
      table_(server.shares()),
      exported_files_(server),
      holds_(table_),
      share_server_(server, events()),
      exporter_(server, memory, table_, holds_, exported_files_, share_server_),
      importer_(server, memory, table_, holds_, exported_files_, share_server_),
      notify_access_(server, share_server_),
      cache_(*this, memory.pools) {
  memory.physical.set_share_hooks(*this);
  memory.allocations.set_share_hooks(*this);
}

Sharing::~Sharing() { share_server_.stop(); }

ShareServerEvents Sharing::events() {
  return {
      .request = [this](const ShareRequest& request, const platform::SocketPeer& peer,
                        ShareAnswer& answer) { return this->answer(request, peer, answer); },
      .process_ended = [this](ProcessTag process) { return importer_.on_process_ended(process); },
      .chores = [this] { return try_release(); }};
}

std::vector<int> Sharing::answer(const ShareRequest& request, const platform::SocketPeer& peer,
                                 ShareAnswer& answer) {
  switch (request.subject) {
    case ShareSubject::kMemory:
      return exporter_.answer(request, peer, answer);
    case ShareSubject::kNotify:
      answer.verdict = notify_access_.answer(request, peer);
      break;
  }
  return {};
}

// ---- Calls ----

Result<ShareToken> Sharing::export_block(BlockHandle handle, ShareKind kind, bool open_to_all) {
  reclaim_returned();
  ScopeExit release([&] { release_queued(); });
  return exporter_.export_block(handle, kind, open_to_all, ledger_deadline());
}

Result<ShareToken> Sharing::export_allocation(VirtualAddress address, uint64_t size,
                                              bool open_to_all) {
  reclaim_returned();
  ScopeExit release([&] { release_queued(); });
  return exporter_.export_allocation(address, size, open_to_all, ledger_deadline());
}

Result<void> Sharing::close_export(const ShareName& name) {
  return exporter_.close(name, ledger_deadline());
}

Result<void> Sharing::admit(const ShareName& name, std::span<const int32_t> processes) {
  return exporter_.admit(name, processes, ledger_deadline());
}

Result<ImportedBlock> Sharing::import_block(const ImportRequest& request) {
  reclaim_returned();
  ScopeExit release([&] { release_queued(); });
  return importer_.import_block(request, ledger_deadline());
}

Result<ImportedAllocation> Sharing::import_allocation(const ImportRequest& request) {
  reclaim_returned();
  ScopeExit release([&] { release_queued(); });
  return importer_.import_allocation(request, ledger_deadline());
}

// ---- Ends ----

void Sharing::on_last_handle_freed(Block& block) noexcept { exporter_.on_last_handle_freed(block); }

void Sharing::on_export_unreferenced(const Block& block) noexcept {
  exporter_.on_export_unreferenced(block);
  release_queued();
}

void Sharing::on_import_unreferenced(const Block& block) noexcept {
  importer_.on_import_unreferenced(block);
  release_queued();
}

SlotEnd Sharing::on_slot_freed(VirtualAddress address) noexcept {
  const SlotEnd end = exporter_.on_slot_freed(address);
  release_queued();
  return end;
}

void Sharing::reclaim_returned() noexcept {
  release_queued();
  std::array<ExportedMemory, ReleaseQueue::kBatch> returned;
  while (table_.returns().load() != 0) {
    const size_t count = holds_.take_returned(returned);
    if (count == 0) return;
    for (size_t i = 0; i < count; ++i) exporter_.reclaim(returned[i]);
  }
}

void Sharing::release_queued() noexcept {
  if (!try_release()) share_server_.wake();
}

void Sharing::settle() noexcept {
  constexpr std::chrono::milliseconds kMoment(20);
  if (holds_.is_empty()) return;
  for (const Deadline end = Clock::now() + kMoment; !has_passed(end); nap()) {
    try_release();
    if (holds_.is_empty()) return;
  }
}

bool Sharing::try_release() noexcept {
  while (!holds_.is_empty()) {
    // One thread at a time, so that what became of a number is noted before it is another share's.
    if (releasing_.exchange(true)) return true;
    const bool is_done = release_batches();
    releasing_.store(false);
    if (!is_done) return false;
  }
  return true;
}

bool Sharing::release_batches() noexcept {
  constexpr int kMost = 8;  // rather than all that other threads free meanwhile
  std::array<ReleasedHold, ReleaseQueue::kBatch> released;
  for (int batches = 0; !holds_.is_empty(); ++batches) {
    if (batches == kMost) return false;
    const std::optional<size_t> count = holds_.release_some(released);
    if (!count) return false;
    for (size_t i = 0; i < *count; ++i) {
      const ReleasedHold& hold = released[i];
      if (hold.exported.exists()) exporter_.reclaim(hold.exported);
      if (!hold.is_export) importer_.on_released(hold.number, hold.after);
    }
  }
  return true;
}

}  // namespace understudy
