// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/rule_table.h"

#include <algorithm>
#include <string>

namespace understudy::command {

namespace {

constexpr Rule kRules[] = {
#include "rule_table.inc"  // made by scripts/make_rule_table.py
};

constexpr int kDriverInternalError = 507899;

bool is_digit(char character) { return character >= '0' && character <= '9'; }

// "MAP_01_rest" -> the rule MAP-01, and "rest" is left. Null if the text begins otherwise.
const Rule* take_rule(std::string_view& text) {
  const size_t mark = text.find('_');
  if (mark == text.npos || text.size() < mark + 4 || !is_digit(text[mark + 1]) ||
      !is_digit(text[mark + 2]) || text[mark + 3] != '_') {
    return nullptr;
  }
  std::string id(text.substr(0, mark + 3));
  id[mark] = '-';
  const Rule* const found = std::find_if(std::begin(kRules), std::end(kRules),
                                         [&](const Rule& rule) { return rule.id == id; });
  text.remove_prefix(mark + 4);
  return found == std::end(kRules) ? nullptr : found;
}

}  // namespace

bool Rule::is_among(std::span<const std::string> names) const {
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return name == id || name == group();
         });
}

bool Rule::accepts(int code) const {
  return code != 0 && (is_decision || (is_state && code == kDriverInternalError));
}

std::span<const Rule> rule_table() { return kRules; }

std::vector<const Rule*> rules_of_test(std::string_view test) {
  std::vector<const Rule*> rules;
  test.remove_prefix(std::min(test.size(), test.find('.') + 1));
  while (const Rule* const rule = take_rule(test)) rules.push_back(rule);
  return rules;
}

}  // namespace understudy::command
