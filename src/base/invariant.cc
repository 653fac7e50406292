// SPDX-License-Identifier: Apache-2.0
#include "base/invariant.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "base/no_cancel.h"

namespace understudy {

void stop_with_sentence(const char* file, int line, const char* format, ...) {
  char sentence[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  const NoCancel no_cancel;
  fprintf(stderr, "understudy: internal fault at %s:%d: %s\n", file, line, sentence);
  abort();
}

}  // namespace understudy
