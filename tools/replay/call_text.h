// SPDX-License-Identifier: Apache-2.0
//
// A recorded call in words.
#pragma once

#include <string>

#include "tools/recording/recording.h"

namespace understudy::command {

// "aclrtMalloc(size 4 GiB, policy 0)": what was given to it.
std::string call_text(const Recording& recording, const RecordedCall& call);
// "fill at kv.cc:41": the innermost place; empty if it is not known.
std::string place_text(const Recording& recording, const RecordedCall& call);
// "process 12 (./program), thread 13".
std::string thread_text(const Recording& recording, uint32_t thread);

}  // namespace understudy::command
