// SPDX-License-Identifier: Apache-2.0
//
// Keys by which processes share allocations. Which of its imports a process closes with a key is
// remembered here; everything else is Sharing's affair. Rules: IPC. Any thread may call anything.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/result.h"
#include "memory/device_memory.h"
#include "server/server.h"
#include "sharing/share_names.h"
#include "sharing/sharing.h"

namespace understudy {

class IpcKeys {
 public:
  IpcKeys(Server& server, Sharing& sharing, DeviceMemory& allocations)
      : server_(server), sharing_(sharing), allocations_(allocations) {}

  Result<std::string> export_key(VirtualAddress address, uint64_t size, bool open_to_all);
  Result<void> admit(std::string_view key, std::span<const int32_t> processes);
  Result<ImportedAllocation> import(std::string_view key, unsigned device, DeviceReach reach);
  // Ends the oldest import of this process, or if it has none, its export.
  Result<void> close(std::string_view key);
  Result<ShareToken> token_of(std::string_view key) const {
    return token_of_key(KeyKind::kMemory, key, server_.id());
  }

 private:
  // By token, the oldest of a token first.
  using Imports = std::multimap<uint64_t, VirtualAddress>;

  Result<ShareName> name_of(std::string_view key) const;

  Server& server_;
  Sharing& sharing_;
  DeviceMemory& allocations_;
  Mutex mutex_{LockRank::kIpcKeys};
  Imports imports_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
