// SPDX-License-Identifier: Apache-2.0
//
// The figures of a recording for programs. Times are nanoseconds since the recording began; the
// host is device -1; what is not known is null.
#pragma once

#include <string>

#include "tools/json_output.h"
#include "tools/recording/recording.h"
#include "tools/recording/summary.h"

namespace understudy::command {

Json trace_json(const std::string& file, const Recording& recording, const Summary& summary);

}  // namespace understudy::command
