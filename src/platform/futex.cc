// SPDX-License-Identifier: Apache-2.0
#include "platform/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

namespace understudy::platform {

namespace {

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

int wake(const std::atomic<uint32_t>& word, int threads, int flag) {
  // Fails for addresses without memory alone, where no thread can sleep.
  const long woken = syscall(SYS_futex, &word, FUTEX_WAKE | flag, threads, nullptr, nullptr, 0);
  return woken > 0 ? static_cast<int>(woken) : 0;
}

SleepEnd sleep(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline, int flag) {
  timespec until;
  timespec* limit = nullptr;
  if (deadline != kNever) {
    // The steady clock of libstdc++ is CLOCK_MONOTONIC, which is also what this call goes by.
    const auto since_boot = deadline.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
    until.tv_sec = seconds.count();
    until.tv_nsec = std::chrono::nanoseconds(since_boot - seconds).count();
    limit = &until;
  }
  if (syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | flag, expected, limit, nullptr,
              FUTEX_BITSET_MATCH_ANY) == 0) {
    return SleepEnd::kWoken;
  }
  switch (errno) {
    case ETIMEDOUT:
      return SleepEnd::kTimeOver;
    case EINTR:
      return SleepEnd::kInterrupted;
    default:
      return SleepEnd::kNotAsleep;
  }
}

}  // namespace

SleepEnd sleep_on(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) {
  return sleep(word, expected, deadline, FUTEX_PRIVATE_FLAG);
}

int wake_one(const std::atomic<uint32_t>& word) { return wake(word, 1, FUTEX_PRIVATE_FLAG); }
int wake_all(const std::atomic<uint32_t>& word) { return wake(word, INT_MAX, FUTEX_PRIVATE_FLAG); }

SleepEnd sleep_on_shared(const std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) {
  return sleep(word, expected, deadline, 0);
}

int wake_all_processes(const std::atomic<uint32_t>& word) { return wake(word, INT_MAX, 0); }

}  // namespace understudy::platform
