// SPDX-License-Identifier: Apache-2.0
//
// Our own broken promises stop the program with one exact sentence. Never for a caller's mistake:
// that is an Error.
#pragma once

namespace understudy {

[[noreturn, gnu::cold, gnu::format(printf, 3, 4)]] void stop_with_sentence(const char* file,
                                                                           int line,
                                                                           const char* format, ...);

}  // namespace understudy

#define US_INVARIANT(condition, ...)                                     \
  do {                                                                   \
    if (__builtin_expect(!(condition), 0))                               \
      ::understudy::stop_with_sentence(__FILE__, __LINE__, __VA_ARGS__); \
  } while (false)
