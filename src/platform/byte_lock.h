// SPDX-License-Identifier: Apache-2.0
//
// Locks on single bytes of a file, by which processes know that another one lives: the kernel drops
// them when their process ends, however that happens, and no child inherits them. They belong to
// the process: closing any descriptor of the file drops them all, so one place opens it.
#pragma once

#include <cstdint>

#include "base/deadline.h"

namespace understudy::platform {

// False if another process has it.
bool try_lock_byte(int file, uint64_t byte);
// The same, but tries until the deadline.
bool lock_byte(int file, uint64_t byte, Deadline deadline);
void unlock_byte(int file, uint64_t byte);
// Whether another process has a lock on a byte of the range.
bool is_locked_by_other(int file, uint64_t byte, uint64_t count = 1);

}  // namespace understudy::platform
