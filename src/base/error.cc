// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <cstdio>

namespace understudy {

Error::Error(ErrorCode code, int system_number, const char* format, va_list arguments)
    : code_(code), system_number_(system_number) {
  vsnprintf(text_, sizeof text_, format, arguments);
}

Error Error::format(ErrorCode code, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Error error(code, 0, format, arguments);
  va_end(arguments);
  return error;
}

Error Error::system(ErrorCode code, int system_number, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Error error(code, system_number, format, arguments);
  va_end(arguments);
  return error;
}

Error Error::as(ErrorCode code) const {
  Error changed = *this;
  changed.code_ = code;
  return changed;
}

Error Error::about(uint64_t subject) const {
  Error changed = *this;
  changed.subject_ = subject;
  return changed;
}

}  // namespace understudy
