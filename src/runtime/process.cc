// SPDX-License-Identifier: Apache-2.0
#include "runtime/process.h"

#include "platform/host_facts.h"

namespace understudy {

int32_t current_process_id() { return platform::process_id(); }

}  // namespace understudy
