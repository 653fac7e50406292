// SPDX-License-Identifier: Apache-2.0
//
// Memory that processes share: what this one exports and imports, the thread that answers others,
// and the holds that are to be given up. A share lives in the server's ledger until its last holder
// is gone; a process holds it while any of its blocks refers to it.
//
// Each call has one deadline for all its waits for other processes, and waits without a lock. What
// frees leave on the release queue is given up by the thread that frees, if the ledger's lock is
// free; else by the next call here, by the share server's thread, or when host memory runs short.
// Rules: SHARE, IPC. Any thread may call anything. docs/sharing.md tells the whole story.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "memory/backing_pools.h"
#include "memory/share_hooks.h"
#include "server/server.h"
#include "server/share_table.h"
#include "sharing/exported_backing_files.h"
#include "sharing/exporter.h"
#include "sharing/importer.h"
#include "sharing/notify_access.h"
#include "sharing/process_memory.h"
#include "sharing/release_queue.h"
#include "sharing/share_server.h"

namespace understudy {

class Sharing final : public ShareHooks {
 public:
  Sharing(Server& server, const ProcessMemory& memory);
  ~Sharing();

  // See Exporter and Importer.
  Result<ShareToken> export_block(BlockHandle handle, ShareKind kind, bool open_to_all);
  Result<ShareToken> export_allocation(VirtualAddress address, uint64_t size, bool open_to_all);
  Result<void> close_export(const ShareName& name);
  Result<void> admit(const ShareName& name, std::span<const int32_t> processes);
  Result<ImportedBlock> import_block(const ImportRequest& request);
  Result<ImportedAllocation> import_allocation(const ImportRequest& request);

  // Who may import notifies.
  NotifyAccess& notify_access() { return notify_access_; }

  // Gives up what frees have left, for figures that are exact. Waits for the ledger for a moment.
  void settle() noexcept;
  // The process ends: no one finds its socket any more.
  void withdraw() { share_server_.withdraw(); }

  // ShareHooks. They wait for nothing.
  void reclaim_returned() noexcept override;
  void on_last_handle_freed(Block& block) noexcept override;
  void on_export_unreferenced(const Block& block) noexcept override;
  void on_import_unreferenced(const Block& block) noexcept override;
  SlotEnd on_slot_freed(VirtualAddress address) noexcept override;
  size_t exported_slots() const { return exporter_.exported_slots(); }

 private:
  // What others gave back is as good as cached memory.
  class Cache final : public MemoryCache {
   public:
    Cache(Sharing& sharing, BackingPools& pools) : sharing_(sharing), pools_(pools) {
      pools.add_cache(*this);
    }
    ~Cache() override { pools_.remove_cache(*this); }
    void trim() override { sharing_.reclaim_returned(); }

   private:
    Sharing& sharing_;
    BackingPools& pools_;
  };

  ShareServerEvents events();
  std::vector<int> answer(const ShareRequest& request, const platform::SocketPeer& peer,
                          ShareAnswer& answer);
  // Gives up what is on the queue with one attempt, and leaves it to the share server if that
  // fails.
  void release_queued() noexcept;
  // True if nothing is left.
  bool try_release() noexcept;
  bool release_batches() noexcept;

  ShareTable& table_;
  ExportedBackingFiles exported_files_;
  ReleaseQueue holds_;
  ShareServer share_server_;  // its thread uses the three below, and ends before them
  Exporter exporter_;
  Importer importer_;
  NotifyAccess notify_access_;
  Cache cache_;
  std::atomic<bool> releasing_{false};  // a thread is at the queue
};

}  // namespace understudy
