// SPDX-License-Identifier: Apache-2.0
//
// How much host memory this process may put behind device memory and page-locked host memory.
// Commits stop before the machine (or its memory cgroup) is full, because past that point the
// kernel answers with signals and killed processes instead of error codes. Any thread may call
// anything.
#pragma once

#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "base/result.h"

namespace understudy {

class HostBudget {
 public:
  enum class Kind : uint8_t { kMachine, kFixed, kUnlimited };

  // `limit` counts for kFixed only.
  HostBudget(Kind kind, uint64_t limit);

  // Where the bytes will come from. What a hugetlb pool has is not part of what the machine has.
  enum class Source : uint8_t { kMachine, kPool };

  // Asks for `bytes` before they are committed. Nothing is taken on failure.
  Result<void> take(uint64_t bytes, Source source);
  // The bytes of a take now exist, and the machine's own figures show it.
  void note_committed(uint64_t bytes, Source source);
  void give_back(uint64_t bytes);

  uint64_t taken() const;

 private:
  Result<void> ask_machine_locked(uint64_t bytes) US_REQUIRES(mutex_);

  const Kind kind_;
  const uint64_t limit_;
  const uint64_t reserve_;  // what stays free on the machine
  mutable Mutex mutex_{LockRank::kHostBudget};
  uint64_t taken_ US_GUARDED_BY(mutex_) = 0;
  uint64_t in_flight_ US_GUARDED_BY(mutex_) = 0;  // taken, not yet seen in the machine's figures
  // What may be taken before the machine is asked again: asking costs tens of microseconds.
  uint64_t allowance_ US_GUARDED_BY(mutex_) = 0;
};

}  // namespace understudy
