// SPDX-License-Identifier: Apache-2.0
//
// A benchmark that cannot measure says why and stops; a missed goal is not a failure.
#pragma once

#include <cerrno>
#include <cstring>

namespace bench {

[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...);

// For calls of the system: adds what errno says.
inline void require(bool success, const char* what) {
  if (!success) [[unlikely]]
    fail("%s: %s", what, strerror(errno));
}

}  // namespace bench
