// SPDX-License-Identifier: Apache-2.0
//
// The rules of docs/rules/, compiled in: what a report names, and which codes of another library
// are as right as ours. Constant; any thread may read it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace understudy::command {

struct Rule {
  std::string_view id;  // UNMAP-03
  std::string_view text;
  bool is_decision;  // its code is this project's choice: any non-zero code is as right
  bool is_state;     // a mistake of state (†): drivers may answer 507899 as well

  std::string_view group() const { return id.substr(0, id.rfind('-')); }
  // Whether it, or its group, is among these names; an empty list has all rules.
  bool is_among(std::span<const std::string> names) const;
  // Whether a library that is not ours may fail with this code where another one is expected.
  bool accepts(int code) const;
};

// In the order of the groups' names.
std::span<const Rule> rule_table();

// The rules that a test proves: its name begins with their IDs, Suite.MAP_01_MAP_02_What. Empty for
// a test that is about something else.
std::vector<const Rule*> rules_of_test(std::string_view test);

}  // namespace understudy::command
