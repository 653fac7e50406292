// SPDX-License-Identifier: Apache-2.0
//
// Who waits for what: threads that sleep until a stream got somewhere, and parked streams, which
// wait for another stream, for an event, for memory to change, for a callback or for a moment. A
// parked stream has no owner and no thread; what it waits for makes it ready again, and its next
// owner looks at the task in front once more.
// Any thread may call anything, without a lock of the stream layer but that of an event.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/deadline.h"
#include "base/mutex.h"
#include "stream/event.h"
#include "stream/scheduler.h"
#include "stream/stream.h"

namespace understudy {

class Waiting {
 public:
  explicit Waiting(Scheduler& scheduler) : scheduler_(scheduler) {}

  // ---- Streams. The caller owns the stream. True: it is parked, and not the caller's any more.
  // False: there is nothing to wait for, look at the task again.
  bool park_until_done(Stream& stream, Stream& on, uint64_t position, Deadline wake_at);
  // Until an event is recorded more often than `moment` says, or ends.
  bool park_until_recorded(Stream& stream, const EventMoment& moment, Deadline wake_at);
  // Until `wake_at` or some task wrote to memory.
  bool park_until_written(Stream& stream, Deadline wake_at);
  // Until the callback of the task in front has run.
  bool park_until_answered(Stream& stream);

  // ---- What wakes them.
  // To be called by a stream's owner whenever it has completed a task.
  void note_progress(Stream& on) {
    if (on.completed.load() >= on.wanted.load()) wake_satisfied(on);
  }
  // A task wrote to memory.
  void note_write() {
    if (value_waiters_.load(std::memory_order_relaxed) > 0) wake_value_waiters();
  }
  uint32_t value_waiters() const { return value_waiters_.load(std::memory_order_relaxed); }
  // The event was recorded or has ended.
  void note_event(Event& event) {
    if (event.unbound_waits.load() > 0) wake_unbound(event);
  }
  // Makes the stream ready if it is parked.
  void wake(Stream& stream);
  // When a parked stream wants to be woken; maybe one that has been woken already.
  Deadline next_wake() const {
    return Deadline(Clock::duration(next_wake_.load(std::memory_order_relaxed)));
  }
  void wake_due();

  // ---- Threads.
  enum class Outcome : uint8_t { kReached, kTimeOver, kInterrupted };
  Outcome wait(Stream& on, uint64_t position, Deadline deadline);
  // Lets all threads that wait for the stream look around.
  void interrupt(Stream& on);

  // What a parked stream waits for, if that is a stream: where it has to get.
  struct Blocker {
    Stream* stream;
    uint64_t position;
  };
  std::optional<Blocker> blocker_of(Stream& stream);

 private:
  void watch_locked(Stream& on, Watcher& watcher, uint64_t position) US_REQUIRES(mutex_);
  // Whether the task in front is to end whatever it waits for.
  static bool is_cut_short(const Stream& stream);
  void park_locked(Stream& stream, Deadline wake_at) US_REQUIRES(mutex_);
  void wake_locked(Stream& stream) US_REQUIRES(mutex_);
  void wake_thread_locked(Watcher& watcher, Watcher::Word word) US_REQUIRES(mutex_);
  static void find_wanted(Stream& on);
  void wake_satisfied(Stream& on);
  void wake_value_waiters();
  void wake_unbound(Event& event);

  Scheduler& scheduler_;
  Mutex mutex_{LockRank::kWaiting};
  LinkList<StreamLink> timed_ US_GUARDED_BY(mutex_);
  LinkList<StreamLink> values_ US_GUARDED_BY(mutex_);
  std::atomic<uint32_t> value_waiters_{0};
  std::atomic<Clock::rep> next_wake_{kNever.time_since_epoch().count()};
};

}  // namespace understudy
