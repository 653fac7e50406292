// SPDX-License-Identifier: Apache-2.0
//
// Memory by the stacks that allocated it, at the moment of the peak or at the end. As text, the
// folded stacks that flamegraph.pl, speedscope and others read: "main (a.cc:9);fill (a.cc:4) 4096".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/recording/recording.h"

namespace understudy::command {

struct FoldedStack {
  std::vector<std::string> frames;  // the outermost first, without ";" in them; at least one
  uint64_t bytes = 0;
};

struct FoldedMemory {
  std::string title;                // "device 0: 40 MiB at the peak, 120 ms after the beginning"
  std::vector<FoldedStack> stacks;  // each once, in the order of their frames
};

// Of the device with the largest peak, when that was first reached; of the host if no device had
// memory.
FoldedMemory memory_at_peak(const Recording& recording);
// Of all objects that are alive at the end. Where they are is the outermost frame, if there are
// several places.
FoldedMemory memory_at_end(const Recording& recording);

std::string folded_text(const FoldedMemory& memory);

}  // namespace understudy::command
