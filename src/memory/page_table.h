// SPDX-License-Identifier: Apache-2.0
//
// The software MMU's translation table: device address -> PageEntry, for 48-bit addresses.
// A root entry covers 1 GiB and is empty, or the entry of a mapping that covers all of it, or leads
// to a leaf of 512 entries of 2 MiB. Leaves are made on demand and never taken away. What was
// entered once leaves a mark, so that a stale address can be told from one that never was.
//
// Looking up is lock-free and may run at any time. Changes to one range come from one thread at a
// time (the lock of the reservation that owns the range); ranges are multiples of 2 MiB.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "base/virtual_range.h"
#include "base/zeroed_array.h"
#include "memory/page_entry.h"

namespace understudy {

class PageTable {
 public:
  static constexpr unsigned kAddressBits = 48;
  static constexpr VirtualAddress kEnd = VirtualAddress{1} << kAddressBits;

  PageTable() : root_(kRootEntries) {}
  ~PageTable();
  PageTable(const PageTable&) = delete;
  PageTable& operator=(const PageTable&) = delete;

  // A look at an entry, which remembers its word: a second look need not begin at the root, as
  // leaves are never taken away.
  class Look {
   public:
    PageEntry entry() const { return entry_; }
    // Whether the entry is still that. The committed bit may have been set meanwhile; everything
    // else must be as it was. REQUIRES: it is present.
    [[gnu::always_inline]] bool still_holds() const {
      const PageEntry now(word_->load(std::memory_order_seq_cst));
      return now.advanced(granule_).with_committed() == entry_.with_committed();
    }

   private:
    friend class PageTable;
    Look() = default;
    Look(const std::atomic<uint64_t>& word, uint64_t granule, PageEntry entry)
        : word_(&word), granule_(granule), entry_(entry) {}

    const std::atomic<uint64_t>* word_ = nullptr;
    uint64_t granule_ = 0;  // in an entry that covers a whole GiB
    PageEntry entry_;
  };

  // At the granule that holds the address. The entry is not present if there is none, and then the
  // mark of one that has ended.
  [[gnu::always_inline]] Look look_at(VirtualAddress address) const {
    if (address >= kEnd) return {};
    const std::atomic<uint64_t>& root = root_[address / kGiB];
    const uint64_t seen = root.load(std::memory_order_seq_cst);
    const uint64_t granule = granule_in_root(address);
    if (PageEntry(seen).present()) return {root, granule, PageEntry(seen).advanced(granule)};
    if (!leads_to_leaf(seen)) return {root, 0, PageEntry(seen)};
    const std::atomic<uint64_t>& word = leaf_of(seen)->entries[granule];
    return {word, 0, PageEntry(word.load(std::memory_order_seq_cst))};
  }
  [[gnu::always_inline]] PageEntry look_up(VirtualAddress address) const {
    return look_at(address).entry();
  }

  // The entry of the granule that holds the address will be changed soon.
  void prefetch(VirtualAddress address) const {
    if (address >= kEnd) return;
    const uint64_t root = root_[address / kGiB].load(std::memory_order_acquire);
    if (PageEntry(root).present() || !leads_to_leaf(root)) return;
    __builtin_prefetch(&leaf_of(root)->entries[granule_in_root(address)], 1);
  }

  // Calls visit(address of the granule) for the granules of a range that have an entry. Leaves out
  // all but the first granule of an entry that covers a whole GiB.
  template <typename Visit>
  void for_each(VirtualRange range, Visit visit) const;
  // Whether no granule of the range has an entry.
  bool is_empty(VirtualRange range) const;
  // Makes the leaves that set() will need, so that set() cannot fail.
  void prepare(VirtualRange range);
  // Enters a range. `first` is the entry of its first granule; is_committed(n) tells whether the
  // n-th granule is known to be committed. REQUIRES: prepare(range) was called, the range is empty.
  template <typename IsCommitted>
  void set(VirtualRange range, PageEntry first, IsCommitted is_committed);
  // Ends the entries of a range. Look-ups that begin afterwards find marks.
  void clear(VirtualRange range);
  // Lets the owner read and write a range that is entered without access.
  void grant_owner_access(VirtualRange range);
  // Notes that the granule at the address is committed. No effect if its entry is no longer `seen`,
  // or if the entry stands for a whole GiB that is not committed throughout: whole_is_committed()
  // is asked then.
  template <typename WholeIsCommitted>
  void note_committed(VirtualAddress address, PageEntry seen, WholeIsCommitted whole_is_committed);

