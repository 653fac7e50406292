// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace understudy::platform {

// A number that nobody can guess.
uint64_t random_number();

}  // namespace understudy::platform
