// SPDX-License-Identifier: Apache-2.0
#include "sharing/foreign_stores.h"

#include <algorithm>

namespace understudy {

ForeignStores::Attached* ForeignStores::find_locked(const StoreName& name) const {
  for (Attached& each : stores_) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

bool ForeignStores::has(const StoreName& name) const {
  MutexLock lock(mutex_);
  return find_locked(name) != nullptr;
}

bool ForeignStores::has_any(ProcessTag owner) const { return !numbers_of(owner).empty(); }

std::vector<uint16_t> ForeignStores::numbers_of(ProcessTag owner) const {
  std::vector<uint16_t> numbers;
  MutexLock lock(mutex_);
  for (const Attached& each : stores_) {
    if (each.name.owner == owner) numbers.push_back(each.name.number);
  }
  return numbers;
}

Result<void> ForeignStores::attach(const StoreName& name, StoreFiles files) {
  MutexLock lock(mutex_);
  if (find_locked(name) != nullptr) return {};
  const StoreOptions options{.kind = static_cast<platform::FileKind>(files.record.file_kind),
                             .name = "understudy-import",
                             .collapse = true,
                             .poison = files.record.fresh_byte == 0 ? Poison::kOff : Poison::kOn,
                             .numa_node = std::nullopt,
                             .ledger = &ledger_};
  US_TRY_ASSIGN(std::unique_ptr<Store> store,
                Store::attach(options, std::move(files.file), std::move(files.states), budget_));
  stores_.push_back({name, std::move(store), {}});
  return {};
}

Result<std::optional<Extent>> ForeignStores::open(const StoreName& name, uint64_t offset,
                                                  uint64_t size) {
  const uint64_t first = align_down(offset, kGranule);
  const uint64_t bytes = *align_up(offset + size, kGranule) - first;
  MutexLock lock(mutex_);
  Attached* const attached = find_locked(name);
  if (attached == nullptr) return std::optional<Extent>();
  Store& store = *attached->store;
  unsigned& users = attached->shown[first];
  if (users == 0) {
    if (Result<void> shown = store.show(first, bytes); !shown.ok()) {
      attached->shown.erase(first);
      return shown.error();
    }
  }
  ++users;
  return std::optional(Extent{&store, first, bytes});
}

bool ForeignStores::close(const StoreName& name, const Extent& extent) {
  MutexLock lock(mutex_);
  Attached* const attached = find_locked(name);
  const auto shown = attached->shown.find(extent.offset);
  if (--shown->second == 0) {
    attached->store->hide(extent.offset, extent.size);
    attached->shown.erase(shown);
  }
  if (!attached->shown.empty()) return false;
  stores_.remove_if([&](const Attached& each) { return &each == attached; });
  return true;
}

bool ForeignStores::detach_unused(const StoreName& name) {
  MutexLock lock(mutex_);
  return stores_.remove_if(
             [&](const Attached& each) { return each.name == name && each.shown.empty(); }) > 0;
}

void ForeignStores::discard_extent(const StoreName& name, const Extent& extent) {
  MutexLock lock(mutex_);
  if (Attached* const attached = find_locked(name)) {
    attached->store->chill(extent.offset, extent.size);
  }
}

void ForeignStores::discard(const StoreName& name, const std::vector<Held>& held) {
  MutexLock lock(mutex_);
  const Attached* const attached = find_locked(name);
  if (attached == nullptr) return;
  Store& store = *attached->store;
  // From one held part to the next, in whole pages of the file.
  std::vector<Held> parts = held;
  std::sort(parts.begin(), parts.end(),
            [](const Held& a, const Held& b) { return a.offset < b.offset; });
  parts.push_back({store.size(), 0});
  uint64_t from = 0;
  for (const Held& part : parts) {
    const uint64_t until = align_down(part.offset, store.alignment());
    if (until > from) store.chill(from, until - from);
    from = std::max(from, *align_up(part.offset + part.size, store.alignment()));
  }
}

}  // namespace understudy
