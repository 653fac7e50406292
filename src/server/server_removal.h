// SPDX-License-Identifier: Apache-2.0
//
// Removes what is left of a server whose processes have all ended: its ledger, its sockets and its
// directory. Never anything else, and never under a process that joins: that is decided with the
// lock that joining processes take. A process that waits for it meanwhile begins a new server.
#pragma once

#include <cstdint>
#include <string>

namespace understudy {

enum class RemovalMode : uint8_t { kRemove, kOnlyLook };

enum class RemovalOutcome : uint8_t {
  kRemoved,    // or would be, if it was only looked at
  kAbsent,     // there is nothing of that name
  kInUse,      // a process lives, or joins
  kNotServer,  // no directory of this user with a ledger in it
  kLeftOver,   // the directory stays: it has other things in it, or the host does not remove it
};

struct Removal {
  RemovalOutcome outcome = RemovalOutcome::kNotServer;
  std::string explanation;  // one sentence where it was not removed
};

Removal remove_abandoned_server(const std::string& path, RemovalMode mode);

}  // namespace understudy
