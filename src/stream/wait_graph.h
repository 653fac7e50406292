// SPDX-License-Identifier: Apache-2.0
//
// The wait graph: threads that sleep until a stream gets to a position, and parked streams, which
// wait for another stream, for an event or a notify, for other processes, for memory to change, for
// a callback or for a moment. A parked stream has no owner and no thread; what it waits for makes
// it ready again, and its next owner looks at the task in front once more.
//
// Running to parked and parked to ready happen under its lock. It calls the run queue alone.
// Any thread may call anything, without a lock of the stream layer but that of an event.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/deadline.h"
#include "base/mutex.h"
#include "stream/event.h"
#include "stream/run_queue.h"
#include "stream/stream.h"

namespace understudy {

class WaitGraph {
 public:
  explicit WaitGraph(RunQueue& run_queue) : run_queue_(run_queue) {}

  // ---- Streams. The caller owns the stream. True: it is parked, and not the caller's any more.
  // False: there is nothing to wait for, look at the task again.
  bool park_until_done(Stream& stream, Stream& on, uint64_t position, Deadline wake_at);
  // Until an event is recorded more often than `moment` says, or ends.
  bool park_until_recorded(Stream& stream, const EventMoment& moment, Deadline wake_at);
  // Until something changes that was at `seen`: see note_change().
  bool park_until_changed(Stream& stream, ParkedStreams& list, const std::atomic<uint32_t>& changes,
                          uint32_t seen, Deadline wake_at);
  // The same for what other processes do: see note_ring().
  bool park_until_rung(Stream& stream, const std::atomic<uint32_t>& rings, uint32_t seen,
                       Deadline wake_at) {
    return park_until_changed(stream, rung_, rings, seen, wake_at);
  }
  // Until `wake_at` or a write to memory.
  bool park_until_written(Stream& stream, Deadline wake_at);
  // Until the callback of the task in front has run.
  bool park_until_answered(Stream& stream);

  // ---- What wakes them.
  // To be called by a stream's owner whenever it has completed a task.
  void note_progress(Stream& on) {
    if (on.completed.load() >= on.wanted.load()) wake_satisfied(on);
  }
  // A task or a call wrote to memory.
  void note_write() {
    if (value_waiters_.load(std::memory_order_relaxed) > 0) wake_value_waiters();
  }
  uint32_t value_waiters() const { return value_waiters_.load(std::memory_order_relaxed); }
  // The event was recorded or has ended.
  void note_event(Event& event) { note_change(event.unbound_waits); }
  // What streams of the list wait for has changed, and its count of changes has risen before.
  void note_change(ParkedStreams& list) {
    if (list.count.load() > 0) wake_all(list);
  }
  // Another process has rung this one, or a task here has done what rings others.
  void note_ring() { note_change(rung_); }
  // The same for a thread that runs one of the streams itself: gives it that one, which it owns
  // then, and makes the others ready. Null if there is none.
  Stream* claim_rung() { return rung_.count.load() > 0 ? claim_one(rung_) : nullptr; }
  // Makes the stream ready if it is parked.
  void wake(Stream& stream);
  // Does so with all streams whose time has come, and sets the run queue's alarm to the next time.
  void wake_due();

  // ---- Threads.
  enum class Outcome : uint8_t { kReached, kTimeOver, kInterrupted };
  // Sleeps until the stream gets to a position.
  Outcome wait(Stream& on, uint64_t position, Deadline deadline);
  // Sleeps until a word changes, or for some other reason ends.
  void wait_for_change(const std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline);
  // Ends the sleep of all threads that wait for the stream.
  void interrupt(Stream& on);

  // While it lives, tasks run if a schedule decides which: the calling thread waits.
  class Demanding {
   public:
    Demanding(WaitGraph& wait_graph, Demand& demand);
    ~Demanding();
    Demanding(const Demanding&) = delete;
    Demanding& operator=(const Demanding&) = delete;

   private:
    RunQueue* run_queue_ = nullptr;  // null: there is no schedule
    Demand& demand_;
  };

  // The stream that a parked one waits for, if it does, and where that has to get.
  struct Blocker {
    Stream* stream;
    uint64_t position;
  };
  std::optional<Blocker> blocker_of(Stream& stream);

 private:
  WaitList& waiters_locked(Stream& stream) US_REQUIRES(mutex_) { return stream.waiters.value; }
  WaitList& waiters_locked(ParkedStreams& list) US_REQUIRES(mutex_) { return list.waiters.value; }
  ParkedStream& parked_locked(Stream& stream) US_REQUIRES(mutex_) { return stream.parked.value; }

  Outcome sleep(Stream& on, uint64_t position, Deadline deadline);
  void watch_locked(Stream& on, Waiter& waiter, uint64_t position) US_REQUIRES(mutex_);
  void unwatch_locked(Stream& on, Waiter& waiter) US_REQUIRES(mutex_);
  void find_wanted_locked(Stream& on) US_REQUIRES(mutex_);
  // Whether the task in front is to end whatever it waits for.
  static bool is_cut_short(const Stream& stream);
  void park_locked(Stream& stream, Deadline wake_at) US_REQUIRES(mutex_);
  // Parks it in the list, unless it turns out that there is nothing to wait for.
  template <typename Stays>
  bool park_in(ParkedStreams& list, Stream& stream, Deadline wake_at, Stays stays);
  // It waits for nothing any more, and its next owner is up to the caller.
  void unpark_locked(Stream& stream) US_REQUIRES(mutex_);
  void wake_locked(Stream& stream) US_REQUIRES(mutex_);
  static void wake_thread(Waiter& waiter, Waiter::Word word);
  void wake_satisfied(Stream& on);
  void wake_value_waiters();
  void wake_all(ParkedStreams& list);
  Stream* claim_one(ParkedStreams& list);

  RunQueue& run_queue_;
  Mutex mutex_{LockRank::kWaitGraph};
  LinkList<StreamLink> timed_ US_GUARDED_BY(mutex_);
  LinkList<StreamLink> values_ US_GUARDED_BY(mutex_);
  std::atomic<uint32_t> value_waiters_{0};
  ParkedStreams rung_;  // until another process rings
};

}  // namespace understudy
