// SPDX-License-Identifier: Apache-2.0
//
// What host memory is behind each granule of a store, and which process put it there, in memory
// that all processes share that have the store. One word per granule, changed by compare and
// exchange alone, so that of several who want to warm a granule one does.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "device/ledger.h"
#include "platform/memory_file.h"
#include "platform/shared_mapping.h"

namespace understudy {

enum class GranuleState : uint8_t { kCold, kWarming, kSmallPages, kCollapsed, kPool };

constexpr bool is_warm(GranuleState state) { return state >= GranuleState::kSmallPages; }

class GranuleStates {
 public:
  // All cold. `ledger` knows which processes live; null: there is only this one.
  static Result<GranuleStates> make(const char* name, uint64_t granules, const Ledger* ledger);
  // Those of another process.
  static Result<GranuleStates> attach(platform::MemoryFile file, uint64_t granules,
                                      const Ledger* ledger);

  const platform::MemoryFile& file() const { return file_; }
  GranuleState at(uint64_t granule) const {
    return state_of(words()[granule].load(std::memory_order_acquire));
  }
  // Whether this process put the memory there that is behind a granule.
  bool is_own(uint64_t granule) const { return is_own_word(words()[granule].load()); }

  // Takes a cold granule, or one that a process died at, to warm it. False if it is neither.
  bool claim(uint64_t granule);
  // What became of a granule that was claimed.
  void settle(uint64_t granule, GranuleState state);
  // Sleeps until another thread or process has warmed a granule, or a little while.
  void wait(uint64_t granule) const;
  // Makes a warm granule cold. Whether its memory was this process's.
  bool chill(uint64_t granule);
  // The memory behind a granule counts as nobody's. False if it was not this process's.
  bool disown(uint64_t granule);

 private:
  // The state, whether someone sleeps on it, and the process.
  static constexpr uint32_t kWaited = 8;
  static constexpr unsigned kProcessShift = 4;
  static_assert(kProcessShift + ShortProcessTag::kBits <= 32);

  GranuleStates(platform::MemoryFile file, platform::SharedMapping mapping, const Ledger* ledger);
  static constexpr GranuleState state_of(uint32_t word) {
    return static_cast<GranuleState>(word & (kWaited - 1));
  }
  uint32_t word_of(GranuleState state) const {
    return static_cast<uint32_t>(state) | own_ << kProcessShift;
  }
  bool is_own_word(uint32_t word) const { return word >> kProcessShift == own_; }
  bool is_abandoned(uint32_t word) const;
  std::atomic<uint32_t>* words() const {
    return reinterpret_cast<std::atomic<uint32_t>*>(mapping_.data());
  }

  platform::MemoryFile file_;
  platform::SharedMapping mapping_;
  const Ledger* ledger_;
  uint32_t own_;  // tag of this process
};

}  // namespace understudy
