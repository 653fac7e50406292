// SPDX-License-Identifier: Apache-2.0
//
// Which public calls are made to fail on purpose (key `fail`). A rule is written as
//
//   FUNCTION[|FUNCTION...][@SITE]:CONDITION[,code=CODE][,sticky]
//
// FUNCTION is the name of a function, of a group of device/public_calls.h, or `all`. SITE is a
// place of the program, as platform/call_site.h names it. CONDITION is one of nth=N, every=N,
// probability=P[,seed=N], from_size=SIZE and after=TIME.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace understudy {

struct NthCall {
  uint64_t number;  // from 1
};
struct EveryCall {
  uint64_t interval;
};
struct RandomCall {
  static constexpr uint64_t kOften = uint64_t{1} << 32;
  uint64_t threshold;  // how many of kOften calls fail
  uint64_t seed;
};
struct LargeCall {
  uint64_t bytes;  // or more
};
struct LateCall {
  std::chrono::nanoseconds after;  // since the first call of the process
};

struct FailureRule {
  std::string text;                    // as it was written
  std::vector<std::string> functions;  // their names; empty: all
  std::string site;                    // empty: any
  std::variant<NthCall, EveryCall, RandomCall, LargeCall, LateCall> condition;
  std::optional<int32_t> code;  // none: that of exhausted memory or of an internal error
  bool sticky = false;          // from the first failure on every call fails
};

// Rules are separated by semicolons. The error says what is wrong with which rule.
Result<std::vector<FailureRule>> parse_failure_rules(std::string_view text);

}  // namespace understudy
