// SPDX-License-Identifier: Apache-2.0
//
// Where a Python interpreter would import the module `acl` from. Only the interpreter knows: it is
// started for the question, with the options that it is given for a program. The module is not
// imported.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace understudy::command {

// Whether a file is a Python interpreter, by its name.
bool is_python(const std::string& path);

struct PythonAnswer {
  std::string interpreter;  // the program that runs in the end, behind links and wrappers
  std::string module;       // the file of acl; empty if there is none
};
// `words` is the interpreter with its arguments. Nothing if it does not answer.
std::optional<PythonAnswer> find_acl_module(const std::vector<std::string>& words);

}  // namespace understudy::command
