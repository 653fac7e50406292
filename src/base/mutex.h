// SPDX-License-Identifier: Apache-2.0
//
// A std::mutex that clang's thread-safety analysis and the lock-order check understand. Take it
// with a named MutexLock and call `_locked` functions; the analysis does not see through lambdas.
#pragma once

#include <mutex>

#include "base/lock_rank.h"

#if defined(__clang__)
#define US_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define US_THREAD_ANNOTATION(x)
#endif
#define US_CAPABILITY(name) US_THREAD_ANNOTATION(capability(name))
#define US_SCOPED_CAPABILITY US_THREAD_ANNOTATION(scoped_lockable)
#define US_GUARDED_BY(mutex) US_THREAD_ANNOTATION(guarded_by(mutex))
#define US_REQUIRES(...) US_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define US_EXCLUDES(...) US_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define US_ACQUIRE(...) US_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define US_TRY_ACQUIRE(...) US_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define US_RELEASE(...) US_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define US_NO_THREAD_SAFETY_ANALYSIS US_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace understudy {

#if defined(US_CHECK_INVARIANTS)
// Stops the program with one sentence if the calling thread holds a lock of this rank or below.
void note_lock_taken(LockRank rank);
void note_lock_released(LockRank rank);
#else
inline void note_lock_taken(LockRank) {}
inline void note_lock_released(LockRank) {}
#endif

class US_CAPABILITY("mutex") Mutex {
 public:
  explicit Mutex(LockRank rank) : rank_(rank) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() US_ACQUIRE() {
    note_lock_taken(rank_);
    mutex_.lock();
  }
  void unlock() US_RELEASE() {
    mutex_.unlock();
    note_lock_released(rank_);
  }

 private:
  std::mutex mutex_;
  const LockRank rank_;
};

class US_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) US_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() US_RELEASE() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace understudy
