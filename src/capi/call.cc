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

[[gnu::cold, gnu::noinline]] std::optional<aclError> reported_failure(const char* function,
                                                                      uint64_t bytes) noexcept {
  const std::optional<InjectedFailure> failure = planned_failure(function, bytes);
  if (!failure) return std::nullopt;
  const aclError code = failure->code.value_or(published_code(failure->error.code()));
  report_as(code, function, failure->error);
  return code;
}

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

CallBegin begin_watched(const CallShape& shape, uint64_t bytes, OpenCall& open) noexcept {
  CallBegin begin = begin_watched_unfailing(shape, open);
  if (may_fail_calls()) [[unlikely]]
    begin.failure = reported_failure(shape.function, bytes);
  return begin;
}

CallBegin begin_watched_unfailing(const CallShape& shape, OpenCall& open) noexcept {
  const uint64_t time = begin_watched_call(shape.function);
  if (!is_recorded()) return {time, std::nullopt};
  Recorder::begin_call(shape, open);
  // A recording that began since: the end is of interest all the same.
  const bool is_untimed = time == 0 && open.begun != 0;
  return {is_untimed ? kUntimed : time, std::nullopt};
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
