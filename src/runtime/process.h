// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace understudy {

// The number by which other processes of this machine know this one (VPEER-02).
int32_t current_process_id();
// What pthread_self gives.
uint64_t current_thread_identity();

}  // namespace understudy
