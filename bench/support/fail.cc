// SPDX-License-Identifier: Apache-2.0
#include "support/fail.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace bench {

void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("benchmark failed: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  std::_Exit(1);
}

}  // namespace bench
