// SPDX-License-Identifier: Apache-2.0
//
// Keys by which processes share notifies: what a notify needs of the sharing layer, which answers
// for this process who may import. Rules: XPROC-08 to XPROC-10. Any thread may call anything.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/server.h"
#include "sharing/notify_access.h"
#include "stream/notifies.h"

namespace understudy {

class NotifyKeys {
 public:
  NotifyKeys(Server& server, NotifyAccess& access, Notifies& notifies)
      : server_(server), access_(access), notifies_(notifies) {}

  Result<std::string> export_key(const NotifyReference& notify, bool open_to_all);
  // Names processes that may import. Only the exporter may.
  Result<void> admit(const NotifyReference& notify, std::span<const int32_t> processes);
  struct Imported {
    NotifyReference notify;
    std::optional<unsigned> exporter_device;  // nothing if this process does not see it
  };
  Result<Imported> import(std::string_view key, unsigned device);

 private:
  Server& server_;
  NotifyAccess& access_;
  Notifies& notifies_;
};

}  // namespace understudy
