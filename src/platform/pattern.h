// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace understudy::platform {

// Whether all of a text is what a pattern of the shell says: * is anything, ? any letter, [ab] one
// of these.
bool matches_pattern(const std::string& pattern, const std::string& text);

}  // namespace understudy::platform
