// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/test_result.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "tools/conformance/rule_table.h"

namespace understudy::command {

namespace {

// The function that the dynamic linker did not find, by its last words; empty if it found all.
std::string missing_function(std::string_view text) {
  constexpr std::string_view kWords = "undefined symbol: ";
  const size_t found = text.find(kWords);
  if (found == text.npos) return "";
  const std::string_view rest = text.substr(found + kWords.size());
  return std::string(rest.substr(0, rest.find_first_of(" ,\n")));
}

std::string missing_function(const TestRecord& record, const ProcessEnd& end) {
  std::string function = missing_function(end.output);
  for (const Failure& failure : record.failures) {
    if (function.empty()) function = missing_function(failure.message);
  }
  return function;
}

// A failure may only tell how a process ended that the test started: its wait status.
std::optional<int> status_of_child(const Failure& failure) {
  for (const char* start :
       {"in a fresh process (wait status ", "the other process ended with wait status "}) {
    const size_t found = failure.message.find(start);
    if (found != std::string::npos) {
      return atoi(failure.message.c_str() + found + strlen(start));
    }
  }
  return std::nullopt;
}

std::string signal_sentence(int wait_status) {
  return std::string("ended by signal ") + std::to_string(WTERMSIG(wait_status)) + " (" +
         strsignal(WTERMSIG(wait_status)) + ")";
}

// How the test, or a process that it started, ended against its will; empty if none did.
std::string crash(const TestRecord& record, const ProcessEnd& end) {
  if (WIFSIGNALED(end.wait_status)) return signal_sentence(end.wait_status);
  for (const Failure& failure : record.failures) {
    const std::optional<int> status = status_of_child(failure);
    if (status && WIFSIGNALED(*status)) return signal_sentence(*status);
  }
  if (record.is_ended) return "";
  return "ended with exit status " + std::to_string(WEXITSTATUS(end.wait_status)) +
         " before the test was over";
}

void sort_codes(const TestRecord& record, TestResult& result) {
  const std::vector<const Rule*> rules = rules_of_test(result.test);
  for (const CodeDifference& code : record.codes) {
    const bool is_accepted = std::any_of(rules.begin(), rules.end(),
                                         [&](const Rule* rule) { return rule->accepts(code.got); });
    (is_accepted ? result.accepted : result.refused).push_back(code);
  }
}

// What a process said itself need not be told again by the one that waited for it, nor that it
// crashed, which is the reason of the result.
void copy_failures(const TestRecord& record, TestResult& result) {
  const auto is_about_child = [](const Failure& failure) {
    return status_of_child(failure).has_value();
  };
  const bool all = record.codes.empty() && result.outcome != Outcome::kCrashed &&
                   std::all_of(record.failures.begin(), record.failures.end(), is_about_child);
  for (const Failure& failure : record.failures) {
    if (all || !is_about_child(failure)) result.failures.push_back(failure);
  }
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kNotApplicable:
      return "not applicable";
    case Outcome::kHolds:
      return "holds";
    case Outcome::kDiffers:
      return "differs";
    case Outcome::kHung:
      return "hung";
    case Outcome::kCrashed:
      return "crashed";
  }
  return "";
}

TestResult judge(const std::string& test, const TestRecord& record, const ProcessEnd& end) {
  TestResult result;
  result.test = test;
  const std::string function = missing_function(record, end);
  if (function.starts_with("aclUnderstudy")) {
    result.outcome = Outcome::kNotApplicable;
    result.reason = "needs " + function + ", which only the software NPU has";
    return result;
  }
  if (!function.empty()) {
    result.outcome = Outcome::kDiffers;
    result.failures = {{"", 0, "the library has no function " + function}};
    return result;
  }
  if (end.is_hung) {
    result.outcome = Outcome::kHung;
    result.reason = "was not over when its time was up";
  } else if (std::string sentence = crash(record, end); !sentence.empty()) {
    result.outcome = Outcome::kCrashed;
    result.reason = std::move(sentence);
  }
  copy_failures(record, result);
  sort_codes(record, result);
  if (result.outcome != Outcome::kHolds) return result;
  if (!result.failures.empty() || !result.refused.empty()) {
    result.outcome = Outcome::kDiffers;
  } else if (!record.skip_reason.empty()) {
    result.outcome = Outcome::kNotApplicable;
    result.reason = record.skip_reason.substr(0, record.skip_reason.find('\n'));
  }
  return result;
}

}  // namespace understudy::command
