// SPDX-License-Identifier: Apache-2.0
#include "sharing/ipc_keys.h"

#include "base/scope_exit.h"
#include "sharing/share_names.h"

namespace understudy {

Result<std::string> IpcKeys::export_key(VirtualAddress address, uint64_t size, bool open_to_all) {
  US_TRY_ASSIGN(const ShareToken token, sharing_.export_allocation(address, size, open_to_all));
  return key_of(token, ledger_.server());
}

Result<void> IpcKeys::admit(std::string_view key, std::span<const int32_t> processes) {
  US_TRY_ASSIGN(const ShareToken token, token_of(key));
  return sharing_.admit(token, ShareKind::kKey, processes);
}

Result<VirtualAddress> IpcKeys::import(std::string_view key, unsigned device) {
  US_TRY_ASSIGN(const ShareToken token, token_of(key));
  US_TRY_ASSIGN(const VirtualAddress address, sharing_.import_allocation(token, device));
  ScopeExit undo([&] { (void)allocations_.end_import(address); });
  MutexLock lock(mutex_);
  imports_[token.word()].push_back(address);
  undo.dismiss();
  return address;
}

Result<void> IpcKeys::close(std::string_view key) {
  US_TRY_ASSIGN(const ShareToken token, token_of(key));
  VirtualAddress oldest = 0;
  {
    MutexLock lock(mutex_);
    const auto found = imports_.find(token.word());
    if (found != imports_.end()) {
      oldest = found->second.front();
      found->second.pop_front();
      if (found->second.empty()) imports_.erase(found);
    }
  }
  if (oldest == 0) return sharing_.close_export(token, ShareKind::kKey);
  Result<void> ended = allocations_.end_import(oldest);
  if (!ended.ok()) {
    MutexLock lock(mutex_);
    imports_[token.word()].push_front(oldest);
  }
  return ended;
}

}  // namespace understudy
