// SPDX-License-Identifier: Apache-2.0
//
// Log lines of programs.
#include "runtime/application_log.h"

#include <cstdarg>
#include <cstdio>
#include <string>

#include "acl/acl_base.h"
#include "capi/call.h"

using namespace understudy;        // NOLINT: entry points of one chapter
using namespace understudy::capi;  // NOLINT

namespace {

[[gnu::format(printf, 1, 0)]] std::string formatted(const char* format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  const int length = vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (length < 0) return format;  // what cannot be formatted is shown as it is
  std::string text(static_cast<size_t>(length), '\0');
  vsnprintf(text.data(), text.size() + 1, format, arguments);
  return text;
}

}  // namespace

void aclAppLog(aclLogLevel logLevel, const char* func, const char* file, uint32_t line,
               const char* fmt, ...) {
  va_list arguments;
  va_start(arguments, fmt);
  // Not told of as a call: that would be a line for every line of the program's.
  attempt(__func__, [&]() -> Result<void> {
    const int level = logLevel;
    if (level < ACL_DEBUG || level > ACL_ERROR) {
      return invalid_argument("logLevel is %d and must be 0 to 3", level);
    }
    US_TRY(require_pointer(fmt, "fmt"));
    if (is_logged(level)) write_log_line(level, {func, file, line}, formatted(fmt, arguments));
    return {};
  });
  va_end(arguments);
}
