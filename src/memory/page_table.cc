// SPDX-License-Identifier: Apache-2.0
#include "memory/page_table.h"

#include <memory>

namespace understudy {

PageTable::~PageTable() {
  for (uint64_t i = 0; i < kRootEntries; ++i) {
    const uint64_t root = root_[i].load(std::memory_order_relaxed);
    if (!PageEntry(root).present() && leads_to_leaf(root)) delete leaf_of(root);
  }
}

bool PageTable::is_empty(VirtualRange range) const {
  bool empty = true;
  for_each_root(root_, range, [&](const std::atomic<uint64_t>& entry, VirtualRange part) {
    const uint64_t root = entry.load(std::memory_order_acquire);
    if (PageEntry(root).present()) empty = false;
    if (!empty || !leads_to_leaf(root)) return;
    const uint64_t begin = granule_in_root(part.base);
    for (uint64_t n = begin; n < begin + part.size / kGranule && empty; ++n) {
      empty = !PageEntry(leaf_of(root)->entries[n].load(std::memory_order_relaxed)).present();
    }
  });
  return empty;
}

void PageTable::prepare(VirtualRange range) {
  for_each_root(root_, range, [&](std::atomic<uint64_t>& entry, VirtualRange part) {
    uint64_t root = entry.load(std::memory_order_acquire);
    if (part.size == kGiB || PageEntry(root).present() || leads_to_leaf(root)) return;
    auto leaf = std::make_unique<Leaf>();
    if (PageEntry(root).has_ended()) {
      for (auto& granule : leaf->entries) granule.store(root, std::memory_order_relaxed);
    }
    // Small reservations share a root entry, so another thread may install the leaf first.
    if (entry.compare_exchange_strong(root, reinterpret_cast<uint64_t>(leaf.get()))) {
      (void)leaf.release();
    }
  });
}

template <typename Change>
void PageTable::change_entries(VirtualRange range, Change change) {
  for_each_root(root_, range, [&](std::atomic<uint64_t>& entry, VirtualRange part) {
    const uint64_t root = entry.load(std::memory_order_acquire);
    if (PageEntry(root).present()) {
      change(entry);
      return;
    }
    if (!leads_to_leaf(root)) return;
    const uint64_t begin = granule_in_root(part.base);
    for (uint64_t n = begin; n < begin + part.size / kGranule; ++n) {
      change(leaf_of(root)->entries[n]);
    }
  });
}

void PageTable::clear(VirtualRange range) {
  // Sequentially consistent: the hazard pointers are scanned next, and a reader publishes there
  // before it reads an entry for the second time.
  change_entries(range,
                 [](std::atomic<uint64_t>& entry) { entry.exchange(PageEntry::ended().word()); });
}

void PageTable::grant_owner_access(VirtualRange range) {
  // Readers may set the committed bit meanwhile.
  change_entries(range, [](std::atomic<uint64_t>& entry) {
    entry.fetch_or(PageEntry().with_owner_access().word(), std::memory_order_acq_rel);
  });
}

}  // namespace understudy
