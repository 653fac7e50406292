// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace understudy::platform {

// A number that cannot be guessed: from getrandom, else from /dev/urandom. Where the host gives a
// process neither, one that differs from all others but that code of the same user could find out;
// tokens then stop mistakes, as they do against code of the same user anyway.
uint64_t random_number();

}  // namespace understudy::platform
