// SPDX-License-Identifier: Apache-2.0
#include "support/process_environment.h"

#include <unistd.h>

#include <cstring>
#include <string_view>

namespace understudy_test {

namespace {

bool is_overridden(const char* entry, const std::vector<Variable>& environment) {
  for (const Variable& variable : environment) {
    const std::string prefix = variable.first + "=";
    if (strncmp(entry, prefix.c_str(), prefix.size()) == 0) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> environment_with(const std::vector<Variable>& variables) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const bool shard =
        text.starts_with("GTEST_TOTAL_SHARDS=") || text.starts_with("GTEST_SHARD_INDEX=");
    if (!shard && !is_overridden(*entry, variables)) entries.emplace_back(*entry);
  }
  for (const Variable& variable : variables) {
    entries.push_back(variable.first + "=" + variable.second);
  }
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace understudy_test
