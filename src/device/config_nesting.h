// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace understudy {

// The largest number of parts of a dotted key, or of brackets inside each other, in a TOML text.
// Found without parsing it: a parser builds a table per part, and takes as deep a stack to end
// them. For a text that is not TOML it is some number that a parser does not pass before it
// refuses the text.
unsigned toml_nesting(std::string_view text);

}  // namespace understudy
