// SPDX-License-Identifier: Apache-2.0
//
// The run queue: streams that are ready, work items of large copies, and the worker threads that
// take them. One lock covers all three, because the thread that adds work decides in the same step
// which worker is to take it: one that spins, one that sleeps, or a new one.
//
// It also decides who owns a stream: idle to ready and ready to running happen under its lock;
// running to idle is the owner's (see release). It calls nothing above it: workers fetch their work
// with next(), and what they run is a function given at construction.
//
// Where there is a schedule, that decides when a worker gets which stream, for one task at a time,
// and threads that wait run nothing themselves: see the part on turns.
// Any thread may call anything.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/deadline.h"
#include "base/mutex.h"
#include "base/result.h"
#include "memory/helper_pool.h"
#include "stream/schedule.h"
#include "stream/stream.h"
#include "stream/worker_counts.h"

namespace understudy {

// What a worker thread runs: it fetches its work until there is an end.
struct WorkerMain {
  void (*run)(void*) = nullptr;
  void* argument = nullptr;
};

// What a worker is to do next.
struct Work {
  enum class Kind : uint8_t {
    kStream,  // run the stream, which the worker owns
    kItem,    // do the item, and report it with finish()
    kAlarm,   // wake the parked streams whose time has come
    kEnd,     // leave
  };
  Kind kind = Kind::kEnd;
  Stream* stream = nullptr;
  WorkItem* item = nullptr;
};

class RunQueue {
 public:
  explicit RunQueue(WorkerMain main, const std::optional<ScheduleChoice>& schedule = std::nullopt);
  ~RunQueue();
  // Ends the workers, before what they use ends. REQUIRES: no stream has work.
  void end();

  // Before a task of the stream is added: makes sure that there is a worker.
  Result<void> start(const Stream& stream) {
    if (has_started_.load(std::memory_order_acquire)) [[likely]]
      return {};
    return start_first_worker(stream);
  }

  // ---- Streams change hands.
  // The stream has tasks: makes it ready if it is idle. To be called after each task was added.
  void offer_tasks(Stream& stream) {
    if (stream.run_state.load() == RunState::kIdle) offer_idle(stream);
  }
  // The caller owns the stream, or wakes it from being parked, and lets others go on with it.
  enum class Successor : uint8_t { kAnyone, kWorker };
  void hand_over(Stream& stream, Successor successor);
  // Makes the caller, a thread that waits, the owner of a stream that is ready.
  bool try_claim(Stream& stream);
  // Makes the caller the owner of a stream that is idle or ready.
  bool try_own(Stream& stream);
  // The owner has no task left. False if tasks came meanwhile: then it is still the owner. True:
  // the caller looks at is_orphan next.
  static bool release(Stream& stream);

  // ---- Work items.
  void push(WorkItem& item) noexcept;
  // True if the item is its owner's again: it was done, or no worker had taken it.
  bool try_withdraw(WorkItem& item) noexcept;
  // A worker has done the item.
  void finish(WorkItem& item) noexcept;
  bool has_work() const { return ready_.load(std::memory_order_relaxed) > 0; }

  // ---- For workers.
  // What a worker saw last: if there was some work, there may soon be more.
  enum class Seen : uint8_t { kNothing, kSome };
  // Waits for something to do.
  Work next(Seen& seen);
  // Spins for new tasks of a stream that the caller owns. False if there are none, or other streams
  // have some.
  bool linger(const Stream& stream);
  // For a worker that goes on with what it has: calls another one for the rest.
  void call_if_needed();
  // For a thread that is about to sleep until a stream gets on: what is ready does not wait until a
  // worker looks in.
  void hurry();
  // The calling worker enters and leaves a function of the program.
  void begin_user_code() noexcept;
  void end_user_code() noexcept;
  // The calling worker ends in the middle of a stream: others go on with it. The last use of this
  // object by that worker.
  void leave(Stream& stream);

  // ---- Turns, where a schedule decides what runs. The rest REQUIRES that there is one.
  bool is_scheduled() const { return schedule_ != nullptr; }
  // The calling worker has run a task, and let its stream go.
  void end_turn();
  // From now on tasks run until the demand is met, or it is withdrawn.
  void add(Demand& demand);
  void withdraw(Demand& demand);
  // A demand of the caller was met: waits until the worker that did it has let the stream go.
  void settle();
  // The program asks how far something is: lets a task run, or not, as the seed decides.
  void run_for_query();
  void tell_schedule();

