// SPDX-License-Identifier: Apache-2.0
//
// The last calls of the process, for people who want to know what led to a failure. Nothing here
// takes a lock or memory. Any thread may call anything.
#pragma once

#include <cstdint>
#include <vector>

namespace understudy {

struct RecentCall {
  const char* function = nullptr;
  int32_t code = 0;
  uint32_t thread = 0;
};

// A call has returned. REQUIRES: the name lives as long as the process.
void note_call(const char* function, int32_t code) noexcept;
// The last ones, the oldest first. Calls that return at this moment may be missing. May throw
// std::bad_alloc.
std::vector<RecentCall> recent_calls();

}  // namespace understudy
