// SPDX-License-Identifier: Apache-2.0
//
// What a configuration asks of a recording (keys `trace`, `trace_limit`, `trace_ring`,
// `trace_stacks`). A plain value.
#pragma once

#include <cstdint>
#include <string>

#include "base/sizes.h"

namespace understudy {

struct RecordingChoice {
  std::string file;             // empty: nothing is recorded
  uint64_t limit = kGiB;        // of the file, in bytes
  bool is_ring = false;         // when it is full, the oldest part is written anew
  bool records_stacks = false;  // of the calls
  // The program has begun it, maybe with objects that it had already. A recording that is there is
  // replaced, not continued.
  bool is_of_program = false;
};

}  // namespace understudy
