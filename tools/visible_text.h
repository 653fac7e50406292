// SPDX-License-Identifier: Apache-2.0
//
// Texts of unknown origin on a terminal: names of programs and functions, lines of stacks. What a
// terminal would obey, or cannot show, becomes a question mark; widths are columns, not bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace understudy::command {

enum class Letters : unsigned char { kAscii, kUtf8 };

// On one line.
std::string visible_text(std::string_view text, Letters letters);
// Columns that a visible text takes.
size_t columns_of(std::string_view visible);
// Bytes of the front of a visible text that take so many columns at most.
size_t columns_that_fit(std::string_view visible, size_t columns);
// Cut to a number of columns, with two dots at the end of what was cut.
std::string cut_to_columns(const std::string& visible, size_t columns);

}  // namespace understudy::command
