// SPDX-License-Identifier: Apache-2.0
#include "sharing/notify_access.h"

namespace understudy {

ShareVerdict NotifyAccess::answer(const ShareRequest& request,
                                  const platform::SocketPeer& peer) const {
  const ShareToken token(request.token);
  if (whitelist_.has(token, peer.process)) return ShareVerdict::kGranted;
  return table_.is_open(token) ? ShareVerdict::kNotListed : ShareVerdict::kUnknown;
}

}  // namespace understudy
