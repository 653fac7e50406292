// SPDX-License-Identifier: Apache-2.0
//
// The side that asks: what an importer needs from the process that exported, its leave and the
// descriptors of its backing file. Of the protocol, share_server.h is the other side. Waits for the
// exporter until the deadline, and holds no lock meanwhile. Any thread may call anything.
#pragma once

#include <optional>

#include "base/deadline.h"
#include "base/result.h"
#include "platform/local_socket.h"
#include "server/server.h"
#include "server/share_table.h"
#include "sharing/remote_backing_files.h"
#include "sharing/share_protocol.h"

namespace understudy {

class ShareClient {
 public:
  explicit ShareClient(const Server& server) : server_(server) {}

  // Asks for a share of another process. Nothing if the file is not wanted.
  Result<std::optional<OpenedBackingFile>> obtain(ShareToken token, const ShareView& view,
                                                  bool wants_file, Deadline deadline) const;
  // Asks whether this process may import a notify.
  Result<void> ask_for_notify(ShareToken token, ProcessTag exporter, Deadline deadline) const;

 private:
  Result<OpenedBackingFile> open_directly(const ShareView& view) const;
  Result<std::optional<OpenedBackingFile>> ask_exporter(ShareToken token, const ShareView& view,
                                                        bool wants_file, Deadline deadline) const;
  // Sends the request and gets the answer, which grants it; fails if it does not.
  Result<void> ask(ProcessTag exporter, const ShareRequest& request, ShareAnswer& answer,
                   platform::Message& message, Deadline deadline) const;
  Result<void> exchange(ProcessTag exporter, ShareRequest request, platform::Message& answer,
                        Deadline deadline) const;
  bool receive_answer(int connection, ProcessTag exporter, platform::Message& answer,
                      Deadline deadline) const;

  const Server& server_;
};

}  // namespace understudy
