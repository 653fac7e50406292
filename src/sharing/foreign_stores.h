// SPDX-License-Identifier: Apache-2.0
//
// The stores of other processes that this one has attached to, each as long as something of it is
// in use. Of a store, only what was imported can be seen. Any thread may call anything.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "base/result.h"
#include "device/ledger.h"
#include "memory/storage.h"
#include "platform/memory_file.h"

namespace understudy {

// Which store of which process.
struct StoreName {
  ProcessTag owner;
  uint16_t number = 0;

  friend bool operator==(const StoreName&, const StoreName&) = default;
};

// What is needed to attach.
struct StoreFiles {
  StoreRecord record;
  platform::MemoryFile file;
  platform::MemoryFile states;
};

class ForeignStores {
 public:
  ForeignStores(const Ledger& ledger, HostBudget& budget) : ledger_(ledger), budget_(budget) {}

  bool has(const StoreName& name) const;
  // Does nothing if it is attached already.
  Result<void> attach(const StoreName& name, StoreFiles files);
  // Shows a part of a store, in whole granules, until it is closed as often as it was opened.
  // Nothing if the store is not attached.
  Result<std::optional<Extent>> open(const StoreName& name, uint64_t offset, uint64_t size);
  // The store goes with the last part. True then.
  bool close(const StoreName& name, const Extent& extent);
  // Gives the memory behind a part of a store back to the system, but for what is held.
  // Nothing happens if the store is not attached.
  struct Held {
    uint64_t offset;
    uint64_t size;
  };
  void discard(const StoreName& name, const std::vector<Held>& held);
  // The same for an extent that nobody holds.
  void discard_extent(const StoreName& name, const Extent& extent);
  // Detaches it if nothing of it is open. True then.
  bool detach_unused(const StoreName& name);
  bool has_any(ProcessTag owner) const;
  std::vector<uint16_t> numbers_of(ProcessTag owner) const;

 private:
  struct Attached {
    StoreName name;
    std::unique_ptr<Store> store;
    std::map<uint64_t, unsigned> shown;  // how often, by offset
  };

  Attached* find_locked(const StoreName& name) const US_REQUIRES(mutex_);

  const Ledger& ledger_;
  HostBudget& budget_;
  mutable Mutex mutex_{LockRank::kForeignStores};
  mutable std::list<Attached> stores_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
