// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/report.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace understudy::command {

namespace {

constexpr size_t kColumns = 100;
// The text leaves out what JSON has.
constexpr size_t kLongestMessage = 1200;
constexpr size_t kMostShown = 3;  // failures of a test, and tests of a rule

std::string machine() {
  utsname names{};
  uname(&names);
  return std::string(names.sysname) + " " + names.release + ", " + names.machine;
}

std::string or_silence(const std::string& text) { return text.empty() ? "it does not tell" : text; }

// Every line of the text behind so many blanks.
std::string indented(std::string_view text, size_t columns) {
  std::string result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    result += std::string(columns, ' ') + std::string(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::string wrapped(const std::vector<std::string>& words) {
  std::string result;
  std::string line = " ";
  for (const std::string& word : words) {
    if (line.size() + 1 + word.size() > kColumns) {
      result += line + "\n";
      line = " ";
    }
    line += " " + word;
  }
  return result + line + "\n";
}

std::string code_sentence(const CodeDifference& code) {
  return code.call + " returned " + std::to_string(code.got) + ", expected " +
         std::to_string(code.expected);
}

// What a failed assertion says, without the words of gtest around it where it has a sentence of its
// own, "Actual: false (...)", and without the lines on where it was called from.
std::string sentence_of(const Failure& failure) {
  constexpr std::string_view kSentence = "Actual: false (";
  std::string text = failure.message.substr(0, failure.message.find("\nGoogle Test trace:"));
  const size_t start = text.find(kSentence);
  const size_t end = text.rfind(")\nExpected: true");
  if (start != text.npos && end != text.npos && start + kSentence.size() <= end) {
    text = text.substr(start + kSentence.size(), end - start - kSentence.size());
  }
  if (text.size() > kLongestMessage) text = text.substr(0, kLongestMessage) + " ...";
  return text;
}

std::string and_more(size_t count) {
  return count == 0 ? "" : "and " + std::to_string(count) + " more\n";
}

std::string test_text(const TestResult& result) {
  std::string text = "    " + result.test + "\n";
  if (!result.reason.empty()) text += indented(result.reason, 8);
  for (const CodeDifference& code : result.refused) text += indented(code_sentence(code), 8);
  const size_t shown = std::min(result.failures.size(), kMostShown);
  for (const Failure& failure : std::span(result.failures).first(shown)) {
    if (!failure.file.empty()) {
      text += "        " + failure.file + ":" + std::to_string(failure.line) + "\n";
    }
    text += indented(sentence_of(failure), 8);
  }
  return text + indented(and_more(result.failures.size() - shown), 8);
}

nlohmann::json test_json(const TestResult& result) {
  nlohmann::json object = {{"test", result.test}, {"outcome", name_of(result.outcome)}};
  if (!result.reason.empty()) object["reason"] = result.reason;
  for (const Failure& failure : result.failures) {
    object["failures"].push_back(
        {{"file", failure.file}, {"line", failure.line}, {"message", failure.message}});
  }
  const auto add_codes = [&](const std::vector<CodeDifference>& codes, bool is_accepted) {
    for (const CodeDifference& code : codes) {
      object["codes"].push_back({{"call", code.call},
                                 {"expected", code.expected},
                                 {"got", code.got},
                                 {"accepted", is_accepted}});
    }
  };
  add_codes(result.refused, false);
  add_codes(result.accepted, true);
  return object;
}

// Of the table's rules those that a test is about, each with its tests.
std::vector<RuleVerdict> verdicts_of(const std::map<std::string, TestResult>& results,
                                     std::span<const std::string> wanted) {
  std::map<const Rule*, RuleVerdict> by_rule;  // rules of one array: in its order
  for (const auto& [test, result] : results) {
    for (const Rule* rule : rules_of_test(test)) {
      if (!rule->is_among(wanted)) continue;
      RuleVerdict& verdict = by_rule.try_emplace(rule, RuleVerdict{rule, {}, {}}).first->second;
      verdict.outcome = std::max(verdict.outcome, result.outcome);
      verdict.tests.push_back(&result);
    }
  }
  std::vector<RuleVerdict> verdicts;
  for (auto& [rule, verdict] : by_rule) verdicts.push_back(std::move(verdict));
  return verdicts;
}

// Why none of a rule's tests applies: the first reason, and whether there are others.
std::string shared_reason(const RuleVerdict& verdict) {
  const std::string& first = verdict.tests.front()->reason;
  const bool is_only = std::all_of(verdict.tests.begin(), verdict.tests.end(),
                                   [&](const TestResult* test) { return test->reason == first; });
  return is_only ? first : first + ", and for other reasons";
}

Counts counts_of(const std::vector<RuleVerdict>& verdicts) {
  Counts counts;
  for (const RuleVerdict& verdict : verdicts) {
    switch (verdict.outcome) {
      case Outcome::kNotApplicable:
        ++counts.not_applicable;
        break;
      case Outcome::kHolds:
        ++counts.hold;
        break;
      case Outcome::kDiffers:
        ++counts.differ;
        break;
      case Outcome::kHung:
      case Outcome::kCrashed:
        ++counts.crashed;
        break;
    }
  }
  return counts;
}

}  // namespace

ConformanceReport::ConformanceReport(LibraryDescription library, bool is_foreign,
                                     std::span<const std::string> wanted,
                                     std::map<std::string, TestResult> results, double seconds)
    : library_(std::move(library)),
      is_foreign_(is_foreign),
      results_(std::move(results)),
      seconds_(seconds),
      verdicts_(verdicts_of(results_, wanted)),
      counts_(counts_of(verdicts_)) {}

std::string ConformanceReport::text() const {
  return head() + section(Outcome::kDiffers) + section(Outcome::kCrashed) +
         section(Outcome::kHung) + accepted_section() + not_applicable_section() + hold_section() +
         last_line();
}

std::string ConformanceReport::head() const {
  std::ostringstream text;
  text << "understudy conformance " US_VERSION << "\n"
       << "library   " << library_.file << (is_foreign_ ? "" : " (Understudy)") << "\n"
       << "version   runtime " << or_silence(library_.runtime_version) << ", package "
       << or_silence(library_.package_version) << "\n"
       << "chip      " << or_silence(library_.soc) << ", product " << library_.product << ", ";
  if (library_.devices < 0) {
    text << "number of devices unknown\n";
  } else {
    text << library_.devices << (library_.devices == 1 ? " device\n" : " devices\n");
  }
  if (library_.init_code != 0) text << "aclInit   answers " << library_.init_code << "\n";
  text << "machine   " << machine() << "\n"
       << "tests     " << results_.size() << " of " << verdicts_.size() << " rules, "
       << static_cast<long>(seconds_ + 0.5) << " s\n";
  return text.str();
}

std::string ConformanceReport::section(Outcome outcome) const {
  std::string text;
  for (const RuleVerdict& verdict : verdicts_) {
    if (verdict.outcome != outcome) continue;
    text += "\n" + std::string(verdict.rule->id) + " " + std::string(name_of(outcome)) + ": " +
            std::string(verdict.rule->text) + "\n";
    size_t bad = 0;
    for (const TestResult* test : verdict.tests) {
      if (test->outcome >= Outcome::kDiffers && ++bad <= kMostShown) text += test_text(*test);
    }
    text += indented(and_more(bad - std::min(bad, kMostShown)), 4);
  }
  return text;
}

std::string ConformanceReport::accepted_section() const {
  std::set<std::string> lines;
  for (const auto& [test, result] : results_) {
    for (const CodeDifference& code : result.accepted) {
      std::string ids;
      for (const Rule* rule : rules_of_test(test)) ids += std::string(rule->id) + " ";
      lines.insert("  " + ids + code_sentence(code) + "\n");
    }
  }
  if (lines.empty()) return "";
  std::string text = "\nOther codes than ours, as right as ours:\n";
  for (const std::string& line : lines) text += line;
  return text;
}

std::string ConformanceReport::not_applicable_section() const {
  std::map<std::string, std::vector<std::string>> ids_by_reason;
  for (const RuleVerdict& verdict : verdicts_) {
    if (verdict.outcome != Outcome::kNotApplicable) continue;
    ids_by_reason[shared_reason(verdict)].emplace_back(verdict.rule->id);
  }
  std::string text;
  for (const auto& [reason, ids] : ids_by_reason) {
    text += "\nNot applicable, " + reason + ":\n" + wrapped(ids);
  }
  return text;
}

std::string ConformanceReport::hold_section() const {
  std::vector<std::string> ids;
  for (const RuleVerdict& verdict : verdicts_) {
    if (verdict.outcome == Outcome::kHolds) ids.emplace_back(verdict.rule->id);
  }
  return ids.empty() ? "" : "\nHold:\n" + wrapped(ids);
}

std::string ConformanceReport::last_line() const {
  std::ostringstream text;
  text << "\n"
       << counts_.hold << " hold, " << counts_.differ << " differ, " << counts_.not_applicable
       << " not applicable, " << counts_.crashed << " crashed\n";
  return text.str();
}

nlohmann::json ConformanceReport::json() const {
  nlohmann::json rules = nlohmann::json::array();
  for (const RuleVerdict& verdict : verdicts_) {
    nlohmann::json tests = nlohmann::json::array();
    for (const TestResult* test : verdict.tests) tests.push_back(test_json(*test));
    rules.push_back({{"rule", verdict.rule->id},
                     {"text", verdict.rule->text},
                     {"decision", verdict.rule->is_decision},
                     {"state", verdict.rule->is_state},
                     {"outcome", name_of(verdict.outcome)},
                     {"tests", std::move(tests)}});
  }
  return {{"understudy", US_VERSION},
          {"library",
           {{"file", library_.file},
            {"foreign", is_foreign_},
            {"runtime_version", library_.runtime_version},
            {"package_version", library_.package_version},
            {"soc", library_.soc},
            {"product", library_.product},
            {"devices", library_.devices},
            {"init", library_.init_code}}},
          {"machine", machine()},
          {"seconds", seconds_},
          {"rules", std::move(rules)},
          {"counts",
           {{"hold", counts_.hold},
            {"differ", counts_.differ},
            {"not_applicable", counts_.not_applicable},
            {"crashed", counts_.crashed}}}};
}

}  // namespace understudy::command
