// SPDX-License-Identifier: Apache-2.0
//
// What this process exports: physical blocks, and allocations behind keys, which are blocks or
// slots of slabs. Bytes never move: an importer sees the exporter's own backing file.
//
// One thread at a time exports a piece of memory, which its state says (kExporting); no lock is
// held while the ledger is waited for. Frees only change words of this process and the secret of
// the share, and leave the rest to the ReleaseQueue. docs/sharing.md has the states of a share.
// Rules: SHARE, IPC. Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/deadline.h"
#include "base/mutex.h"
#include "base/result.h"
#include "memory/share_hooks.h"
#include "platform/local_socket.h"
#include "server/share_table.h"
#include "sharing/exported_backing_files.h"
#include "sharing/process_memory.h"
#include "sharing/release_queue.h"
#include "sharing/share_lookup.h"
#include "sharing/share_protocol.h"
#include "sharing/share_server.h"
#include "sharing/whitelist.h"

namespace understudy {

class Exporter {
 public:
  Exporter(Server& server, const ProcessMemory& memory, ShareTable& table, ReleaseQueue& holds,
           ExportedBackingFiles& files, ShareServer& share_server)
      : server_(server),
        memory_(memory),
        table_(table),
        holds_(holds),
        files_(files),
        share_server_(share_server) {}

  // Lets other processes have a block, until the program frees its last handle.
  Result<ShareToken> export_block(BlockHandle handle, ShareKind kind, bool open_to_all,
                                  Deadline deadline);
  // The same for the allocation that starts at an address, until the export is closed. A second
  // time gives the same token.
  Result<ShareToken> export_allocation(VirtualAddress address, uint64_t size, bool open_to_all,
                                       Deadline deadline);
  // Lets no one in any more. Waits for nothing if this process has exported it.
  Result<void> close(const ShareName& name, Deadline deadline);
  // Names processes that may import. Only the exporter may.
  Result<void> admit(const ShareName& name, std::span<const int32_t> processes, Deadline deadline);

  // What the share server answers to a process that wants to import; the descriptors that go with
  // it. Waits for nothing.
  std::vector<int> answer(const ShareRequest& request, const platform::SocketPeer& peer,
                          ShareAnswer& answer);

  // The ends of what was exported. See ShareHooks.
  void on_last_handle_freed(Block& block) noexcept;
  void on_export_unreferenced(const Block& block) noexcept;
  SlotEnd on_slot_freed(VirtualAddress address) noexcept;
  size_t exported_slots() const;
  // Memory that was left to other processes, and that none of them holds any more, can be used
  // again.
  void reclaim(ExportedMemory memory) noexcept;

 private:
  enum class SlotState : uint8_t {
    kExporting,         // a thread is at it
    kFreedInExporting,  // and another thread has freed the allocation
    kExported,          // until the allocation is freed, whether its token opens it or not
    kLeft,              // freed: waits for the last importer
  };
  struct SlotExport {
    SlotState state = SlotState::kExporting;
    uint32_t number = 0;  // 0 in the first kExporting
  };
  // A slot whose export this thread has begun.
  struct SlotTurn {
    DeviceMemory::SharedSlot slot;
    std::optional<uint32_t> number;  // if it is exported already
  };
  // Whether a block that is exported may be exported again.
  enum class Again : uint8_t { kNo, kYes };

  Result<BlockShare> begin_block(Block& block, Again again, Deadline deadline);
  void end_block(Block& block, const BlockShare& share);
  Result<std::optional<SlotTurn>> begin_slot(VirtualAddress address, Deadline deadline);
  Result<ShareToken> export_slot(VirtualAddress address, const SlotTurn& turn, uint64_t size,
                                 bool open_to_all, Deadline deadline);
  void end_slot(VirtualAddress address, const SlotTurn& turn, std::optional<uint32_t> number);

  Result<void> wait_for_turn(uint32_t turn, Deadline deadline);
  void end_turn();

  Result<ShareToken> publish(ShareDescription description, const Extent& extent,
                             const Charge& charge, ExportedMemory memory, Deadline deadline);
  Result<ShareToken> reopen(uint32_t number, const ShareDescription& wanted, Deadline deadline);
  Result<ShareToken> open_again(uint32_t number, const ShareDescription& wanted, Deadline deadline);
  // What this process has exported by that name.
  Result<ExportedMemory> find_own(const ShareName& name, Deadline deadline) const;
  std::optional<ExportedMemory> exported_by(ShareToken token) const;

  void close_block_locked(Block& block) US_REQUIRES(mutex_);
  void close_number_locked(uint32_t number) US_REQUIRES(mutex_);
  void close_token(ShareToken token);
  void leave_slot_locked(SlotExport& slot) US_REQUIRES(mutex_);

  Server& server_;
  const ProcessMemory memory_;
  ShareTable& table_;
  ReleaseQueue& holds_;
  ExportedBackingFiles& files_;
  ShareServer& share_server_;
  Whitelist whitelist_;
  // Which share a block is goes from open to closed and back under this lock.
  mutable Mutex mutex_{LockRank::kExporter};
  std::unordered_map<VirtualAddress, SlotExport> slots_ US_GUARDED_BY(mutex_);
  // To sleep on until another thread's export of the same memory is over.
  std::atomic<uint32_t> turns_{0};
  std::atomic<uint32_t> waiting_{0};
};

}  // namespace understudy
