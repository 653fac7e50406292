// SPDX-License-Identifier: Apache-2.0
#include "tools/environment.h"

#include <algorithm>
#include <cstdlib>

namespace understudy::command {

namespace {

std::optional<std::string> variable_of_this_process(const std::string& name) {
  const char* const value = getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// The list without an entry; nothing if no other is left. An empty entry means the current
// directory to some readers, and stays.
std::optional<std::string> without(const std::string& list, const std::string& entry) {
  std::optional<std::string> rest;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(':', begin), list.size());
    const std::string each = list.substr(begin, end - begin);
    begin = end + 1;
    if (each != entry) rest = rest ? *rest + ":" + each : each;
  }
  return rest;
}

// What an unset variable stands for. Without PATH programs are found in default folders; a
// PATH of ours alone would hide them.
std::optional<std::string> unset_value(const std::string& name) {
  return name == "PATH" ? std::optional<std::string>(kUsualFolders) : std::nullopt;
}

// What a variable is by now: as a change before left it, else as this process has it.
Change& change_of(std::vector<Change>& changes, const std::string& name) {
  for (Change& change : changes) {
    if (change.name == name) return change;
  }
  return changes.emplace_back(Change{name, variable_of_this_process(name)});
}

bool has_entries(const std::optional<std::string>& list) { return list && !list->empty(); }

}  // namespace

std::vector<Variable> variables_of(const Installation& installation, NpuSmi npu_smi) {
  std::vector<Variable> variables = {
      {"ASCEND_HOME_PATH", installation.home(), false},
      {"ASCEND_TOOLKIT_HOME", installation.home(), false},
      {"LD_LIBRARY_PATH", installation.libraries(), true},
      {"PATH", installation.commands(), true},
      {"CMAKE_PREFIX_PATH", installation.home(), true},
      {"PYTHONPATH", installation.python(), true},
  };
  if (npu_smi == NpuSmi::kWith) variables.push_back({"PATH", installation.npu_smi_folder(), true});
  return variables;
}

std::vector<Change> changes_for(const std::vector<Variable>& variables) {
  std::vector<Change> changes;
  for (const Variable& variable : variables) {
    std::optional<std::string>& value = change_of(changes, variable.name).value;
    if (!value) value = unset_value(variable.name);
    std::optional<std::string> rest;
    if (variable.is_list && has_entries(value)) rest = without(*value, variable.value);
    value = rest ? variable.value + ":" + *rest : variable.value;
  }
  return changes;
}

std::vector<Change> changes_against(const std::vector<Variable>& variables) {
  std::vector<Change> changes;
  for (const Variable& variable : variables) {
    // A shell may have one that it does not export, which is none of ours.
    if (!variable_of_this_process(variable.name)) continue;
    std::optional<std::string>& value = change_of(changes, variable.name).value;
    if (variable.is_list && has_entries(value)) {
      value = without(*value, variable.value);
    } else if (value == variable.value) {
      value.reset();
    }
  }
  return changes;
}

void apply(const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    if (change.value) {
      setenv(change.name.c_str(), change.value->c_str(), 1);
    } else {
      unsetenv(change.name.c_str());
    }
  }
}

}  // namespace understudy::command
