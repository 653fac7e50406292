// SPDX-License-Identifier: Apache-2.0
//
// The software NPUs that the processes of one runtime directory share, as this process takes part
// in them: one mapped file (the ledger), a slot of it, and the tables in it. No process keeps it
// for the others. Any thread may call anything.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "platform/private_directory.h"
#include "server/capacity.h"
#include "server/event_table.h"
#include "server/host_headroom.h"
#include "server/ledger_file.h"
#include "server/ledger_layout.h"
#include "server/notify_table.h"
#include "server/own_figures.h"
#include "server/process_slots.h"
#include "server/share_table.h"

namespace understudy {

class Server {
 public:
  // Joins the server of a directory, or begins one there. Fails if live processes there have other
  // devices, naming both. `numbers` are those that this process's devices have on the server.
  static Result<std::unique_ptr<Server>> join(platform::PrivateDirectory directory,
                                              const ServerShape& shape,
                                              const std::vector<int32_t>& numbers);
  // A server of this process alone, without a directory.
  static Result<std::unique_ptr<Server>> make_private(const ServerShape& shape,
                                                      std::vector<int32_t> numbers);
  // Leaves the server. The runtime's never does.
  ~Server() { slots_.leave(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const ServerShape& shape() const { return file_.header().shape; }
  const ServerId& id() const { return file_.header().server; }
  // Null for a server of this process alone.
  const platform::PrivateDirectory* directory() const { return file_.directory(); }

  ProcessSlots& slots() { return slots_; }
  const ProcessSlots& slots() const { return slots_; }
  ShareTable& shares() { return shares_; }
  EventTable& events() { return events_; }
  NotifyTable& notifies() { return notifies_; }
  Capacity& capacity() { return capacity_; }
  const OwnFigures& figures() const { return figures_; }
  // The words behind a HostHeadroom.
  HostHeadroomWords& host_headroom() const { return file_.header().host_headroom; }

 private:
  Server(LedgerFile file, std::vector<int32_t> numbers);
  static Result<std::unique_ptr<Server>> open(platform::PrivateDirectory directory,
                                              const std::vector<int32_t>& numbers);
  // False, and nothing done, if the ledger was removed before this process had the lock to join.
  Result<bool> enter(const ServerShape& shape, Deadline deadline);

  LedgerFile file_;
  ProcessSlots slots_;
  ShareTable shares_;
  EventTable events_;
  NotifyTable notifies_;
  OwnFigures figures_;
  Capacity capacity_;
};

}  // namespace understudy
