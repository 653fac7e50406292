// SPDX-License-Identifier: Apache-2.0
//
// Whether the process of a slot has ended: the kernel says so. Where it cannot be asked, because
// the process is of another pid namespace, the lock of the slot's byte tells, which the kernel
// drops when the process ends. The one place that declares a process dead.
#pragma once

#include "platform/process_identity.h"

namespace understudy {

// `is_locked` looks at the byte of the slot; it is called only where the kernel does not tell.
template <typename IsLocked>
bool has_process_ended(const platform::ProcessIdentity& identity, IsLocked is_locked) {
  switch (platform::presence_of(identity)) {
    case platform::Presence::kThere:
      return false;
    case platform::Presence::kGone:
      return true;
    case platform::Presence::kUnknown:
      break;
  }
  return !is_locked();
}

}  // namespace understudy
