// SPDX-License-Identifier: Apache-2.0
//
// Which processes may import the notifies that this process exports, and the question whether this
// one may import those of others. The notifies themselves are the stream layer's affair.
// Rules: XPROC-08 to XPROC-10. Any thread may call anything.
#pragma once

#include <cstdint>
#include <span>

#include "base/deadline.h"
#include "base/result.h"
#include "platform/local_socket.h"
#include "server/server.h"
#include "sharing/share_client.h"
#include "sharing/share_protocol.h"
#include "sharing/share_server.h"
#include "sharing/whitelist.h"

namespace understudy {

class NotifyAccess {
 public:
  NotifyAccess(Server& server, ShareServer& share_server)
      : table_(server.notifies()), share_server_(share_server), client_(server) {}

  // Other processes can ask this one from now on.
  Result<void> listen() { return share_server_.listen(); }
  // Names processes that may import a notify of this one.
  Result<void> admit(ShareToken token, std::span<const int32_t> processes) {
    return whitelist_.add(token, processes);
  }
  // It is not exported any more.
  void forget(ShareToken token) { whitelist_.remove(token); }
  // Asks the exporter of a notify whether this process may import it.
  Result<void> ask(ShareToken token, ProcessTag exporter, Deadline deadline) const {
    return client_.ask_for_notify(token, exporter, deadline);
  }

  // What the share server answers to a process that asks. Waits for nothing.
  ShareVerdict answer(const ShareRequest& request, const platform::SocketPeer& peer) const;

 private:
  NotifyTable& table_;
  ShareServer& share_server_;
  const ShareClient client_;
  Whitelist whitelist_;
};

}  // namespace understudy
