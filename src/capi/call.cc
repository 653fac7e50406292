// SPDX-License-Identifier: Apache-2.0
#include "capi/call.h"

#include <cstdarg>
#include <cstdio>

#include "capi/error_listener.h"
#include "observe/advice.h"
#include "observe/misuse.h"
#include "observe/shortage_report.h"
#include "runtime/call_log.h"

namespace understudy::capi {

namespace {

// Codes of the inner layer, which aclrtGetLastError reports (ERR-05, ERR-06).
bool is_inner(aclError code) {
  const aclError family = code / 1000;
  return family == 107 || family == 207 || family == 507;
}

// Streams know nothing of published codes.
void log_task(const TaskFailure& failure) {
  log_failed_task(published_code(failure.error->code()), failure);
}

[[maybe_unused]] const bool log_hears_of_tasks = (set_failure_log(log_task), true);

}  // namespace

aclError report(const char* function, const Error& error) noexcept {
  const aclError code = published_code(error.code());
  report_as(code, function, error);
  return code;
}

void report_as(aclError code, const char* function, const Error& error) noexcept {
  try {
    if (is_inner(code)) thread_state().last_error = code;
    Runtime::add_error_text(function, error);
  } catch (const std::bad_alloc&) {
    // No memory for the sentence; the code still tells.
  }
  log_failed_call(function, code, error);
  tell_misuse(function, error);
  tell_shortage(function, error);
  if (is_advised()) advise_unsupported(function, error);
  tell_listener(function, code, error);
}

CallBegin begin_watched(const char* function, uint64_t bytes) noexcept {
  const WatchedCall call = begin_watched_call(function, bytes);
  if (!call.failure) return {call.begun, std::nullopt};
  const Error& error = call.failure->error;
  const aclError code = call.failure->code.value_or(published_code(error.code()));
  report_as(code, function, error);
  return {call.begun, code};
}

void note_success(const char* function) noexcept {
  if ((awaited_successes & bit_of_function(function)) != 0) Runtime::note_success(function);
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

Result<Runtime*> make_runtime_with(Feature feature) {
  US_TRY_ASSIGN(Runtime* const runtime, Runtime::instance());
  US_TRY(runtime->require(feature));
  return runtime;
}

Result<void> choose_callback(NamedCallbacks<AnyFunction>& callbacks, const char* name,
                             AnyFunction function, void* arguments) {
  if (function == nullptr) return callbacks.remove(name);
  return callbacks.add(name, function, arguments);
}

}  // namespace understudy::capi
