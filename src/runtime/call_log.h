// SPDX-License-Identifier: Apache-2.0
//
// Public calls and tasks in the log of the process, as they happen. Any thread may call anything;
// nothing throws.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "stream/task_failure.h"

namespace understudy {

// This moment in nanoseconds, never 0.
uint64_t log_time() noexcept;
// A call that ended, and began at that moment. Whether calls are logged is up to the caller.
void log_call(const char* function, int32_t code, uint64_t begun) noexcept;

// Codes are published ones.
void log_failed_call(const char* function, int32_t code, const Error& error) noexcept;
void log_failed_task(int32_t code, const TaskFailure& failure) noexcept;

}  // namespace understudy
