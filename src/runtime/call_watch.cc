// SPDX-License-Identifier: Apache-2.0
#include "runtime/call_watch.h"

#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "device/config.h"
#include "device/log_choice.h"
#include "observe/checks.h"
#include "observe/history.h"
#include "observe/recent_calls.h"
#include "observe/recorder.h"
#include "platform/call_stack.h"
#include "platform/fork_sentinel.h"
#include "platform/host_facts.h"
#include "platform/log.h"
#include "platform/text_file.h"
#include "runtime/call_log.h"
#include "runtime/call_site_list.h"
#include "runtime/runtime.h"

namespace understudy {

constinit std::atomic<uint8_t> call_watch{kUnknownWatch};

namespace {

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
  if (is_recorded()) chosen |= kRecorded;
  return chosen;
}

// Whatever changes one of what is looked at calls it behind that. So the last change of the word
// has seen them all.
void renew_call_watch() {
  uint8_t before = call_watch.load();
  while (!call_watch.compare_exchange_weak(before, chosen_watch())) {
  }
}

// What a recording says of the process.
std::string facts_of(const Settings& settings) {
  std::string text = "parent=" + std::to_string(platform::parent_process_id()) + "\n";
  text += "program=" + platform::command_line() + "\n";
  text += "product=" + std::string(settings.product.key) + "\n";
  text += "devices=" + std::to_string(settings.devices) + "\n";
  text += "memory=" + std::to_string(settings.memory) + "\n";
  for (const auto& [key, value] : settings.given) {
    if (value.find('\n') != std::string::npos) continue;
    text.append("given ").append(key).append("=").append(value).append("\n");
  }
  const auto visible = platform::environment_variable("ASCEND_RT_VISIBLE_DEVICES");
  if (visible && visible->find('\n') == std::string::npos) text += "visible=" + *visible + "\n";
  return text;
}

// Begins the recording that the configuration asks for, if it does: the facts are no use without
// it.
Result<void> begin_recording(const Settings& settings) {
  if (settings.recording.file.empty()) return {};
  return Recorder::begin(settings.recording, facts_of(settings));
}

// The configuration of a fork child is its own: its first call may find another one.
[[maybe_unused]] const bool forgets_in_children =
    (platform::call_in_fork_child([] { call_watch.store(kUnknownWatch); }), true);

}  // namespace

Result<void> choose_call_watch(const Result<Settings>& settings) {
  if (settings.ok()) {
    FailurePlan::set(settings.value().failures);
    list_call_sites(settings.value().call_sites);
    US_TRY(begin_checks(settings.value().check));
    US_TRY(begin_recording(settings.value()));
    platform::begin_log(settings.value().log);
  } else {
    platform::begin_log(environment_log_choice());
  }
  renew_call_watch();
  return {};
}

void choose_call_watch_for_now() noexcept {
  try {
    const Result<Settings> settings = read_settings();
    if (settings.ok()) {
      FailurePlan::set_for_now(settings.value().failures);
      list_call_sites(settings.value().call_sites);
      // What is wrong is told with the runtime.
      (void)begin_checks(settings.value().check);
      (void)begin_recording(settings.value());
    }
    platform::begin_log_for_now(settings.ok() ? settings.value().log : environment_log_choice());
  } catch (const std::exception&) {
    return;  // no memory to find out; the next call tries again
  }
  renew_call_watch();
}

Result<void> start_recording(RecordingChoice choice) {
  // Fork children look for the file, wherever they are by then.
  std::error_code error;
  choice.file = std::filesystem::absolute(choice.file, error).string();
  if (error) {
    return Error::format(ErrorCode::kInvalidArgument, "the current directory is not known: %s",
                         error.message().c_str());
  }
  const Runtime* const runtime = Runtime::existing();
  US_TRY_ASSIGN(const Settings settings,
                runtime != nullptr ? runtime->settings() : read_settings());
  US_TRY(Recorder::start(std::move(choice), facts_of(settings)));
  renew_call_watch();
  return {};
}

Result<void> stop_recording() {
  US_TRY(Recorder::stop());
  renew_call_watch();
  return {};
}

std::optional<InjectedFailure> planned_failure(const char* function, uint64_t bytes) noexcept {
  const uint8_t watch = call_watch.load(std::memory_order_relaxed);
  FailurePlan* const plan = (watch & kMayFail) != 0 ? FailurePlan::current() : nullptr;
  const bool is_listed = (watch & kListed) != 0;
  const bool needs_caller = is_listed || (plan != nullptr && plan->looks_at_sites());
  const uintptr_t caller = needs_caller ? caller_of_library() : 0;
  if (is_listed && caller != 0) call_sites.load()->note(function, caller);
  if (plan == nullptr) return std::nullopt;
  return plan->decide(function, bytes, caller);
}

uint64_t begin_watched_call(const char* function) noexcept {
  if (call_watch.load(std::memory_order_relaxed) == kUnknownWatch) choose_call_watch_for_now();
  const bool is_seen = is_any_checked();
  if (is_seen) History::enter_function(function);
  if (platform::is_logged(platform::LogLevel::kCall)) return log_time();
  return is_seen || is_recorded() ? kUntimed : 0;
}

void end_watched_call(const char* function, uint64_t begun, int32_t code) noexcept {
  if (begun > kUntimed) log_call(function, code, begun);
  if (!is_any_checked()) return;
  note_call(function, code);
  History::leave_function();
}

}  // namespace understudy
