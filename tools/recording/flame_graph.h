// SPDX-License-Identifier: Apache-2.0
//
// A flame graph of memory: one SVG that needs nothing else. Widths are bytes; the outermost frames
// are at the top. A browser zooms into a frame that is clicked, and finds frames by their names;
// viewers without scripts show the whole.
#pragma once

#include <string>

#include "tools/recording/folded_stacks.h"

namespace understudy::command {

// Each frame is an element <g> with its sum of bytes in data-bytes and its depth in data-depth.
// Frames that are too narrow to be seen, below a ten-thousandth of all, are left out.
std::string flame_graph(const FoldedMemory& memory);

}  // namespace understudy::command
