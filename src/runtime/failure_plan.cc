// SPDX-License-Identifier: Apache-2.0
#include "runtime/failure_plan.h"

#include <algorithm>
#include <cinttypes>
#include <cstdlib>
#include <new>
#include <utility>

#include "device/public_calls.h"
#include "platform/call_site.h"
#include "platform/log.h"

namespace understudy {

constinit std::atomic<FailurePlan*> FailurePlan::current_{nullptr};

namespace {

// A line each; the others are in the summary.
constexpr uint64_t kMostTold = 20;

// A number that looks random and depends on both alone (the finalizer of SplitMix64).
uint64_t scrambled(uint64_t seed, uint64_t number) {
  uint64_t bits = seed * 0x9e3779b97f4a7c15 + number * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

bool takes_memory(std::string_view function) {
  const CallGroup* const group = group_of_call(function);
  return group != nullptr && group->takes_memory;
}

}  // namespace

FailurePlan::CountedRule::CountedRule(FailureRule rule_to_count)
    : rule(std::move(rule_to_count)), functions(rule.functions.begin(), rule.functions.end()) {}

bool FailurePlan::CountedRule::holds_for(uint64_t number, uint64_t bytes,
                                         Clock::time_point begun) const noexcept {
  if (const auto* const nth = std::get_if<NthCall>(&rule.condition)) return number == nth->number;
  if (const auto* const every = std::get_if<EveryCall>(&rule.condition)) {
    return number % every->interval == 0;
  }
  if (const auto* const random = std::get_if<RandomCall>(&rule.condition)) {
    return scrambled(random->seed, number) % RandomCall::kOften < random->threshold;
  }
  if (const auto* const large = std::get_if<LargeCall>(&rule.condition)) {
    return bytes >= large->bytes;
  }
  // The first one; `sticky` makes it all that follow.
  const auto* const late = std::get_if<LateCall>(&rule.condition);
  return failures == 0 && Clock::now() - begun >= late->after;
}

bool FailurePlan::CountedRule::applies(uint64_t bytes, Clock::time_point begun) noexcept {
  const uint64_t number = calls.fetch_add(1) + 1;
  if (!(rule.sticky && failures != 0) && !holds_for(number, bytes, begun)) return false;
  failures.fetch_add(1);
  return true;
}

FailurePlan::FailurePlan(const std::vector<FailureRule>& rules) {
  for (const FailureRule& rule : rules) {
    rules_.push_back(std::make_unique<CountedRule>(rule));
    looks_at_sites_ |= !rule.site.empty();
  }
}

bool FailurePlan::has_same_rules(const std::vector<FailureRule>& rules) const {
  return std::ranges::equal(
      rules_, rules, {}, [](const auto& each) { return each->rule.text; }, &FailureRule::text);
}

void FailurePlan::set(const std::vector<FailureRule>& rules) {
  FailurePlan* const before = current();
  if (before == nullptr) return set_for_now(rules);
  if (before->has_same_rules(rules)) return;
  auto fresh = std::unique_ptr<FailurePlan>(new FailurePlan(rules));
  fresh->replaced_ = before;
  current_.store(fresh.release(), std::memory_order_release);
}

void FailurePlan::set_for_now(const std::vector<FailureRule>& rules) {
  if (rules.empty() || current() != nullptr) return;
  auto fresh = std::unique_ptr<FailurePlan>(new FailurePlan(rules));
  FailurePlan* none = nullptr;
  if (!current_.compare_exchange_strong(none, fresh.get())) return;
  (void)fresh.release();
  std::atexit(summarize);
}

std::optional<InjectedFailure> FailurePlan::decide(std::string_view function, uint64_t bytes,
                                                   uintptr_t caller) noexcept {
  std::string site;
  try {
    if (looks_at_sites_ && caller != 0) site = platform::call_site_of(caller);
  } catch (const std::bad_alloc&) {
    return std::nullopt;  // no memory to look for it
  }
  CountedRule* failing = nullptr;
  uint64_t number = 0;
  for (const auto& counted : rules_) {
    // Every rule counts, also behind one that fails the call.
    if (!counted->names(function, site) || !counted->applies(bytes, begun_) || failing != nullptr) {
      continue;
    }
    failing = counted.get();
    number = counted->calls;
  }
  if (failing == nullptr) return std::nullopt;
  tell_of(*failing, function, number);
  const ErrorCode kind = takes_memory(function) ? ErrorCode::kOutOfMemory : ErrorCode::kInternal;
  return InjectedFailure{
      failing->rule.code,
      Error::format(kind, "fails on purpose, as call %" PRIu64 " of the rule %.200s", number,
                    failing->rule.text.c_str())};
}

void FailurePlan::tell_of(const CountedRule& counted, std::string_view function,
                          uint64_t number) noexcept {
  const uint64_t told = told_.fetch_add(1);
  if (told >= kMostTold) return;
  platform::say("%.*s fails on purpose: call %" PRIu64 " of %.200s%s",
                static_cast<int>(function.size()), function.data(), number,
                counted.rule.text.c_str(),
                told + 1 == kMostTold ? "; later failures are counted only" : "");
}

void FailurePlan::summarize() noexcept {
  for (const auto& counted : current()->rules_) {
    platform::say("fail: %.200s: %" PRIu64 " of %" PRIu64 " calls failed on purpose",
                  counted->rule.text.c_str(), counted->failures.load(), counted->calls.load());
  }
}

}  // namespace understudy
