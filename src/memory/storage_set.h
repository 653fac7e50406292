// SPDX-License-Identifier: Apache-2.0
//
// All storages of the process, one per device, one for the host and one per NUMA node that is
// asked for, and the host budget they share. Warming through here gives memory that is only cached
// back to the system before it says that there is none. Any thread may call anything.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "device/location.h"
#include "device/settings.h"
#include "memory/host_budget.h"
#include "memory/storage.h"

namespace understudy {

// Whoever keeps memory that no one uses, for the next one who asks.
class MemoryCache {
 public:
  virtual ~MemoryCache() = default;
  // Gives it back. Called under pressure, from any thread, with locks down to kRelief held.
  virtual void trim() = 0;
};

class StorageSet {
 public:
  // The ledger knows the processes that may attach to stores.
  StorageSet(const Settings& settings, const Ledger& ledger);

  // From now on the cache is asked when memory runs short. Before other threads use the set.
  void add_cache(MemoryCache& cache) { caches_.push_back(&cache); }

  // REQUIRES: the device or node exists.
  Storage& of(Location location);

  Result<Extent> take(Location location, uint64_t size, PageKind kind);
  Result<void> warm(Store& store, uint64_t offset, uint64_t size);

  // Gives all memory that is only cached back to the system.
  void relieve_pressure();

  HostBudget& budget() { return budget_; }
  const HostBudget& budget() const { return budget_; }
  // How much memory a storage or a cache may keep for the next one who asks.
  uint64_t max_free_warm() const { return max_free_warm_; }

 private:
  StorageOptions options_for(std::string name, const Settings& settings) const;

  HostBudget budget_;
  const Ledger& ledger_;
  const uint64_t max_free_warm_;  // per storage
  const StorageOptions node_options_;
  std::vector<std::unique_ptr<Storage>> devices_;
  std::unique_ptr<Storage> host_;
  std::vector<MemoryCache*> caches_;
  Mutex relief_mutex_{LockRank::kRelief};
  Mutex mutex_{LockRank::kStorageSet};
  std::map<uint32_t, std::unique_ptr<Storage>> nodes_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
