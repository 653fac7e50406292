// SPDX-License-Identifier: Apache-2.0
#include "memory/backing_pools.h"

#include <algorithm>
#include <optional>

#include "platform/host_facts.h"

namespace understudy {

namespace {

HostBudget::Kind budget_kind(const Settings& settings) {
  if (settings.host_budget_unlimited) return HostBudget::Kind::kUnlimited;
  return settings.host_budget ? HostBudget::Kind::kFixed : HostBudget::Kind::kMachine;
}

// A backing file is several times larger than its device, so that it has a hole for every size.
constexpr uint64_t kStorePerMemory = 4;

// Where the address space is limited, the program needs some of it as well.
uint64_t file_size(uint64_t memory) {
  const uint64_t share = align_down(platform::address_space_limit() / 8, kGranule);
  return std::max(std::min(memory * kStorePerMemory, share), kGranule);
}

}  // namespace

BackingPools::BackingPools(const Settings& settings, const Server& server)
    : budget_(budget_kind(settings), settings.host_budget.value_or(0), &server),
      server_(server),
      node_options_(options_for("understudy-host-numa", settings)),
      decay_([](void* self) { return static_cast<BackingPools*>(self)->give_back_idle(); }, this) {
  for (unsigned device = 0; device < settings.devices; ++device) {
    ExtentAllocatorOptions options =
        options_for("understudy-device-" + std::to_string(device), settings);
    options.is_written_by_transfers =
        !settings.cpu_sees_devices() && settings.poison == Poison::kOff;
    devices_.push_back(std::make_unique<ExtentAllocator>(std::move(options), budget_));
  }
  host_ = std::make_unique<ExtentAllocator>(options_for("understudy-host", settings), budget_);
}

ExtentAllocatorOptions BackingPools::options_for(std::string name, const Settings& settings) {
  return {.name = std::move(name),
          .file_size = file_size(settings.memory),
          .backing = settings.backing,
          .poison = settings.poison,
          .numa_node = std::nullopt,
          .slots = &server_.slots(),
          .figures = &server_.figures(),
          .max_free_committed = std::nullopt,
          .decay = &decay_};
}

void BackingPools::remove_cache(MemoryCache& cache) {
  decay_.end();
  std::erase(caches_, &cache);
}

ExtentAllocator& BackingPools::of(Location location) {
  switch (location.kind) {
    case LocationKind::kDevice:
      return *devices_[location.id];
    case LocationKind::kHost:
      return *host_;
    case LocationKind::kHostNuma:
    case LocationKind::kManaged:  // has no extents
      break;
  }
  MutexLock lock(mutex_);
  std::unique_ptr<ExtentAllocator>& node = nodes_[location.id];
  if (node == nullptr) {
    ExtentAllocatorOptions options = node_options_;
    options.numa_node = location.id;
    node = std::make_unique<ExtentAllocator>(std::move(options), budget_);
  }
  return *node;
}

Result<Extent> BackingPools::take(Location location, uint64_t size, PageKind kind) {
  ExtentAllocator& storage = of(location);
  Result<Extent> extent = storage.take(size, kind);
  if (extent.ok()) return extent;
  relieve_pressure();
  return storage.take(size, kind);
}

Result<void> BackingPools::commit(BackingFile& backing, uint64_t offset, uint64_t size) {
  check_no_lock_held("host memory is obtained");
  Result<void> committed = backing.commit(offset, size);
  if (committed.ok() || committed.error().code() != ErrorCode::kOutOfMemory) return committed;
  relieve_pressure();
  return backing.commit(offset, size);
}

template <typename Visit>
void BackingPools::for_each_allocator(Visit visit) {
  visit(*host_);
  for (const std::unique_ptr<ExtentAllocator>& device : devices_) visit(*device);
  for (std::optional<uint32_t> last;;) {
    ExtentAllocator* node = nullptr;
    {
      MutexLock lock(mutex_);
      const auto next = last ? nodes_.upper_bound(*last) : nodes_.begin();
      if (next == nodes_.end()) return;
      last = next->first;
      node = next->second.get();
    }
    visit(*node);
  }
}

void BackingPools::relieve_pressure() {
  // One thread at a time: what another one is giving back right now counts as well.
  MutexLock relief(relief_mutex_);
  for (MemoryCache* const cache : caches_) cache->trim();
  for_each_allocator([](ExtentAllocator& allocator) { allocator.trim(); });
}

void BackingPools::trim(Location location) {
  MutexLock relief(relief_mutex_);
  of(location).trim();
}

bool BackingPools::give_back_idle() {
  // A thread that runs short meanwhile waits for what is on its way.
  MutexLock relief(relief_mutex_);
  bool keeps = false;
  for (MemoryCache* const cache : caches_) keeps |= cache->give_back_idle();
  for_each_allocator([&](ExtentAllocator& allocator) { keeps |= allocator.give_back_idle() > 0; });
  return keeps;
}

}  // namespace understudy
