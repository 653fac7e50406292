// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/call_roles.h"

#include <algorithm>

namespace understudy::command {

namespace {

ParameterRole parse_role(std::string_view word) {
  ParameterRole role;
  if (word.starts_with('>')) {
    role.is_written = true;
    word.remove_prefix(1);
  } else if (word.starts_with('-')) {
    role.ends = true;
    word.remove_prefix(1);
  }
  role.letter = word.front();
  word.remove_prefix(1);
  if (word.starts_with('=')) {
    role.is_alike = true;
    word.remove_prefix(1);
  }
  if (!word.empty()) role.size = static_cast<int8_t>(word.front() - '0');
  if (word.size() == 3) role.factor = static_cast<int8_t>(word.back() - '0');
  return role;
}

}  // namespace

std::vector<ParameterRole> parse_roles(std::string_view roles) {
  std::vector<ParameterRole> parsed;
  while (!roles.empty()) {
    const size_t end = std::min(roles.find(' '), roles.size());
    if (end != 0) parsed.push_back(parse_role(roles.substr(0, end)));
    roles.remove_prefix(std::min(end + 1, roles.size()));
  }
  return parsed;
}

}  // namespace understudy::command
