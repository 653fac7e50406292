// SPDX-License-Identifier: Apache-2.0
#include "runtime/call_watch.h"

#include <exception>
#include <memory>
#include <string>

#include "device/config.h"
#include "device/log_choice.h"
#include "observe/checks.h"
#include "observe/history.h"
#include "observe/recent_calls.h"
#include "platform/call_stack.h"
#include "platform/log.h"
#include "runtime/call_log.h"
#include "runtime/call_site_list.h"

namespace understudy {

constinit std::atomic<uint8_t> call_watch{kUnknownWatch};

namespace {

// The beginning of a call whose end is of interest, but not its time.
constexpr uint64_t kUntimed = 1;

// Null if calls are not listed.
constinit std::atomic<CallSiteList*> call_sites{nullptr};

// The first file that is named: the list of a process is one.
void list_call_sites(const std::string& file) {
  if (file.empty() || call_sites.load() != nullptr) return;
  auto fresh = std::make_unique<CallSiteList>(file);
  CallSiteList* none = nullptr;
  if (call_sites.compare_exchange_strong(none, fresh.get())) (void)fresh.release();
}

// Where the program has called the library; 0 if that cannot be told.
uintptr_t caller_of_library() noexcept {
  const platform::CallStack* const stack = platform::capture_stack();
  return stack != nullptr && !stack->frames().empty() ? stack->frames().front() : 0;
}

uint8_t chosen_watch() {
  uint8_t chosen = kUnwatched;
  if (platform::is_logged(platform::LogLevel::kCall)) chosen |= kLogged;
  const FailurePlan* const plan = FailurePlan::current();
  if (plan != nullptr && plan->has_rules()) chosen |= kMayFail;
  if (call_sites.load() != nullptr) chosen |= kListed;
  if (is_any_checked()) chosen |= kChecked;
  return chosen;
}

}  // namespace

Result<void> choose_call_watch(const Result<Settings>& settings) {
  if (settings.ok()) {
    FailurePlan::set(settings.value().failures);
    list_call_sites(settings.value().call_sites);
    US_TRY(begin_checks(settings.value().check));
    platform::begin_log(settings.value().log);
  } else {
    platform::begin_log(environment_log_choice());
  }
  call_watch.store(chosen_watch(), std::memory_order_relaxed);
  return {};
}

void choose_call_watch_for_now() noexcept {
  try {
    const Result<Settings> settings = read_settings();
    if (settings.ok()) {
      FailurePlan::set_for_now(settings.value().failures);
      list_call_sites(settings.value().call_sites);
      (void)begin_checks(settings.value().check);  // what is wrong is told with the runtime
    }
    platform::begin_log_for_now(settings.ok() ? settings.value().log : environment_log_choice());
  } catch (const std::exception&) {
    return;  // no memory to find out; the next call tries again
  }
  uint8_t unknown = kUnknownWatch;
  call_watch.compare_exchange_strong(unknown, chosen_watch());
}

WatchedCall begin_watched_call(const char* function, uint64_t bytes) noexcept {
  WatchedCall call{begin_unfailing_call(function), std::nullopt};
  const uint8_t watch = call_watch.load(std::memory_order_relaxed);
  if ((watch & (kMayFail | kListed)) == 0) return call;
  FailurePlan* const plan = (watch & kMayFail) != 0 ? FailurePlan::current() : nullptr;
  const bool is_listed = (watch & kListed) != 0;
  const bool needs_caller = is_listed || plan->looks_at_sites();
  const uintptr_t caller = needs_caller ? caller_of_library() : 0;
  if (is_listed && caller != 0) call_sites.load()->note(function, caller);
  if (plan != nullptr) call.failure = plan->decide(function, bytes, caller);
  return call;
}

uint64_t begin_unfailing_call(const char* function) noexcept {
  if (call_watch.load(std::memory_order_relaxed) == kUnknownWatch) choose_call_watch_for_now();
  const bool is_seen = is_any_checked();
  if (is_seen) History::enter_function(function);
  if (platform::is_logged(platform::LogLevel::kCall)) return log_time();
  return is_seen ? kUntimed : 0;
}

void end_watched_call(const char* function, uint64_t begun, int32_t code) noexcept {
  if (begun > kUntimed) log_call(function, code, begun);
  if (!is_any_checked()) return;
  note_call(function, code);
  History::leave_function();
}

}  // namespace understudy
