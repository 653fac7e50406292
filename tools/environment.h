// SPDX-License-Identifier: Apache-2.0
//
// The variables that lead a program to an installation: the library, the Python module, and what
// clients of Ascend look for. The same as in cmake/set_env.sh, which a test compares.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/installation.h"

namespace understudy::command {

struct Variable {
  std::string name;
  std::string value;
  // Whether it is a list with colons, which gets `value` as its first entry.
  bool is_list;
};

enum class NpuSmi : unsigned char { kWithout, kWith };
std::vector<Variable> variables_of(const Installation& installation, NpuSmi npu_smi);

// A variable and what it is to become; nothing: it is not to be set.
struct Change {
  std::string name;
  std::optional<std::string> value;
};
// What makes the environment of this process lead to them, or no longer, each variable once. Other
// entries of lists stay, in their order; those of a PATH that is not set are the usual folders.
std::vector<Change> changes_for(const std::vector<Variable>& variables);
std::vector<Change> changes_against(const std::vector<Variable>& variables);

// Where programs are searched for without a PATH.
inline constexpr const char* kUsualFolders = "/usr/local/bin:/usr/bin:/bin";

void apply(const std::vector<Change>& changes);

}  // namespace understudy::command
