// SPDX-License-Identifier: Apache-2.0
//
// The lock of the ledger, which all processes of a server share. Its word is in the ledger and
// names the process that has it; a process that finds the holder dead takes the lock over and
// repairs what the holder may have left half changed. What the kernel offers for this (robust
// mutexes) goes by thread numbers, which mean different threads in different namespaces.
//
// Functions that need the lock say US_REQUIRES(ledger_held). A thread holds the lock of one server
// at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/deadline.h"
#include "base/mutex.h"
#include "base/result.h"

namespace understudy {

// How long a call waits for other processes in all. A call that needs the ledger several times
// passes one deadline to all of them.
inline constexpr std::chrono::seconds kLedgerPatience(5);
inline Deadline ledger_deadline() { return Clock::now() + kLedgerPatience; }
// A deadline for calls that must not wait: it has passed. They still take the lock from the dead.
inline constexpr Deadline kOneAttempt{};

enum class LedgerLocking : uint8_t {
  kTaken,
  kTakenFromTheDead,  // what the lock protects may be half changed: repair it
  kTimedOut,
};

// The word as it lies in the ledger.
class LedgerMutexWord {
 public:
  // The processes that may have the lock: numbers from 1 on, of less than 31 bits.
  using Holder = uint32_t;

  // Knows which of them live.
  class Census {
   public:
    virtual bool is_alive(Holder holder) const = 0;

   protected:
    ~Census() = default;
  };

  LedgerLocking lock(Holder self, const Census& census, Deadline deadline) {
    uint32_t free = 0;
    if (word_.compare_exchange_strong(free, self)) [[likely]]
      return LedgerLocking::kTaken;
    return wait(self, census, deadline);
  }
  void unlock() {
    if ((word_.exchange(0) & kAwaited) != 0) wake();
  }

 private:
  static constexpr uint32_t kAwaited = uint32_t{1} << 31;

  LedgerLocking wait(Holder self, const Census& census, Deadline deadline);
  void wake();

  std::atomic<uint32_t> word_{0};
};

// What a thread has while it holds the lock, for the analysis of clang.
class US_CAPABILITY("ledger lock") LedgerHeld {};
inline LedgerHeld ledger_held;

// The lock as this process sees it.
class LedgerMutex {
 public:
  class Owner : public LedgerMutexWord::Census {
   public:
    // The number under which this process takes the lock. Fails if it must not.
    virtual Result<LedgerMutexWord::Holder> holder() const = 0;
    // Computes what follows from the entries.
    virtual void repair() US_REQUIRES(ledger_held) = 0;

   protected:
    ~Owner() = default;
  };

  LedgerMutex(LedgerMutexWord& word, Owner& owner) : word_(word), owner_(owner) {}
  LedgerMutex(const LedgerMutex&) = delete;
  LedgerMutex& operator=(const LedgerMutex&) = delete;

 private:
  friend class LedgerLock;
  // The word is the lock that ledger_held stands for.
  Result<void> lock(Deadline deadline) US_NO_THREAD_SAFETY_ANALYSIS;
  void unlock() { word_.unlock(); }

  LedgerMutexWord& word_;
  Owner& owner_;
};

// Holds the lock while it lives, if it could be taken until the deadline; a caller looks at taken()
// first and changes nothing if that is an error.
class [[nodiscard]] US_SCOPED_CAPABILITY LedgerLock {
 public:
  LedgerLock(LedgerMutex& mutex, Deadline deadline) US_ACQUIRE(ledger_held);
  ~LedgerLock() US_RELEASE();
  LedgerLock(const LedgerLock&) = delete;
  LedgerLock& operator=(const LedgerLock&) = delete;

  const Result<void>& taken() const { return taken_; }

 private:
  LedgerMutex& mutex_;
  const Result<void> taken_;
};

}  // namespace understudy