 private:
  static constexpr uint64_t kLeafEntries = kGiB / kGranule;
  static constexpr uint64_t kRootEntries = kEnd / kGiB;

  struct Leaf {
    std::atomic<uint64_t> entries[kLeafEntries] = {};
  };
  // Of a root entry that is not present.
  static bool leads_to_leaf(uint64_t root) { return root > PageEntry::ended().word(); }
  static Leaf* leaf_of(uint64_t root) {
    return reinterpret_cast<Leaf*>(root);  // NOLINT(performance-no-int-to-ptr)
  }
  static uint64_t granule_in_root(VirtualAddress address) {
    return address / kGranule % kLeafEntries;
  }

  // Calls visit(root entry, part of the range that it covers) from front to back.
  template <typename Table, typename Visit>
  static void for_each_root(Table& root, VirtualRange range, Visit visit) {
    for (VirtualAddress at = range.base; at < range.end();) {
      const VirtualAddress next = std::min(align_down(at, kGiB) + kGiB, range.end());
      visit(root[at / kGiB], VirtualRange{at, next - at});
      at = next;
    }
  }
  template <typename Change>
  void change_entries(VirtualRange range, Change change);

  ZeroedArray<std::atomic<uint64_t>> root_;
};

template <typename Visit>
void PageTable::for_each(VirtualRange range, Visit visit) const {
  for_each_root(root_, range, [&](const std::atomic<uint64_t>& entry, VirtualRange part) {
    const uint64_t root = entry.load(std::memory_order_acquire);
    if (PageEntry(root).present()) {
      visit(part.base);
      return;
    }
    if (!leads_to_leaf(root)) return;
    for (VirtualAddress at = part.base; at < part.end(); at += kGranule) {
      const auto& granule = leaf_of(root)->entries[granule_in_root(at)];
      if (PageEntry(granule.load(std::memory_order_relaxed)).present()) visit(at);
    }
  });
}

template <typename WholeIsCommitted>
void PageTable::note_committed(VirtualAddress address, PageEntry seen,
                               WholeIsCommitted whole_is_committed) {
  std::atomic<uint64_t>& root = root_[address / kGiB];
  uint64_t word = root.load(std::memory_order_acquire);
  if (PageEntry(word).present()) {
    if (PageEntry(word).advanced(granule_in_root(address)) == seen && whole_is_committed()) {
      root.compare_exchange_strong(word, PageEntry(word).with_committed().word());
    }
    return;
  }
  if (!leads_to_leaf(word)) return;
  uint64_t expected = seen.word();
  leaf_of(word)->entries[granule_in_root(address)].compare_exchange_strong(
      expected, seen.with_committed().word());
}

template <typename IsCommitted>
void PageTable::set(VirtualRange range, PageEntry first, IsCommitted is_committed) {
  for_each_root(root_, range, [&](std::atomic<uint64_t>& root, VirtualRange part) {
    const uint64_t begin = (part.base - range.base) / kGranule;
    const uint64_t count = part.size / kGranule;
    const auto entry_of = [&](uint64_t n) {
      const PageEntry entry = first.advanced(n);
      return (is_committed(n) ? entry.with_committed() : entry).word();
    };
    const uint64_t leaf = root.load(std::memory_order_acquire);
    if (!leads_to_leaf(leaf)) {
      bool all_committed = true;
      for (uint64_t n = begin; n < begin + count && all_committed; ++n)
        all_committed = is_committed(n);
      const PageEntry entry = first.advanced(begin);
      root.store((all_committed ? entry.with_committed() : entry).word(),
                 std::memory_order_release);
      return;
    }
    for (uint64_t n = 0; n < count; ++n) {
      leaf_of(leaf)->entries[granule_in_root(part.base) + n].store(entry_of(begin + n),
                                                                   std::memory_order_release);
    }
  });
}

}  // namespace understudy
