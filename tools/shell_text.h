// SPDX-License-Identifier: Apache-2.0
//
// Commands for a shell, with values that may contain anything a path can.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace understudy::command {

enum class Shell : unsigned char { kPosix, kFish, kCsh };

// One line that exports a variable, or removes it if there is no value.
std::string assignment(Shell shell, std::string_view name, const std::optional<std::string>& value);

// The same for PATH, with these entries before those that the shell itself has, exported or not.
// The usual folders stand for those of a shell without any; fish and csh have some in any case.
std::string path_extension(Shell shell, const std::vector<std::string>& entries,
                           std::string_view usual_folders);

}  // namespace understudy::command
