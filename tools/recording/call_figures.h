// SPDX-License-Identifier: Apache-2.0
//
// The calls of a recording in figures: of each function, each thread, each failure; and the slowest
// of them.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/recording/recording.h"
#include "tools/recording/spread.h"

namespace understudy::command {

struct FunctionFigures {
  uint32_t function = 0;
  uint64_t failed = 0;
  Spread durations;
};

// Calls of a function that failed with one code.
struct FailureFigures {
  uint32_t function = 0;
  int32_t code = 0;
  uint64_t calls = 0;
};

struct ThreadFigures {
  uint64_t calls = 0;
  uint64_t failed = 0;
  uint64_t in_calls = 0;  // nanoseconds; a call from inside of another counts with that one
};

struct CallFigures {
  uint64_t calls = 0;
  uint64_t failed = 0;
  std::vector<FunctionFigures> functions;  // that were called, those that took most time first
  std::vector<FailureFigures> failures;    // the most frequent first
  std::vector<ThreadFigures> threads;      // as Recording::threads
  std::vector<uint32_t> slowest;           // of Recording::calls, the slowest first
};

inline constexpr size_t kSlowestCalls = 20;

CallFigures call_figures(const Recording& recording);

}  // namespace understudy::command
