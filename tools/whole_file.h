// SPDX-License-Identifier: Apache-2.0
//
// A file that is written at once and is whole at any time: it is made beside the one of its name
// and takes its place at the end. What was there before stays until then. A pipe, a device, a file
// of another user, one with several names, and one in a folder where none can be made are written
// in place.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace understudy::command {

// Whether the file can be written, as far as that can be tried without touching it.
Result<void> check_writable(const std::string& path);
Result<void> write_whole_file(const std::string& path, std::string_view text);

}  // namespace understudy::command
