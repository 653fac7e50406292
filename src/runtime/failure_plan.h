// SPDX-License-Identifier: Apache-2.0
//
// Public calls that fail on purpose, so that a program's own handling of errors can be tested (key
// `fail`). A plan counts the calls that its rules name and decides which of them fail. It tells of
// its first failures as they happen, and of all of them at the end of the process, with the rule
// that repeats them.
//
// One plan per process, never destroyed. A fork child goes on with the counts of its parent. Any
// thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/deadline.h"
#include "base/error.h"
#include "device/failure_rule.h"

namespace understudy {

struct InjectedFailure {
  std::optional<int32_t> code;  // published; none: that of the error
  Error error;
};

class FailurePlan {
 public:
  // Null if no call fails on purpose.
  static FailurePlan* current() { return current_.load(std::memory_order_acquire); }
  // A plan that has the same rules goes on. May throw std::bad_alloc, and changes nothing then.
  static void set(const std::vector<FailureRule>& rules);
  // The same for rules that may be a wrong guess: does nothing if there is a plan.
  static void set_for_now(const std::vector<FailureRule>& rules);

  // Counts the call, which `caller` made: a return address, or 0 where it is not known. Nothing if
  // it does not fail.
  std::optional<InjectedFailure> decide(std::string_view function, uint64_t bytes,
                                        uintptr_t caller) noexcept;
  bool has_rules() const { return !rules_.empty(); }
  // Whether it matters where a call comes from.
  bool looks_at_sites() const { return looks_at_sites_; }

 private:
  struct CountedRule {
    explicit CountedRule(FailureRule rule_to_count);
    bool names(std::string_view function, std::string_view site) const {
      return (functions.empty() || functions.contains(function)) &&
             (rule.site.empty() || rule.site == site);
    }
    // Whether the call is one that fails. Counts it.
    bool applies(uint64_t bytes, Clock::time_point begun) noexcept;
    bool holds_for(uint64_t number, uint64_t bytes, Clock::time_point begun) const noexcept;

    const FailureRule rule;
    const std::unordered_set<std::string_view> functions;  // in `rule`
    std::atomic<uint64_t> calls{0};
    std::atomic<uint64_t> failures{0};
  };

  explicit FailurePlan(const std::vector<FailureRule>& rules);
  bool has_same_rules(const std::vector<FailureRule>& rules) const;
  void tell_of(const CountedRule& counted, std::string_view function, uint64_t number) noexcept;
  static void summarize() noexcept;

  static std::atomic<FailurePlan*> current_;

  std::vector<std::unique_ptr<CountedRule>> rules_;
  bool looks_at_sites_ = false;
  const Clock::time_point begun_ = Clock::now();
  std::atomic<uint64_t> told_{0};
  FailurePlan* replaced_ = nullptr;  // calls may still be in it
};

}  // namespace understudy
