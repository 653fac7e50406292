// SPDX-License-Identifier: Apache-2.0
//
// Keys by which processes share allocations. Which of its imports a process closes with a key is
// remembered here; everything else is Sharing's affair. Rules: IPC. Any thread may call anything.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/result.h"
#include "sharing/share_names.h"
#include "sharing/sharing.h"

namespace understudy {

class IpcKeys {
 public:
  IpcKeys(Ledger& ledger, Sharing& sharing, DeviceMemory& allocations)
      : ledger_(ledger), sharing_(sharing), allocations_(allocations) {}

  Result<std::string> export_key(VirtualAddress address, uint64_t size, bool open_to_all);
  Result<void> admit(std::string_view key, std::span<const int32_t> processes);
  Result<VirtualAddress> import(std::string_view key, unsigned device);
  // Ends the oldest import of this process, or if it has none, its export.
  Result<void> close(std::string_view key);
  Result<ShareToken> token_of(std::string_view key) const {
    return token_of_key(key, ledger_.server());
  }

 private:
  Ledger& ledger_;
  Sharing& sharing_;
  DeviceMemory& allocations_;
  Mutex mutex_{LockRank::kIpcKeys};
  std::map<uint64_t, std::deque<VirtualAddress>> imports_ US_GUARDED_BY(mutex_);  // by token
};

}  // namespace understudy
