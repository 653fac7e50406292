// SPDX-License-Identifier: Apache-2.0
//
// A backing file: one sparse memory file and one private window ("alias") onto all of it, where the
// copy engine finds the bytes of device memory. Far larger than what will ever be used of it.
//
// The commit gate: a granule is cold until its first use, then committing while one thread gets
// host memory for it, then committed until it is decommitted. Cold granules cost nothing and read
// as fresh memory. Getting host memory may fail, with an Error and never with a signal.
//
// A few bytes commit only the parts of the granule around them: the file's owner has it partial
// until a quarter of it is used, a range goes beyond it, or its parts are asked for again and
// again. Only whole granules are known as committed to those who ask no more.
//
// Other processes may attach to a backing file and see parts of it. The states of the granules are
// in memory that all of them have, with who put host memory behind each; a process that dies at it
// or does not get on leaves the granule to the next one that needs it (commit_states.h).
//
// Any thread may call anything; who owns which part of the backing file is ExtentAllocator's
// affair. A backing file's windows and descriptors are not inherited by fork children.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "base/virtual_range.h"
#include "base/zeroed_array.h"
#include "device/settings.h"
#include "memory/commit_states.h"
#include "memory/host_budget.h"
#include "platform/memory_file.h"
#include "server/process_slots.h"

namespace understudy {

// Bytes of device memory by what is behind them on the host.
struct HostBacking {
  uint64_t small_pages = 0;  // 4 KiB pages
  uint64_t collapsed = 0;    // 2 MiB pages without a pool
  uint64_t pool_2m = 0;      // pages of the hugetlb pools
  uint64_t pool_1g = 0;

  uint64_t total() const { return small_pages + collapsed + pool_2m + pool_1g; }
};

struct BackingFileOptions {
  platform::FileKind kind = platform::FileKind::kShared;
  const char* name = "understudy";
  bool collapse = true;  // try 2 MiB pages without a pool
  Poison poison = Poison::kOff;
  std::optional<unsigned> numa_node;
  const ProcessSlots* slots = nullptr;  // knows the processes that may attach; null: there are none
  const OwnFigures* figures = nullptr;  // hears of host memory; null: no one wants to know
};

class BackingFile {
 public:
  // `size` is a multiple of the pages of that kind, and of 2 MiB. Outlived by `budget`.
  static Result<std::unique_ptr<BackingFile>> create(const BackingFileOptions& options,
                                                     uint64_t size, HostBudget& budget);
  // Another process's backing file. Nothing of it can be seen until it is shown.
  static Result<std::unique_ptr<BackingFile>> attach(const BackingFileOptions& options,
                                                     platform::MemoryFile file,
                                                     platform::MemoryFile states,
                                                     HostBudget& budget);
  ~BackingFile();
  BackingFile(const BackingFile&) = delete;
  BackingFile& operator=(const BackingFile&) = delete;

  uint64_t size() const { return alias_.size; }
  const platform::MemoryFile& file() const { return file_; }
  const platform::MemoryFile& states_file() const { return states_.file(); }
  platform::FileKind kind() const { return file_.kind(); }
  VirtualAddress alias(uint64_t offset) const { return alias_.base + offset; }
  // The pages the file is made of set the alignment of what may be mapped from it.
  uint64_t alignment() const;

  CommitState state_at(uint64_t offset) const { return states_.at(offset >> kGranuleShift); }
  // Its state will be asked for soon.
  void prefetch_state(uint64_t offset) const { states_.prefetch(offset >> kGranuleShift); }
  bool is_committed_at(uint64_t offset) const { return is_committed(state_at(offset)); }
  bool is_all_committed(uint64_t offset, uint64_t size) const;
  // What a cold granule reads as.
  uint8_t fresh_byte() const { return options_.poison == Poison::kOn ? kPoisonByte : 0; }

  // How far the bytes from `offset` on, no more than `limit`, are all committed or all fresh.
  struct Run {
    uint64_t size;
    bool is_committed;
  };
  Run run_at(uint64_t offset, uint64_t limit) const;

