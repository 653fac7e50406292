// SPDX-License-Identifier: Apache-2.0
//
// What host memory is behind each granule of a backing file, and which process put it there, in
// memory that all processes share that have the backing file. One word per granule, changed by
// compare and exchange alone, so that of several who want to commit a granule one does.
//
// | state      | means                                        | another process may          |
// | kCold      | no host memory                               | claim it                     |
// | kCommitting| a process gets host memory for it            | take it over if that process |
// |            |                                              | is dead or does not get on   |
// | kFilling   | that process also changes its bytes, or      | take it over if that process |
// |            | gives host memory back that it could not use | is dead, else wait 5 s       |
// | kPartial   | host memory is behind some parts of it       | use those, or claim it       |
// | the others | host memory of that kind is behind it        | use it                       |
//
// Which parts have host memory is a word of its own, a bit each. They keep it and their bytes
// whatever becomes of the granule, until it is cold again; the rest reads as fresh memory.
//
// A process that was stopped while it committed may go on after another one has taken the granule
// over and written to it. To get host memory for a granule twice does no harm, so that is all it
// can have been at: before it changes a byte it has to turn the granule to kFilling, which fails
// once the granule is another process's, and so does settle().
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/deadline.h"
#include "base/result.h"
#include "base/sizes.h"
#include "platform/memory_file.h"
#include "platform/shared_mapping.h"
#include "server/process_slots.h"

namespace understudy {

enum class CommitState : uint8_t {
  kCold,
  kCommitting,
  kFilling,
  kPartial,
  kSmallPages,
  kCollapsed,
  kPool
};

constexpr bool is_committed(CommitState state) { return state >= CommitState::kSmallPages; }
constexpr bool is_in_progress(CommitState state) {
  return state == CommitState::kCommitting || state == CommitState::kFilling;
}

// Parts of a granule: the first one is the lowest bit.
using GranuleParts = uint64_t;
inline constexpr unsigned kPartsPerGranule = 64;
inline constexpr uint64_t kPartBytes = kGranule / kPartsPerGranule;
inline constexpr GranuleParts kAllParts = ~GranuleParts{0};

class CommitStates {
 public:
  // All cold. `slots` know which processes live; null: there is only this one.
  static Result<CommitStates> make(const char* name, uint64_t granules, const ProcessSlots* slots);
  // Those of another process.
  static Result<CommitStates> attach(platform::MemoryFile file, uint64_t granules,
                                     const ProcessSlots* slots);

  const platform::MemoryFile& file() const { return file_; }
  CommitState at(uint64_t granule) const {
    return state_of(words()[granule].load(std::memory_order_acquire));
  }
  // The state of a granule will be asked for soon.
  void prefetch(uint64_t granule) const { __builtin_prefetch(&words()[granule]); }
  // Whether this process put the memory there that is behind a granule.
  bool is_own(uint64_t granule) const { return is_own_word(words()[granule].load()); }

  // The parts that have host memory, of a granule that is not committed as a whole. Those of cold
  // granules are not looked at: that would cost host memory where nothing else does.
  GranuleParts parts(uint64_t granule) const {
    if (at(granule) == CommitState::kCold) return 0;
    return parts_words()[granule].load(std::memory_order_acquire);
  }

  // Takes a cold or partial granule, or one that a process died at, to commit it or more of it.
  // False if it is none of these.
  bool claim(uint64_t granule);
  // The same for a granule that `process` is committing, which does not get on. False if it is not.
  bool take_over(uint64_t granule, ShortProcessTag process);
  // For a granule that was claimed: from now on its bytes may be changed, and only a dead process's
  // granule is taken over. False if another process has taken it over.
  bool begin_fill(uint64_t granule);
  // Parts have host memory, and the bytes that they are to have.
  // REQUIRES: begin_fill(granule) was true.
  void add_parts(uint64_t granule, GranuleParts parts);
  // What became of a granule that was claimed. False if another process has taken it over.
  bool settle(uint64_t granule, CommitState state);
  // The other process that is at a granule, if a live one is.
  std::optional<ShortProcessTag> committing_process(uint64_t granule) const;
  // Sleeps until another thread or process has committed a granule, or a little while.
  void wait(uint64_t granule) const;
  // Makes a granule cold. Whether the memory of all of it was this process's.
  bool decommit(uint64_t granule);
  // The memory behind a granule counts as nobody's. False if it was not this process's.
  bool disown(uint64_t granule);

 private:
  // The state, whether someone sleeps on it, and the process.
  static constexpr uint32_t kWaited = 8;
  static constexpr unsigned kProcessShift = 4;
  static_assert(kProcessShift + ShortProcessTag::kBits <= 32);

  CommitStates(platform::MemoryFile file, platform::SharedMapping mapping, uint64_t granules,
               const ProcessSlots* slots);
  static constexpr CommitState state_of(uint32_t word) {
    return static_cast<CommitState>(word & (kWaited - 1));
  }
  uint32_t word_of(CommitState state) const {
    return static_cast<uint32_t>(state) | own_ << kProcessShift;
  }
  bool is_own_word(uint32_t word) const { return word >> kProcessShift == own_; }
  // Whether this process is at the granule.
  bool is_own_claim(uint32_t word) const {
    return is_in_progress(state_of(word)) && is_own_word(word);
  }
  bool is_abandoned(uint32_t word) const;
  std::atomic<uint32_t>* words() const {
    return reinterpret_cast<std::atomic<uint32_t>*>(mapping_.data());
  }
  std::atomic<GranuleParts>* parts_words() const {
    return reinterpret_cast<std::atomic<GranuleParts>*>(mapping_.data() + parts_begin_);
  }

  platform::MemoryFile file_;
  platform::SharedMapping mapping_;
  uint64_t parts_begin_;  // behind the words
  const ProcessSlots* slots_;
  uint32_t own_;  // tag of this process
};

// The waits of one commit for other processes: short ones until a process shows that it does not
// get on, and 5 s in all. Of one thread.
class CommitWait {
 public:
  explicit CommitWait(const CommitStates& states) : states_(states) {}

  // Sleeps until a granule that this thread could not claim may have changed. An error if it has
  // waited too long.
  Result<void> wait(uint64_t granule);
  // The process that did not get on while this thread waited for it last.
  std::optional<ShortProcessTag> stalled() const { return stalled_; }

 private:
  const CommitStates& states_;
  std::optional<Deadline> end_;  // of all waits for other processes
  std::optional<ShortProcessTag> stalled_;
  // What it waits for, and when that has taken too long.
  uint64_t granule_ = 0;
  std::optional<ShortProcessTag> process_;
  Deadline patience_;
};

}  // namespace understudy
