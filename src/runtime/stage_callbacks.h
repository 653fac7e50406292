// SPDX-License-Identifier: Apache-2.0
//
// Functions of the program that are called at a stage of a snapshot, in the order of their
// registration. Each is registered once per stage. Any thread may call anything.
// Rules: SNAP-29, SNAP-30.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"

namespace understudy {

enum class SnapshotStage : uint8_t {
  kLockPre,
  kBackupPre,
  kBackupPost,
  kRestorePre,
  kRestorePost,
  kUnlockPost,
};
inline constexpr unsigned kSnapshotStages = 6;

// Gives 0 if all is well.
using SnapshotCallback = uint32_t (*)(int32_t device, void* arguments);

class StageCallbacks {
 public:
  Result<void> add(SnapshotStage stage, SnapshotCallback function, void* arguments);
  Result<void> remove(SnapshotStage stage, SnapshotCallback function);

  struct Entry {
    uint64_t number = 0;  // its place in the order, from 1
    SnapshotCallback function = nullptr;
    void* arguments = nullptr;
  };
  // The next one that is registered now. Allocates nothing, so that it cannot fail half way.
  std::optional<Entry> next_after(SnapshotStage stage, uint64_t number) const;
  bool has(SnapshotStage stage, const Entry& entry) const;

 private:
  using List = std::vector<Entry>;

  mutable Mutex mutex_{LockRank::kCallbacks};
  std::array<List, kSnapshotStages> lists_ US_GUARDED_BY(mutex_);
  uint64_t last_number_ US_GUARDED_BY(mutex_) = 0;
};

}  // namespace understudy
