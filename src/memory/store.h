// SPDX-License-Identifier: Apache-2.0
//
// A store: one sparse memory file and one private window ("alias") onto all of it, where the copy
// engine finds the bytes of device memory. Far larger than what will ever be used of it.
//
// The warming gate: a granule is cold until its first use, then warming while one thread gets host
// memory for it, then warm until it is chilled. Cold granules cost nothing and read as fresh
// memory. Getting host memory may fail, with an Error and never with a signal.
//
// Other processes may attach to a store and see parts of it. The states of the granules are in
// memory that all of them have, with who put host memory behind each; a process that dies at it
// leaves the granule to the next one who needs it.
//
// Any thread may call anything; who owns which part of the store is Storage's affair. A store's
// windows and descriptors are not inherited by fork children.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "base/virtual_range.h"
#include "device/ledger.h"
#include "device/settings.h"
#include "memory/granule_states.h"
#include "memory/host_budget.h"
#include "platform/memory_file.h"

namespace understudy {

// Bytes of device memory by what is behind them on the host.
struct HostBacking {
  uint64_t small_pages = 0;  // 4 KiB pages
  uint64_t collapsed = 0;    // 2 MiB pages without a pool
  uint64_t pool_2m = 0;      // pages of the hugetlb pools
  uint64_t pool_1g = 0;

  uint64_t total() const { return small_pages + collapsed + pool_2m + pool_1g; }
};

struct StoreOptions {
  platform::FileKind kind = platform::FileKind::kShared;
  const char* name = "understudy";
  bool collapse = true;  // try 2 MiB pages without a pool
  Poison poison = Poison::kOff;
  std::optional<unsigned> numa_node;
  const Ledger* ledger = nullptr;  // knows the processes that may attach; null: there are none
};

class Store {
 public:
  // `size` is a multiple of the pages of that kind, and of 2 MiB. Outlived by `budget`.
  static Result<std::unique_ptr<Store>> create(const StoreOptions& options, uint64_t size,
                                               HostBudget& budget);
  // Another process's store. Nothing of it can be seen until it is shown.
  static Result<std::unique_ptr<Store>> attach(const StoreOptions& options,
                                               platform::MemoryFile file,
                                               platform::MemoryFile states, HostBudget& budget);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  uint64_t size() const { return alias_.size; }
  const platform::MemoryFile& file() const { return file_; }
  const platform::MemoryFile& states_file() const { return states_.file(); }
  platform::FileKind kind() const { return file_.kind(); }
  VirtualAddress alias(uint64_t offset) const { return alias_.base + offset; }
  // The pages the file is made of set the alignment of what may be mapped from it.
  uint64_t alignment() const;

  GranuleState state_at(uint64_t offset) const { return states_.at(offset >> kGranuleShift); }
  bool is_warm_at(uint64_t offset) const { return is_warm(state_at(offset)); }
  bool is_all_warm(uint64_t offset, uint64_t size) const;
  // What a cold granule reads as.
  uint8_t fresh_byte() const { return options_.poison == Poison::kOn ? kPoisonByte : 0; }

  // Makes every granule that the range touches warm. Waits for threads that warm some of it.
  // On failure some granules of the range may be warm.
  Result<void> warm(uint64_t offset, uint64_t size);
  // Hugetlb stores: sets pages aside for the cold granules of the range.
  Result<void> set_aside(uint64_t offset, uint64_t size);
  // Gives the host memory of a range back. The range is a multiple of the granule.
  // REQUIRES: no one uses the range.
  void chill(uint64_t offset, uint64_t size);
  // Overwrites the warm part of a range, of any size, with the poison pattern, as it is in the cold
  // part.
  void refresh(uint64_t offset, uint64_t size);

  // Attached stores: parts of it, in whole granules, can be seen or no longer are.
  Result<void> show(uint64_t offset, uint64_t size);
  void hide(uint64_t offset, uint64_t size);

  // What this process put behind it.
  HostBacking backing() const;
  uint64_t warm_bytes_in(uint64_t offset, uint64_t size) const;

  static constexpr uint8_t kPoisonByte = 0xA5;

 private:
  Store(const StoreOptions& options, platform::MemoryFile file, GranuleStates states,
        VirtualRange alias, HostBudget& budget);

  uint64_t claim_run(uint64_t first, uint64_t end);
  Result<GranuleState> commit(uint64_t first, uint64_t end);
  void publish(uint64_t first, uint64_t end, GranuleState state);
  // This process no longer has anything behind a granule.
  void discount(GranuleState state);
  std::atomic<uint64_t>& count_of(GranuleState state);

  const StoreOptions options_;
  platform::MemoryFile file_;
  const VirtualRange alias_;
  HostBudget& budget_;
  GranuleStates states_;
  std::atomic<bool> collapse_works_;
  // Granules of this process by state, for people.
  std::atomic<uint64_t> small_{0};
  std::atomic<uint64_t> collapsed_{0};
  std::atomic<uint64_t> pool_{0};
};

}  // namespace understudy
