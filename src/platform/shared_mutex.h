// SPDX-License-Identifier: Apache-2.0
//
// A lock for threads of several processes, in memory that they share. If a process dies while it
// has the lock, the next one gets it and is told so.
#pragma once

#include <pthread.h>

#include "base/deadline.h"

namespace understudy::platform {

enum class SharedLock : uint8_t {
  kTaken,
  kTakenFromTheDead,  // what the lock protects may be half changed: repair it
  kTimedOut,
};

class SharedMutex {
 public:
  // Once, before anyone uses it.
  void make();
  SharedLock lock(Deadline deadline);
  void unlock();

 private:
  pthread_mutex_t mutex_;
};

}  // namespace understudy::platform
