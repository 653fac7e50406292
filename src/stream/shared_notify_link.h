// SPDX-License-Identifier: Apache-2.0
//
// The link to a notify that processes share.
#pragma once

#include <atomic>
#include <cstdint>

#include "server/notify_table.h"
#include "stream/shared_link.h"

namespace understudy {

class SharedNotifyLink final : public SharedLink<SharedNotifyLink, NotifyTable> {
 public:
  using SharedLink::SharedLink;

  void set() { table().set(number()); }
  void clear() { table().clear(number()); }
  bool take() { return table().take(number()); }
  bool is_open_to_all() const { return table().is_open_to_all(number()); }
  // How often processes have rung this one, and whether a thread here listens to that.
  const std::atomic<uint32_t>& rings() const { return table().slots().rings(); }
  bool is_listening() const { return table().slots().is_listening(); }
};

using SharedNotifyLinks = SharedLinks<SharedNotifyLink>;

}  // namespace understudy
