// SPDX-License-Identifier: Apache-2.0
//
// All extent allocators of the process, one per device, one for the host and one per NUMA node that
// is asked for, and the host budget they share. Committing through here gives memory that is only
// cached back to the system before it says that there is none; free memory that nothing asks for
// goes back within seconds. Any thread may call anything.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "device/location.h"
#include "device/settings.h"
#include "memory/decay.h"
#include "memory/extent_allocator.h"
#include "memory/host_budget.h"
#include "server/server.h"

namespace understudy {

// Keeps memory that is not in use for the next allocation.
class MemoryCache {
 public:
  virtual ~MemoryCache() = default;
  // Gives it back. Called under pressure, from any thread, with locks down to kRelief held.
  virtual void trim() = 0;
  // Gives back what was kept during the whole time since the last call. Returns whether something
  // is kept still. Called by the thread of Decay, which is woken when something is kept.
  virtual bool give_back_idle() { return false; }
};

class BackingPools {
 public:
  // The server knows the processes that may attach to backing files.
  BackingPools(const Settings& settings, const Server& server);

  // From now on the cache is asked when memory runs short. Before other threads use the set.
  void add_cache(MemoryCache& cache) { caches_.push_back(&cache); }
  // Memory stays where it is from now on. When no other thread uses the set any more.
  void remove_cache(MemoryCache& cache);

  // REQUIRES: the device or node exists.
  ExtentAllocator& of(Location location);

  Result<Extent> take(Location location, uint64_t size, PageKind kind);
  // May take long, and waits for a process that commits the same granules.
  // REQUIRES: the calling thread holds no lock; the range belongs to an extent that it keeps alive.
  Result<void> commit(BackingFile& backing, uint64_t offset, uint64_t size);

  // Gives all memory that is only cached back to the system.
  void relieve_pressure();
  // The same for free memory of one location. What is on its way back has arrived then, too.
  void trim(Location location);

  // For caches: woken when they keep memory.
  Decay& decay() { return decay_; }
  HostBudget& budget() { return budget_; }
  const HostBudget& budget() const { return budget_; }
  // What the process tells people of the host memory it has.
  const OwnFigures& figures() const { return server_.figures(); }

 private:
  ExtentAllocatorOptions options_for(std::string name, const Settings& settings);
  // Calls visit(allocator) for all of them; without a lock, which a NUMA node's would need.
  template <typename Visit>
  void for_each_allocator(Visit visit);
  // Gives back what was free for a while. Returns whether something is kept still.
  bool give_back_idle();

  HostBudget budget_;
  const Server& server_;
  const ExtentAllocatorOptions node_options_;
  std::vector<std::unique_ptr<ExtentAllocator>> devices_;
  std::unique_ptr<ExtentAllocator> host_;
  std::vector<MemoryCache*> caches_;
  Mutex relief_mutex_{LockRank::kRelief};
  Mutex mutex_{LockRank::kBackingPools};
  // Some are added, none is taken away.
  std::map<uint32_t, std::unique_ptr<ExtentAllocator>> nodes_ US_GUARDED_BY(mutex_);
  Decay decay_;  // ends before what it looks at
};

}  // namespace understudy
