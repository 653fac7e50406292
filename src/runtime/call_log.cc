// SPDX-License-Identifier: Apache-2.0
#include "runtime/call_log.h"

#include <chrono>
#include <cinttypes>

#include "base/deadline.h"
#include "platform/log.h"
#include "runtime/call_watch.h"

namespace understudy {

using platform::LogLevel;
using platform::Patience;

namespace {

bool logs_errors() noexcept {
  if (platform::log_level.load(std::memory_order_relaxed) == LogLevel::kUnknown) {
    choose_call_watch_for_now();
  }
  return platform::is_logged(LogLevel::kError);
}

}  // namespace

uint64_t log_time() noexcept {
  const auto time = Clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

void log_call(const char* function, int32_t code, uint64_t begun) noexcept {
  platform::log_line(LogLevel::kCall, Patience::kBrief, "%d %s %" PRIu64 " ns", code, function,
                     log_time() - begun);
}

void log_failed_call(const char* function, int32_t code, const Error& error) noexcept {
  if (!logs_errors()) return;
  platform::log_line(LogLevel::kError, Patience::kBrief, "%d %s: %s", code, function, error.text());
}

void log_failed_task(int32_t code, const TaskFailure& failure) noexcept {
  if (!logs_errors()) return;
  // Not a thread that may wait: other tasks are behind this one.
  platform::log_line(LogLevel::kError, Patience::kNone, "%d device %u: %s", code, failure.device,
                     failure.error->text());
}

}  // namespace understudy
