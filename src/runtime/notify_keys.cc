// SPDX-License-Identifier: Apache-2.0
#include "runtime/notify_keys.h"

#include "sharing/share_names.h"

namespace understudy {

Result<std::string> NotifyKeys::export_key(const NotifyReference& notify, bool open_to_all) {
  if (!open_to_all) US_TRY(access_.listen());
  const unsigned device = server_.capacity().number_of(notify.notify->device.load());
  US_TRY_ASSIGN(const ShareToken token,
                notifies_.share(
                    notify, {.device = static_cast<uint16_t>(device), .open_to_all = open_to_all}));
  return key_of(KeyKind::kNotify, token, server_.id());
}

Result<void> NotifyKeys::admit(const NotifyReference& notify, std::span<const int32_t> processes) {
  US_TRY_ASSIGN(const Notifies::Shared shared, notifies_.shared(notify));
  if (shared.open_to_all) {
    return Error::format(ErrorCode::kNoPermission,
                         "it was exported with validation of processes switched off");
  }
  return access_.admit(shared.token, processes);
}

Result<NotifyKeys::Imported> NotifyKeys::import(std::string_view key, unsigned device) {
  const Deadline deadline = ledger_deadline();
  US_TRY_ASSIGN(const ShareToken token, token_of_key(KeyKind::kNotify, key, server_.id()));
  US_TRY_ASSIGN(const std::optional<NotifyView> view, server_.notifies().find(token, deadline));
  if (!view) return unknown_notify();
  const NotifyDescription& what = view->description;
  if (!what.open_to_all && view->owner != server_.slots().own_tag()) {
    const Result<void> granted = access_.ask(token, view->owner, deadline);
    if (!granted.ok()) {
      const bool is_unknown = granted.error().code() == ErrorCode::kInvalidHandle;
      return is_unknown ? unknown_notify() : granted.error();
    }
  }
  US_TRY_ASSIGN(const NotifyReference notify, notifies_.open(token, device, deadline));
  return Imported{notify, server_.capacity().device_of(what.device)};
}

}  // namespace understudy
