// SPDX-License-Identifier: Apache-2.0
//
// Which process a number means, also after the number was given to another process, and where other
// processes count in another pid namespace.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "platform/unique_fd.h"

namespace understudy::platform {

struct ProcessIdentity {
  int32_t id = 0;
  // Differs between all processes that ever had the number. Where the kernel tells (pidfd_open,
  // Linux 6.9) its own number of the process, else kStartTime and when the process started: the
  // means is part of the value, so that two processes with different means do not take one for the
  // other.
  uint64_t birth = 0;
  // In which `id` means the process; 0: it could not be found out. Every namespace has a process 1.
  uint64_t pid_namespace = 0;

  static constexpr uint64_t kStartTime = uint64_t{1} << 63;

  friend bool operator==(const ProcessIdentity& one, const ProcessIdentity& other) {
    const bool may_be_one_namespace = one.pid_namespace == other.pid_namespace ||
                                      one.pid_namespace == 0 || other.pid_namespace == 0;
    return one.id == other.id && one.birth == other.birth && may_be_one_namespace;
  }
};

// Nothing if there is no such process. Numbers of threads are no processes. Fails if it cannot be
// told.
Result<std::optional<ProcessIdentity>> identity_of_process(int32_t id);
ProcessIdentity own_identity();

// Whether the process of an identity still exists. Unknown where the number is of another pid
// namespace, or this process cannot look in the way in which the identity was made.
enum class Presence : uint8_t { kThere, kGone, kUnknown };
Presence presence_of(const ProcessIdentity& identity);

// A descriptor that becomes readable when the process ends. Not valid if there is none such, or the
// process may not have one.
UniqueFd open_process(int32_t id);
bool has_ended(int process);

}  // namespace understudy::platform
