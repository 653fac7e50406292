// SPDX-License-Identifier: Apache-2.0
//
// The lines of a recorded stack, as functions in files: "fill at kv.cc:41", of Python "kv.py:41
// fill". What has another form is a function without a place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/recording/recording.h"

namespace understudy::command {

struct StackLine {
  std::string_view function;
  std::string_view file;
  uint64_t line = 0;
};

StackLine parse_stack_line(std::string_view text);
// "fill (kv.cc:41)"
std::string label_of(const StackLine& line);

// Where a call was made, the innermost first and at most 256 of them: by its stack, or where that
// is not known the function that was called alone. Empty if neither is known.
std::vector<StackLine> stack_lines(const Recording& recording, uint32_t stack, uint32_t call);

}  // namespace understudy::command
