// SPDX-License-Identifier: Apache-2.0
//
// Becoming another program.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace understudy::command {

// The file that a shell would execute for the name: itself if there is a slash in it, else the
// first one on PATH that can be executed, else one there that cannot.
std::optional<std::string> find_program(const std::string& name);

// Executes a program, in place of this process, with the environment of this process. Returns only
// if it cannot be: the exit status, after a sentence on stderr.
int become(const std::vector<std::string>& program);

}  // namespace understudy::command
