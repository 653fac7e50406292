// SPDX-License-Identifier: Apache-2.0
//
// Sleeping on a word of memory until another thread of the process changes it and says so.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace understudy::platform {

// Sleeps while the word is `expected`, until woken or the time has come. May return early.
void sleep_on(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline);

// The word need not exist any more: only its address is looked at.
void wake_one(const std::atomic<uint32_t>& word);
void wake_all(const std::atomic<uint32_t>& word);

// The same for a word in memory that processes share.
void sleep_on_shared(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline);
void wake_all_processes(const std::atomic<uint32_t>& word);

}  // namespace understudy::platform
