// SPDX-License-Identifier: Apache-2.0
//
// The check `host`: the CPU follows a device pointer. On hardware, and here, the process ends by a
// signal; before that the finding says which object the address is in, or behind.
#pragma once

#include "base/result.h"

namespace understudy {

// Once per process.
Result<void> begin_host_check();

}  // namespace understudy
