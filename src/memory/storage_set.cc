// SPDX-License-Identifier: Apache-2.0
#include "memory/storage_set.h"

#include <algorithm>

#include "platform/host_facts.h"

namespace understudy {

namespace {

HostBudget::Kind budget_kind(const Settings& settings) {
  if (settings.host_budget_unlimited) return HostBudget::Kind::kUnlimited;
  return settings.host_budget ? HostBudget::Kind::kFixed : HostBudget::Kind::kMachine;
}

// A store is several times larger than its device, so that it has a hole for every size.
constexpr uint64_t kStorePerMemory = 4;

// Where the address space is limited, the program needs some of it as well.
uint64_t store_size(uint64_t memory) {
  const uint64_t share = align_down(platform::address_space_limit() / 8, kGranule);
  return std::max(std::min(memory * kStorePerMemory, share), kGranule);
}

}  // namespace

StorageSet::StorageSet(const Settings& settings, const Ledger& ledger)
    : budget_(budget_kind(settings), settings.host_budget.value_or(0)),
      ledger_(ledger),
      max_free_warm_(std::min(platform::total_memory() / 8, 2 * kGiB)),
      node_options_(options_for("understudy-host-numa", settings)) {
  for (unsigned device = 0; device < settings.devices; ++device) {
    devices_.push_back(std::make_unique<Storage>(
        options_for("understudy-device-" + std::to_string(device), settings), budget_));
  }
  host_ = std::make_unique<Storage>(options_for("understudy-host", settings), budget_);
}

StorageOptions StorageSet::options_for(std::string name, const Settings& settings) const {
  return {.name = std::move(name),
          .store_size = store_size(settings.memory),
          .backing = settings.backing,
          .poison = settings.poison,
          .numa_node = std::nullopt,
          .ledger = &ledger_,
          .max_free_warm = max_free_warm_};
}

Storage& StorageSet::of(Location location) {
  switch (location.kind) {
    case LocationKind::kDevice:
      return *devices_[location.id];
    case LocationKind::kHost:
      return *host_;
    case LocationKind::kHostNuma:
      break;
  }
  MutexLock lock(mutex_);
  std::unique_ptr<Storage>& node = nodes_[location.id];
  if (node == nullptr) {
    StorageOptions options = node_options_;
    options.numa_node = location.id;
    node = std::make_unique<Storage>(std::move(options), budget_);
  }
  return *node;
}

Result<Extent> StorageSet::take(Location location, uint64_t size, PageKind kind) {
  Storage& storage = of(location);
  Result<Extent> extent = storage.take(size, kind);
  if (extent.ok()) return extent;
  relieve_pressure();
  return storage.take(size, kind);
}

Result<void> StorageSet::warm(Store& store, uint64_t offset, uint64_t size) {
  Result<void> warmed = store.warm(offset, size);
  if (warmed.ok()) return warmed;
  relieve_pressure();
  return store.warm(offset, size);
}

void StorageSet::relieve_pressure() {
  // One thread at a time: what another one is giving back right now counts as well.
  MutexLock relief(relief_mutex_);
  for (MemoryCache* const cache : caches_) cache->trim();
  host_->trim();
  for (const std::unique_ptr<Storage>& device : devices_) device->trim();
  MutexLock lock(mutex_);
  for (const auto& [id, node] : nodes_) node->trim();
}

}  // namespace understudy
