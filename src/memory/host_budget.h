// SPDX-License-Identifier: Apache-2.0
//
// How much host memory this process may put behind device memory and page-locked host memory.
// Commits stop before the machine (or its memory cgroup) is full, because past that point the
// kernel answers with signals and killed processes instead of error codes. What is left is shared
// with the other processes of the server. Any thread may call anything.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "base/result.h"
#include "server/host_headroom.h"
#include "server/server.h"

namespace understudy {

class HostBudget {
 public:
  enum class Kind : uint8_t { kMachine, kFixed, kUnlimited };

  // `limit` counts for kFixed only, `server` for kMachine: the processes that share the machine;
  // null if there is this one alone.
  HostBudget(Kind kind, uint64_t limit, const Server* server = nullptr);
  ~HostBudget();
  HostBudget(const HostBudget&) = delete;
  HostBudget& operator=(const HostBudget&) = delete;

  // Where the bytes will come from. What a hugetlb pool has is not part of what the machine has.
  enum class Source : uint8_t { kMachine, kPool };

  // Asks for `bytes` before they are committed. Nothing is taken on failure.
  Result<void> take(uint64_t bytes, Source source);
  // The bytes of a take now exist, and the machine's own figures show it.
  void note_committed(uint64_t bytes, Source source);
  void give_back(uint64_t bytes);

  uint64_t taken() const;

 private:
  class Machine;

  const Kind kind_;
  const uint64_t limit_;
  const std::unique_ptr<Machine> machine_;  // of kMachine
  mutable Mutex mutex_{LockRank::kHostBudget};
  uint64_t taken_ US_GUARDED_BY(mutex_) = 0;
  std::optional<HostHeadroom> headroom_ US_GUARDED_BY(mutex_);  // of kMachine
};

}  // namespace understudy
