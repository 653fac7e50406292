// SPDX-License-Identifier: Apache-2.0
#include "runtime/process.h"

#include "platform/host_facts.h"
#include "platform/thread.h"

namespace understudy {

int32_t current_process_id() { return platform::process_id(); }
uint64_t current_thread_identity() { return platform::thread_identity(); }

}  // namespace understudy
