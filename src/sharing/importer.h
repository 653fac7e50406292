// SPDX-License-Identifier: Apache-2.0
//
// What this process imports: blocks of other processes, and memory behind keys, also its own.
// An import finds the share, gets the exporter's leave and its backing file, takes a hold on the
// share and commits; it holds no lock while it waits for another process. The hold is given up when
// no block refers to it any more. Rules: SHARE, IPC. Any thread may call anything.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/deadline.h"
#include "base/mutex.h"
#include "base/result.h"
#include "server/share_table.h"
#include "sharing/exported_backing_files.h"
#include "sharing/process_memory.h"
#include "sharing/release_queue.h"
#include "sharing/remote_backing_files.h"
#include "sharing/share_client.h"
#include "sharing/share_lookup.h"
#include "sharing/share_server.h"

namespace understudy {

// Whether a device can use memory of other devices.
enum class DeviceReach : uint8_t { kOwnMemory, kAllDevices };

struct ImportRequest {
  ShareName name;
  unsigned device = 0;  // of this process, which is to use the memory
  DeviceReach reach = DeviceReach::kAllDevices;
};

// What an import found. The device is the one that the memory is on, if this process sees it.
struct ImportedBlock {
  BlockHandle handle = 0;
  std::optional<unsigned> device;
};
struct ImportedAllocation {
  VirtualAddress address = 0;
  std::optional<unsigned> device;
};

class Importer {
 public:
  Importer(Server& server, const ProcessMemory& memory, ShareTable& table, ReleaseQueue& holds,
           const ExportedBackingFiles& exported_files, ShareServer& share_server)
      : server_(server),
        memory_(memory),
        table_(table),
        holds_(holds),
        exported_files_(exported_files),
        share_server_(share_server),
        client_(server),
        files_(server, memory.pools.budget()) {}

  // A block of another process. Once at a time.
  Result<ImportedBlock> import_block(const ImportRequest& request, Deadline deadline);
  // Memory behind a key, at an address of its own each time.
  Result<ImportedAllocation> import_allocation(const ImportRequest& request, Deadline deadline);

  // An imported block has ended. See ShareHooks.
  void on_import_unreferenced(const Block& block) noexcept;
  // This process no longer holds a share that another process has exported.
  void on_released(uint32_t number, AfterDrop after) noexcept;
  // A process from which this one may have imported has ended: what no process holds of its memory
  // goes back to the system. False if the ledger was busy.
  bool on_process_ended(ProcessTag process);

 private:
  // The import of a share, one for all blocks that came from it.
  struct Import {
    bool is_own = false;        // exported by this very process
    bool is_held = false;       // by this process, which the ledger knows
    bool is_releasing = false;  // on the release queue, or given up a moment ago
    unsigned starting = 0;      // threads that are importing it
    bool is_shown = false;      // then the extent can be seen
    bool is_whole = false;      // has its granules for itself
    ProcessTag owner;
    RemoteBackingFiles::Use file;
    Extent extent;
    std::vector<Block*> blocks;
  };
  // By number of the share; several if some of them are releasing, the oldest first.
  using Imports = std::multimap<uint32_t, Import>;
  enum class Times : uint8_t { kOnce, kOften };
  class Start;

  struct Found {
    Block* block;
    ShareView view;
    std::optional<unsigned> device;
  };
  Result<Found> import(const ImportRequest& request, Times times, PhysicalMemory::Begins begins,
                       Deadline deadline);
  Result<RemoteBackingFiles::Use> attach(ShareToken token, const ShareView& view,
                                         Deadline deadline);
  Result<Block*> commit(Import& import, const ShareView& view, RemoteBackingFiles::Use file,
                        const ImportRequest& request, Times times, PhysicalMemory::Begins begins);
  Result<void> show_locked(Import& import, const ShareView& view, RemoteBackingFiles::Use file)
      US_REQUIRES(mutex_);
  BlockTraits traits_of(const ShareView& view, unsigned device) const;
  std::optional<unsigned> device_of(const ShareView& view) const;

  Imports::iterator active_locked(uint32_t number) US_REQUIRES(mutex_);
  Imports::iterator start_locked(uint32_t number) US_REQUIRES(mutex_);
  // Ends an import that nothing refers to.
  void end_if_unused_locked(Imports::iterator import) noexcept US_REQUIRES(mutex_);
  void discard(const Import& import) noexcept;
  void forget_if_unused(ProcessTag process) noexcept;

  Server& server_;
  const ProcessMemory memory_;
  ShareTable& table_;
  ReleaseQueue& holds_;
  const ExportedBackingFiles& exported_files_;
  ShareServer& share_server_;
  const ShareClient client_;
  RemoteBackingFiles files_;
  Mutex mutex_{LockRank::kImporter};
  Imports imports_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
