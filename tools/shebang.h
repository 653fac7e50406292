// SPDX-License-Identifier: Apache-2.0
//
// Scripts: the interpreter that their first line names (execve(2)).
#pragma once

#include <string>
#include <vector>

namespace understudy::command {

// As many as Linux follows, from a script that has a script for its interpreter and so on.
inline constexpr int kMostInterpreters = 5;

// `words` is a file with its arguments. If the file is a script, its interpreter is put in front;
// "env NAME" means the one on PATH. Whether it was one.
bool follow_shebang(std::vector<std::string>& words);

// Whether a file is a shell, by its name.
bool is_shell(const std::string& path);

}  // namespace understudy::command
