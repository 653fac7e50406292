// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace understudy::platform {

// The whole content of a regular or kernel file; nothing if it is missing, unreadable, something
// else, or absurdly long.
std::optional<std::string> read_text_file(const std::string& path);
// Makes the file, or puts the text in the place of what it held, in one step for readers.
Result<void> replace_text_file(const std::string& path, const std::string& text);
// When a file was written last; nothing if there is none.
std::optional<std::chrono::system_clock::time_point> modified_at(const std::string& path);

// A variable of the environment; nothing if it is unset.
std::optional<std::string> environment_variable(const char* name);
// The names of all that begin like this and are not set to nothing.
std::vector<std::string> environment_names(std::string_view beginning);

}  // namespace understudy::platform
