// SPDX-License-Identifier: Apache-2.0
//
// Moves many bytes in the way that is fastest at their size on this machine: the C library's copy,
// stores that go past the caches, or the processor's own string move. Which one that is differs
// from machine to machine by a factor of two, so the engine learns it from the copies themselves:
// a large copy is moved in steps, the first ones try each way, the rest use the best, and now and
// then another way gets its chance again. Whether it pays to let other threads help is learnt in
// the same manner. Any thread may call anything.
#pragma once

#include <cstddef>

#include "memory/copy_helpers.h"

namespace understudy {

// The ranges do not overlap. Complete, also for other threads, on return.
void move_many_bytes(void* destination, const void* source, size_t count);

// From this size on it pays to choose.
inline constexpr size_t kManyBytes = 64 * 1024;
// From this size on it may pay to have help.
inline constexpr size_t kWorthHelp = 16 * 1024 * 1024;

// Who is asked for help; null for nobody. They must outlive all copies.
void set_copy_helpers(CopyHelpers* helpers);

}  // namespace understudy
