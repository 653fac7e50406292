// SPDX-License-Identifier: Apache-2.0
#include "capi/call.h"

#include <cstdarg>
#include <cstdio>
#include <string>

namespace understudy::capi {

namespace {

// Codes of the inner layer, which aclrtGetLastError reports (ERR-05, ERR-06).
bool is_inner(aclError code) {
  const aclError family = code / 1000;
  return family == 107 || family == 207 || family == 507;
}

}  // namespace

aclError report(const char* function, const Error& error) noexcept {
  const aclError code = published_code(error.code());
  try {
    ThreadState& thread = thread_state();
    if (is_inner(code)) thread.last_error = code;
    std::string text = std::string(function) + ": " + error.text();
    if (Runtime* runtime = Runtime::existing()) {
      runtime->add_error_text(std::move(text));
    } else {
      thread.texts.add(std::move(text));
    }
  } catch (const std::bad_alloc&) {
    // No memory for the sentence; the code still tells.
  }
  return code;
}

aclError report_exception(const char* function, const char* what) noexcept {
  return report(function, Error::format(ErrorCode::kInternal, "stopped by an exception: %s", what));
}

Error invalid_argument(const char* format, ...) {
  char text[Error::kMaxText];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return Error::format(ErrorCode::kInvalidArgument, "%s", text);
}

Result<void> require_feature(Feature feature) {
  US_TRY_ASSIGN(const Runtime* const runtime, Runtime::instance());
  return runtime->require(feature);
}

}  // namespace understudy::capi
