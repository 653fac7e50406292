// SPDX-License-Identifier: Apache-2.0
//
// Who may import what this process exports. Processes, not their numbers: one that comes later and
// has the number of one that was named is not meant. Any thread may call anything.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "platform/process_identity.h"
#include "server/process_tag.h"

namespace understudy {

class Whitelist {
 public:
  // Adds the processes that have these numbers now; numbers that no process has name none, and
  // neither does 0. Refuses a list without any other number.
  Result<void> add(ShareToken share, std::span<const int32_t> processes);
  bool has(ShareToken share, const platform::ProcessIdentity& process) const;
  // Forgets all of a share.
  void remove(ShareToken share);

 private:
  struct Listed {
    uint64_t secret = 0;  // of an earlier export of the same memory: does not count
    std::vector<platform::ProcessIdentity> processes;
  };

  mutable Mutex mutex_{LockRank::kWhitelist};
  std::unordered_map<uint32_t, Listed> shares_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
