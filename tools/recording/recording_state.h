// SPDX-License-Identifier: Apache-2.0
//
// Whether a recording has grown, and whether it still may: found out without reading it as a whole,
// since that of a long run takes seconds. What is written through a mapping need not change the
// file's time.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace understudy::command {

struct RecordingState {
  uint64_t fingerprint = 0;  // another one if there are more records
  bool has_ended = false;    // all processes that recorded are known to be gone
  bool operator==(const RecordingState&) const = default;
};

// Fails with a sentence if the file cannot be read or is no recording.
Result<RecordingState> look_at_recording(const std::string& path);

}  // namespace understudy::command
