// SPDX-License-Identifier: Apache-2.0
//
// Memory that processes share: what this one exports, and what it imports from others. Bytes never
// move: an importer sees the exporter's own storage. A share lives in the server's ledger until its
// last holder is gone; a process holds it while any of its blocks refers to it.
// Rules: SHARE, IPC. Any thread may call anything. docs/sharing.md tells the whole story.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "device/capacity.h"
#include "device/ledger.h"
#include "device/share_table.h"
#include "memory/device_memory.h"
#include "memory/memory_keeper.h"
#include "memory/physical_memory.h"
#include "memory/storage_set.h"
#include "sharing/attendant.h"
#include "sharing/foreign_stores.h"
#include "sharing/own_stores.h"
#include "sharing/whitelist.h"

namespace understudy {

class Sharing final : public MemoryKeeper, public MemoryCache, private AttendantClient {
 public:
  Sharing(Ledger& ledger, Capacity& capacity, StorageSet& storages, PhysicalMemory& physical,
          DeviceMemory& allocations);
  ~Sharing() override;

  // Lets other processes have a block, until the program frees its last handle.
  Result<ShareToken> export_block(BlockHandle handle, ShareKind kind, bool open_to_all);
  // The same for the allocation that starts at an address, until the export is closed. A second
  // time gives the same token.
  Result<ShareToken> export_allocation(VirtualAddress address, uint64_t size, bool open_to_all);
  Result<void> close_export(ShareToken token, ShareKind kind);
  // Names processes that may import. By the exporter.
  Result<void> admit(ShareToken token, ShareKind kind, std::span<const int32_t> processes);

  // A block of another process, for a device of this one. Once at a time.
  Result<BlockHandle> import_block(ShareToken token, ShareKind kind, unsigned device);
  // Memory behind a key, at an address of its own each time; also this process's own.
  Result<VirtualAddress> import_allocation(ShareToken token, unsigned device);
  // The device a share is on, if this process sees it.
  std::optional<unsigned> device_of(ShareToken token) const;
  bool is_of_kind(ShareToken token, ShareKind kind) const;
  bool is_on_other_device(ShareToken token, unsigned device) const;

  void trim() override { reap(); }

  // MemoryKeeper
  void reap() override;
  void close(Block& block) override;
  void keep(const Block& block) override;
  SlotEnd leave_slot(VirtualAddress address) override;

 private:
  // Memory of this process that it has left to others: an extent, or the slot of a small
  // allocation.
  struct Left {
    Extent extent;
    Location location;
    VirtualAddress slot = 0;
  };
  // A share that this process has imported.
  struct Imported {
    StoreName store;
    Extent extent;
    bool is_own = false;         // exported by this very process
    bool is_whole = false;       // has its granules for itself
    std::vector<Block*> blocks;  // one per import
  };
  enum class Times : uint8_t { kOnce, kOften };

  std::optional<ShareView> look_up(ShareToken token) const;
  Result<ShareView> find(ShareToken token, ShareKind kind) const;
  Result<ShareView> find_own(ShareToken token, ShareKind kind) const;
  Result<ShareToken> publish(ShareDescription description, Extent extent, const Charge& charge);
  std::optional<Result<ShareToken>> export_slot_locked(VirtualAddress address, uint64_t size,
                                                       bool open_to_all) US_REQUIRES(mutex_);
  Result<ShareToken> open_again(uint32_t number, const ShareDescription& wanted);

  Result<Block*> import(ShareToken token, ShareKind kind, unsigned device, Times times,
                        PhysicalMemory::Begins begins, ShareView& view);
  // What is needed to see a share: the exporter's leave, if not all may, and its store.
  Result<void> prepare(ShareToken token, const ShareView& view);
  Result<std::optional<StoreFiles>> obtain(ShareToken token, const ShareView& view,
                                           bool wants_store) const;
  Result<StoreFiles> fetch_directly(const ShareView& view) const;
  Result<std::optional<StoreFiles>> ask_owner(ShareToken token, const ShareView& view,
                                              bool wants_store) const;
  Result<void> converse(ProcessTag owner, ShareRequest request, platform::Message& answer,
                        Deadline deadline) const;
  bool hears_answer(int connection, ProcessTag owner, platform::Message& answer,
                    Deadline deadline) const;
  Result<Extent> open_locked(const ShareView& view) US_REQUIRES(mutex_);
  BlockTraits traits_of(const ShareView& view, unsigned device) const;
  bool has_handle_locked(uint32_t share) const US_REQUIRES(mutex_);
  // Nothing of this process refers to an imported share any more.
  void release_locked(uint32_t share, const Imported& import) US_REQUIRES(mutex_);
  void discard_unheld(ProcessTag owner);
  void discard_part(const Imported& import);
  Error unknown_share() const;

  // Ends this process's hold on a share that it exported. True: its memory is its own again. False:
  // others have it, and it is in left_.
  bool leave_locked(uint32_t share, const Left& left) US_REQUIRES(mutex_);
  // Ends a hold, now or when the ledger lets it. What is left of it then; nothing if it is not now.
  std::optional<AfterDrop> drop_locked(uint32_t share) US_REQUIRES(mutex_);
  void close_locked(Block& block) US_REQUIRES(mutex_);
  void close_token_locked(ShareToken token) US_REQUIRES(mutex_);
  void give_back(const Left& left);
  // Stores of a process that were attached for an import that failed.
  void forget_unused(const StoreName& name);

  // AttendantClient
  std::vector<int> answer(const ShareRequest& request, const platform::SocketPeer& peer,
                          ShareAnswer& answer) override;
  void note_end(ProcessTag process) override;

  Ledger& ledger_;
  Capacity& capacity_;
  StorageSet& storages_;
  PhysicalMemory& physical_;
  DeviceMemory& allocations_;
  mutable ShareTable table_;
  OwnStores own_stores_;
  ForeignStores foreign_stores_;
  Whitelist whitelist_;
  mutable Mutex mutex_{LockRank::kSharing};
  std::unordered_map<uint32_t, Left> left_ US_GUARDED_BY(mutex_);
  std::unordered_map<uint32_t, Imported> imported_ US_GUARDED_BY(mutex_);
  std::unordered_map<VirtualAddress, uint32_t> slots_ US_GUARDED_BY(mutex_);  // exported ones
  // What the ledger, locked for too long, did not take: to be said again.
  std::vector<uint32_t> undropped_ US_GUARDED_BY(mutex_);
  std::vector<ShareToken> unclosed_ US_GUARDED_BY(mutex_);
  Attendant attendant_;  // last: its thread uses all of the above
};

}  // namespace understudy
