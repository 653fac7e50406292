// SPDX-License-Identifier: Apache-2.0
//
// Which process a number means, also after the number was given to another process.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "platform/unique_fd.h"

namespace understudy::platform {

struct ProcessIdentity {
  int32_t id = 0;
  // Differs between all processes that ever had the number: what the kernel calls the process by
  // where it tells (Linux 6.9), else when it started.
  uint64_t birth = 0;

  friend bool operator==(const ProcessIdentity&, const ProcessIdentity&) = default;
};

// Nothing if there is no such process. Numbers of threads are no processes. Fails if it cannot be
// told.
Result<std::optional<ProcessIdentity>> identity_of_process(int32_t id);
ProcessIdentity own_identity();

// A descriptor that becomes readable when the process ends. Not valid if there is none such.
UniqueFd open_process(int32_t id);
bool has_ended(int process);

}  // namespace understudy::platform