  // ---- The alarm: the earliest moment at which a parked stream is to be woken, or an earlier one.
  // Set by the wait graph, under its lock.
  Deadline alarm() const {
    return Deadline(Clock::duration(alarm_.load(std::memory_order_relaxed)));
  }
  void set_alarm(Deadline moment) { alarm_.store(moment.time_since_epoch().count()); }
  // The same for a moment before the present one: a worker must learn of it.
  void advance_alarm(Deadline moment) noexcept;

  // How long it is worth spinning for something before sleeping; zero on one processor.
  Clock::duration patience() const { return patience_; }

 private:
  Result<void> start_first_worker(const Stream& stream);
  Result<void> start_worker();
  void offer_idle(Stream& stream);
  // Spins until something is ready.
  void look_out();
  // Looks in now and then for a while: no thread that adds work has to wake the caller meanwhile,
  // which takes a hundred times as long as adding the work. False if nothing came.
  bool doze();
  // False if the worker is one too many: then it is to end.
  bool is_needed();
  void sleep();

  ReadyLink& link_locked(Stream& stream) const US_REQUIRES(mutex_) { return stream.ready.value; }
  void count_ready_locked(int change) US_REQUIRES(mutex_) {
    // It changes under the lock alone, so this need not be one step.
    const uint32_t ready = ready_.load(std::memory_order_relaxed);
    ready_.store(ready + static_cast<uint32_t>(change), std::memory_order_relaxed);
  }
  void push_locked(Stream& stream, Successor successor) US_REQUIRES(mutex_);
  void unlink_locked(Stream& stream) US_REQUIRES(mutex_);
  Stream* pop_locked() US_REQUIRES(mutex_);
  Stream* pop_for_turn_locked() US_REQUIRES(mutex_);
  WorkItem* pop_item_locked() US_REQUIRES(mutex_);
  // Whom to call for work that was added; to be answered after the lock.
  WorkerCounts::Call call_locked(WorkerCounts::Urgency urgency = WorkerCounts::Urgency::kSoon)
      US_REQUIRES(mutex_);
  // The same for a stream that is ready now: where there is a schedule, if its turn may begin.
  WorkerCounts::Call call_for_stream_locked() US_REQUIRES(mutex_) {
    return schedule_ == nullptr ? call_locked() : call_for_turn_locked();
  }
  // Whom to call for a turn, after something has changed that the schedule looks at.
  WorkerCounts::Call call_for_turn_locked() US_REQUIRES(mutex_);
  // Whether the schedule lets a worker take a stream; counts as work then.
  void set_turn_open_locked(bool is_open) US_REQUIRES(mutex_);
  // Threads that wait for the end of a turn look again.
  void note_turn_locked() US_REQUIRES(mutex_);
  // Whether there is work, or an alarm that no sleeper watches, beside what the caller does.
  bool needs_another_locked() const US_REQUIRES(mutex_);
  // When a worker has to look by itself.
  Deadline next_look_locked() const US_REQUIRES(mutex_);
  void answer(WorkerCounts::Call call) noexcept US_EXCLUDES(mutex_);

  struct List {
    Stream* first = nullptr;
    Stream* last = nullptr;
  };

  const WorkerMain main_;
  const Clock::duration patience_;
  // Where there is a schedule, it never has: every task passes where it is told.
  std::atomic<bool> has_started_{false};
  std::atomic<uint32_t> started_{0};  // threads that were started
  std::atomic<uint32_t> gone_{0};     // that do not touch this object any more
  // Streams and items; changed under the lock. Where there is a schedule, streams that are ready
  // are one at most: the one that may have a turn.
  alignas(64) std::atomic<uint32_t> ready_{0};
  std::atomic<uint32_t> sleep_word_{0};
  std::atomic<uint32_t> doze_word_{0};
  std::atomic<Clock::rep> alarm_{kNever.time_since_epoch().count()};
  Mutex mutex_{LockRank::kRunQueue};
  std::array<List, kPriorities> lists_ US_GUARDED_BY(mutex_);
  WorkItem* items_ US_GUARDED_BY(mutex_) = nullptr;
  WorkerCounts counts_ US_GUARDED_BY(mutex_);
  Deadline watched_until_ US_GUARDED_BY(mutex_) = kNever;  // when a sleeper wakes up by itself
  const std::unique_ptr<Schedule> schedule_ US_PT_GUARDED_BY(mutex_);  // null: none
  bool is_turn_open_ US_GUARDED_BY(mutex_) = false;
  std::atomic<uint32_t> turn_word_{0};  // changes where a turn ends, or waits
  bool ending_ US_GUARDED_BY(mutex_) = false;
};

}  // namespace understudy
