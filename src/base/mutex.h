// SPDX-License-Identifier: Apache-2.0
//
// A mutex of one word that clang's thread-safety analysis and the lock-order check understand.
// Uncontended it costs one atomic operation each way, which is what most of ours are; contended it
// sleeps. Take it with a named MutexLock and call `_locked` functions; the analysis does not see
// through lambdas.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/lock_rank.h"

#if defined(__clang__)
#define US_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define US_THREAD_ANNOTATION(x)
#endif
#define US_CAPABILITY(name) US_THREAD_ANNOTATION(capability(name))
#define US_SCOPED_CAPABILITY US_THREAD_ANNOTATION(scoped_lockable)
#define US_GUARDED_BY(mutex) US_THREAD_ANNOTATION(guarded_by(mutex))
#define US_PT_GUARDED_BY(mutex) US_THREAD_ANNOTATION(pt_guarded_by(mutex))
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
// Stops the program with one sentence if the calling thread holds a lock. `action` is what it
// begins, which may take long or wait for other processes.
void check_no_lock_held(const char* action);
#else
inline void note_lock_taken(LockRank) {}
inline void note_lock_released(LockRank) {}
inline void check_no_lock_held(const char*) {}
#endif

class US_CAPABILITY("mutex") Mutex {
 public:
  explicit Mutex(LockRank rank) : rank_(rank) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() US_ACQUIRE() {
    note_lock_taken(rank_);
    uint32_t free = kFree;
    if (!state_.compare_exchange_strong(free, kTaken, std::memory_order_acquire)) [[unlikely]] {
      wait_and_lock();
    }
  }
  void unlock() US_RELEASE() {
    if (state_.exchange(kFree, std::memory_order_release) == kWaitedFor) [[unlikely]] {
      state_.notify_one();
    }
    note_lock_released(rank_);
  }

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kTaken = 1;
  static constexpr uint32_t kWaitedFor = 2;  // taken, and a thread may sleep

  void wait_and_lock();

  std::atomic<uint32_t> state_{kFree};
  const LockRank rank_;
};

// For a few instructions at a time, without calls that may wait: giving it back is a plain store,
// because no thread needs to be woken. A thread that meets it spins, then looks again every few
// microseconds.
class US_CAPABILITY("mutex") BriefMutex {
 public:
  explicit BriefMutex(LockRank rank) : rank_(rank) {}
  BriefMutex(const BriefMutex&) = delete;
  BriefMutex& operator=(const BriefMutex&) = delete;

  void lock() US_ACQUIRE() {
    note_lock_taken(rank_);
    if (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait_and_lock();
  }
  void unlock() US_RELEASE() {
    taken_.store(false, std::memory_order_release);
    note_lock_released(rank_);
  }

 private:
  void wait_and_lock();

  std::atomic<bool> taken_{false};
  const LockRank rank_;
};

template <typename Lockable>
class US_SCOPED_CAPABILITY ScopedLock {
 public:
  explicit ScopedLock(Lockable& mutex) US_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~ScopedLock() US_RELEASE() { mutex_.unlock(); }
  ScopedLock(const ScopedLock&) = delete;
  ScopedLock& operator=(const ScopedLock&) = delete;

 private:
  Lockable& mutex_;
};

using MutexLock = ScopedLock<Mutex>;
using BriefLock = ScopedLock<BriefMutex>;

}  // namespace understudy
