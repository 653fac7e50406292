// SPDX-License-Identifier: Apache-2.0
#include "platform/shared_mutex.h"

#include <cerrno>
#include <ctime>

namespace understudy::platform {

void SharedMutex::make() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex_, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

SharedLock SharedMutex::lock(Deadline deadline) {
  int result = pthread_mutex_trylock(&mutex_);
  if (result == EBUSY) {
    const auto left = std::chrono::ceil<std::chrono::nanoseconds>(deadline - Clock::now());
    timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    constexpr int64_t kSecond = 1'000'000'000;
    const int64_t nanoseconds = until.tv_nsec + std::max<int64_t>(left.count(), 0);
    until.tv_sec += nanoseconds / kSecond;
    until.tv_nsec = nanoseconds % kSecond;
    result = pthread_mutex_timedlock(&mutex_, &until);
  }
  if (result == 0) return SharedLock::kTaken;
  if (result != EOWNERDEAD) return SharedLock::kTimedOut;
  pthread_mutex_consistent(&mutex_);
  return SharedLock::kTakenFromTheDead;
}

void SharedMutex::unlock() { pthread_mutex_unlock(&mutex_); }

}  // namespace understudy::platform
