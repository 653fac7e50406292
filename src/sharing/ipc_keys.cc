// SPDX-License-Identifier: Apache-2.0
#include "sharing/ipc_keys.h"

#include "sharing/share_names.h"

namespace understudy {

Result<ShareName> IpcKeys::name_of(std::string_view key) const {
  US_TRY_ASSIGN(const ShareToken token, token_of(key));
  return ShareName{token, ShareKind::kKey};
}

Result<std::string> IpcKeys::export_key(VirtualAddress address, uint64_t size, bool open_to_all) {
  US_TRY_ASSIGN(const ShareToken token, sharing_.export_allocation(address, size, open_to_all));
  return key_of(KeyKind::kMemory, token, server_.id());
}

Result<void> IpcKeys::admit(std::string_view key, std::span<const int32_t> processes) {
  US_TRY_ASSIGN(const ShareName name, name_of(key));
  return sharing_.admit(name, processes);
}

Result<ImportedAllocation> IpcKeys::import(std::string_view key, unsigned device,
                                           DeviceReach reach) {
  US_TRY_ASSIGN(const ShareName name, name_of(key));
  // The node that remembers it comes first, since the import cannot fail any more afterwards.
  Imports made;
  made.emplace(name.token.word(), 0);
  US_TRY_ASSIGN(const ImportedAllocation found,
                sharing_.import_allocation({.name = name, .device = device, .reach = reach}));
  made.begin()->second = found.address;
  MutexLock lock(mutex_);
  imports_.insert(made.extract(made.begin()));
  return found;
}

Result<void> IpcKeys::close(std::string_view key) {
  US_TRY_ASSIGN(const ShareName name, name_of(key));
  Imports::node_type oldest;
  {
    MutexLock lock(mutex_);
    const auto found = imports_.lower_bound(name.token.word());
    if (found != imports_.end() && found->first == name.token.word()) {
      oldest = imports_.extract(found);
    }
  }
  if (oldest.empty()) return sharing_.close_export(name);
  Result<void> ended = allocations_.end_import(oldest.mapped());
  if (!ended.ok()) {
    MutexLock lock(mutex_);
    imports_.insert(imports_.lower_bound(name.token.word()), std::move(oldest));
  }
  return ended;
}

}  // namespace understudy
