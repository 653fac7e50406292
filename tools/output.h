// SPDX-License-Identifier: Apache-2.0
//
// Standard output, which may be a full disk or a pipe that was closed. What cannot be written is a
// failure, told once, at the end of the command (main.cc).
#pragma once

namespace understudy::command {

// Writes what was printed so far. False if that, or anything before it, could not be written: what
// prints again and again ends then.
bool flush_output();

// Why it could not, for a sentence.
const char* output_failure();

}  // namespace understudy::command
