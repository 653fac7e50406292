// SPDX-License-Identifier: Apache-2.0
//
// Sleeping on a word of memory until another thread of the process changes it and says so.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/deadline.h"

namespace understudy::platform {

// Why a sleep ended.
enum class SleepEnd : uint8_t {
  kWoken,       // by another thread, or for no reason
  kNotAsleep,   // the word was not as expected
  kTimeOver,    // the deadline has passed
  kInterrupted  // by a signal
};

// Sleeps while the word is `expected`, until woken or the time has come. May return early.
SleepEnd sleep_on(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline);

// The word need not exist any more: only its address is looked at. Returns how many threads slept
// on it and were woken.
int wake_one(const std::atomic<uint32_t>& word);
int wake_all(const std::atomic<uint32_t>& word);

// The same for a word in memory that processes share.
SleepEnd sleep_on_shared(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline);
int wake_all_processes(const std::atomic<uint32_t>& word);

}  // namespace understudy::platform
