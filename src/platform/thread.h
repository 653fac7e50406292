// SPDX-License-Identifier: Apache-2.0
//
// Threads of the library's own, and what can be known of any thread.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace understudy::platform {

// Starts a detached thread. It takes no signals but those of its own faults, so that
// the program's handlers run on the program's threads, and cannot be cancelled.
Result<void> start_thread(const char* name, void (*body)(void*), void* argument);

// How many processors this process may use at this moment.
unsigned usable_processors();

// How many threads the process has, but for those that start_thread has started; 0: not known.
unsigned program_threads();

// The number that pthread_self gives, by which programs name a thread.
uint64_t thread_identity();
// The number that the kernel's tools show.
uint32_t kernel_thread_id();

}  // namespace understudy::platform
