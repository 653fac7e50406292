// SPDX-License-Identifier: Apache-2.0
#include "sharing/share_lookup.h"

namespace understudy {

Error unknown_share() {
  return Error::format(ErrorCode::kInvalidHandle,
                       "no memory is shared by this handle: it was never issued by this server, or "
                       "its exporter has freed the memory or ended");
}

Result<ShareView> find_share(const Server& server, const ShareTable& table, const ShareName& name,
                             Deadline deadline) {
  US_TRY_ASSIGN(const std::optional<ShareView> view, table.find(name.token, deadline));
  // Before all else that could be wrong with the call (SHARE-18): the handle ends with its
  // exporter, though importers may still hold the memory.
  if (!view || (view->owner != server.slots().own_tag() && !server.slots().is_alive(view->owner))) {
    return unknown_share();
  }
  if (view->description.kind != name.kind) {
    return Error::format(ErrorCode::kInvalidParam,
                         "the memory was exported as another kind of handle");
  }
  if (!name.is_whole) return Error::format(ErrorCode::kInvalidHandle, "shareableHandle is damaged");
  return *view;
}

}  // namespace understudy
