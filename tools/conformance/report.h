// SPDX-License-Identifier: Apache-2.0
//
// What a conformance run found, by rule, as text for people and as JSON. It names what is needed to
// judge it elsewhere: library, versions, machine, expected and seen.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/conformance/library_under_test.h"
#include "tools/conformance/rule_table.h"
#include "tools/conformance/test_result.h"

namespace understudy::command {

// One rule and its tests. The worst test decides.
struct RuleVerdict {
  const Rule* rule;
  Outcome outcome = Outcome::kNotApplicable;
  std::vector<const TestResult*> tests;
};

struct Counts {
  size_t hold = 0;
  size_t differ = 0;
  size_t not_applicable = 0;
  size_t crashed = 0;  // with those that hung
};

class ConformanceReport {
 public:
  // `wanted` names the rules and groups to tell of, as Rule::is_among() reads it.
  ConformanceReport(LibraryDescription library, bool is_foreign,
                    std::span<const std::string> wanted, std::map<std::string, TestResult> results,
                    double seconds);

  bool all_hold() const { return counts_.differ == 0 && counts_.crashed == 0; }
  std::string text() const;
  nlohmann::json json() const;

 private:
  std::string head() const;
  std::string section(Outcome outcome) const;
  std::string accepted_section() const;
  std::string not_applicable_section() const;
  std::string hold_section() const;
  std::string last_line() const;

  const LibraryDescription library_;
  const bool is_foreign_;
  const std::map<std::string, TestResult> results_;
  const double seconds_;
  std::vector<RuleVerdict> verdicts_;  // of rules that have a test here, in the order of the table
  Counts counts_;
};

}  // namespace understudy::command
