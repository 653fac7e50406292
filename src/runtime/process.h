// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace understudy {

// The number by which other processes of this machine know this one (VPEER-02).
int32_t current_process_id();

}  // namespace understudy
