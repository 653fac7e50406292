// SPDX-License-Identifier: Apache-2.0
//
// Call stacks for people: a line per frame, with file and line where there is debug information.
// To find the place of a frame takes long: it is done for what is told.
// Any thread may call anything; may throw std::bad_alloc.
#pragma once

#include <string>
#include <vector>

#include "platform/call_stack.h"

namespace understudy {

struct StackFrame {
  std::string place;          // "kv.cc:41", or "program+0x11f2" without debug information
  std::string function;       // empty: not known
  bool is_of_system = false;  // in a library of C or C++
};

// The frames of the program, from the call outwards, as far as they help: what starts programs and
// threads is left out.
std::vector<StackFrame> frames_of(const platform::CallStack* stack);
// The innermost place of the program whose line is known, else the innermost of all; "an unknown
// place" if there is none.
std::string place_of(const platform::CallStack* stack);

}  // namespace understudy