  // Makes all of the range committed, and more around it: parts of a granule, or granules. Waits
  // for threads that commit some of it, and at most 5 s for other processes (kConnection). On
  // failure some of the range may be committed.
  Result<void> commit(uint64_t offset, uint64_t size);
  // Bytes of a granule that is not committed as a whole were read. Does nothing or commits it.
  void note_read(uint64_t offset);
  // Hugetlb backing files: sets pages aside for the cold granules of the range.
  Result<void> set_aside(uint64_t offset, uint64_t size);
  // Gives the host memory of a range back. The range is a multiple of the granule.
  // REQUIRES: no one uses the range.
  void decommit(uint64_t offset, uint64_t size);
  // The same for those of its granules that are committed in parts. Returns how many bytes that
  // were.
  uint64_t decommit_partial(uint64_t offset, uint64_t size);
  // Overwrites what is committed of a range, of any size, with the poison pattern, as it is in the
  // cold rest.
  void refill(uint64_t offset, uint64_t size);

  // Attached backing files: parts of it, in whole granules, can be seen or no longer are.
  Result<void> show(uint64_t offset, uint64_t size);
  void hide(uint64_t offset, uint64_t size);

  // What this process put behind it.
  HostBacking backing() const;
  uint64_t committed_bytes_in(uint64_t offset, uint64_t size) const;

  static constexpr uint8_t kPoisonByte = 0xA5;

 private:
  // What this process has behind a granule that is not committed as a whole.
  struct OwnParts {
    std::atomic<GranuleParts> parts;
    std::atomic<uint32_t> uses;  // of parts that had host memory already
  };

  BackingFile(const BackingFileOptions& options, platform::MemoryFile file, CommitStates states,
              VirtualRange alias, HostBudget& budget);

  GranuleParts few_parts_of(uint64_t offset, uint64_t size) const;
  bool is_used_often(uint64_t granule);
  bool is_worth_all(uint64_t granule, GranuleParts asked);
  Result<void> commit_parts(uint64_t granule, GranuleParts parts);
  Result<void> obtain_parts(uint64_t granule, GranuleParts parts);
  Result<void> commit_granules(uint64_t first, uint64_t end);
  Run run_in_granule(uint64_t offset) const;
  bool has_parts(uint64_t granule, GranuleParts parts) const {
    return is_committed(states_.at(granule)) || (states_.parts(granule) & parts) == parts;
  }
  uint64_t own_part_bytes(uint64_t first, uint64_t end) const;
  // What this process has behind parts counts no longer. Returns how much that was.
  uint64_t discount_parts(uint64_t granule);

  uint64_t claim_run(uint64_t first, uint64_t end, std::optional<ShortProcessTag> stalled);
  Result<CommitState> obtain_pages(uint64_t first, uint64_t end);
  template <typename Change>
  void change_bytes(uint64_t first, uint64_t end, Change change);
  void leave(uint64_t first, uint64_t end);
  void publish(uint64_t first, uint64_t end, CommitState state);
  bool is_cold(uint64_t granule) const {
    return !is_committed(states_.at(granule)) && states_.parts(granule) == 0;
  }
  // This process has put host memory behind bytes, or has it no longer.
  void count(CommitState state, int64_t bytes);
  // It no longer has anything behind a granule.
  void discount(CommitState state);
  std::atomic<uint64_t>& count_of(CommitState state);

  const BackingFileOptions options_;
  platform::MemoryFile file_;
  const VirtualRange alias_;
  HostBudget& budget_;
  CommitStates states_;
  std::atomic<bool> collapse_works_;
  // Of files of this process that consist of 4 KiB pages.
  std::optional<ZeroedArray<OwnParts>> own_parts_;
  // Bytes of this process by state, for people.
  std::atomic<uint64_t> small_{0};
  std::atomic<uint64_t> collapsed_{0};
  std::atomic<uint64_t> pool_{0};
};

}  // namespace understudy
