// SPDX-License-Identifier: Apache-2.0
//
// Which streams have work, and the threads that do it. There are about as many workers as
// processors, however many streams there are; workers inside functions of the program do not
// count, so that one that blocks holds up nobody else. A worker that runs out of work looks out
// for more for some microseconds and then sleeps; on one processor it sleeps at once.
// Any thread may call anything.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/deadline.h"
#include "base/mutex.h"
#include "base/result.h"
#include "memory/copy_helpers.h"
#include "stream/stream.h"

namespace understudy {

// How the owner of a stream came to an end.
enum class RunEnd : uint8_t {
  kEmpty,     // no task is left
  kReached,   // it got as far as was asked for
  kTurnOver,  // others may want the thread
  kForOther,  // the task in front is for a worker
  kParked,    // the stream has no owner any more
};

// What a worker does. Called without a lock.
class WorkerClient {
 public:
  // Runs tasks of a stream that the caller owns.
  virtual RunEnd run(Stream& stream) = 0;
  // Gives the slot of a destroyed stream back, unless someone owns it.
  virtual void recycle(Stream& stream) = 0;
  // When the next parked stream wants to be woken, and does that for all whose time has come.
  virtual Deadline next_wake() const = 0;
  virtual void wake_due() = 0;

 protected:
  ~WorkerClient() = default;
};

class Scheduler final : public CopyHelpers {
 public:
  explicit Scheduler(WorkerClient& client);
  ~Scheduler();
  // Ends the workers, before what they use ends. REQUIRES: no stream has work.
  void end();

  // Makes sure that there is a worker.
  Result<void> start() {
    if (has_started_.load(std::memory_order_acquire)) [[likely]]
      return {};
    return start_first_worker();
  }

  // A stream that was idle has tasks: to be called after each that was added.
  void offer_tasks(Stream& stream) {
    if (stream.run_state.load() == RunState::kIdle) offer_idle(stream);
  }
  // The caller owns the stream and wants others to go on with it.
  enum class Successor : uint8_t { kAnyone, kWorker };
  void hand_over(Stream& stream, Successor successor);
  // A parked stream may go on.
  void resume(Stream& stream) { hand_over(stream, Successor::kAnyone); }
  // Makes the caller, a thread that waits, the owner of a stream that is ready.
  bool try_claim(Stream& stream);
  // Makes the caller the owner of a stream that is idle or ready.
  bool try_own(Stream& stream);
  // The owner is done. False if tasks came meanwhile: then it is still the owner.
  bool release(Stream& stream);

  // A worker must find out when to wake up.
  void poke() noexcept;
  // The calling worker enters and leaves a function of the program.
  void begin_user_code() noexcept;
  void end_user_code() noexcept;

  // ---- Large copies: idle workers help with them.
  unsigned most_helpers() const override { return helpers_; }
  void offer(std::span<Errand> errands) noexcept override;
  void withdraw(std::span<Errand> errands) noexcept override;
  bool has_other_work() const noexcept override {
    return ready_.load(std::memory_order_relaxed) > 0;
  }

  // How long it is worth looking out for something before sleeping; zero on one processor.
  Clock::duration patience() const { return patience_; }

 private:
  static void work(void* scheduler);
  Result<void> start_first_worker();
  Result<void> start_worker();
  void offer_idle(Stream& stream);
  // What a worker saw last: if there was some work, there may soon be more.
  enum class Seen : uint8_t { kNothing, kSome };
  // The next stream to run; null if the worker is to end.
  Stream* next_stream(Seen seen);
  Seen serve(Stream& stream);
  // Looks out for new tasks of a stream that the caller owns. False if there are none, or others
  // have some.
  bool linger(Stream& stream);
  // Looks out for a stream that is ready.
  void look_out();
  // False if the worker is one too many: then it is to end.
  bool is_needed();
  void sleep();

  void push_locked(Stream& stream) US_REQUIRES(mutex_);
  Stream* pop_locked() US_REQUIRES(mutex_);
  Errand* pop_errand_locked() US_REQUIRES(mutex_);
  void run_errand(Errand& errand);
  void unlink_locked(Stream& stream) US_REQUIRES(mutex_);
  // What to do, after the lock, so that someone takes up what is ready.
  enum class Call : uint8_t { kNobody, kSleeper, kNewWorker };
  Call call_locked() US_REQUIRES(mutex_);
  // Whether there is work, or a moment to wake up at, and the calling worker has something to do.
  bool needs_another_locked() const US_REQUIRES(mutex_);
  void answer(Call call) noexcept US_EXCLUDES(mutex_);
  // For a worker that goes on with what it has.
  void call_if_needed();

  struct List {
    Stream* first = nullptr;
    Stream* last = nullptr;
  };

  WorkerClient& client_;
  const unsigned most_workers_;
  const Clock::duration patience_;
  const unsigned helpers_;
  std::atomic<bool> has_started_{false};
  std::atomic<uint32_t> started_{0};            // threads that were started
  std::atomic<uint32_t> gone_{0};               // that do not touch this object any more
  alignas(64) std::atomic<uint32_t> ready_{0};  // streams and errands; changed under the lock
  std::atomic<uint32_t> sleep_word_{0};
  Mutex mutex_{LockRank::kScheduler};
  std::array<List, kPriorities> lists_ US_GUARDED_BY(mutex_);
  Errand* errands_ US_GUARDED_BY(mutex_) = nullptr;
  unsigned workers_ US_GUARDED_BY(mutex_) = 0;
  unsigned in_user_code_ US_GUARDED_BY(mutex_) = 0;
  unsigned looking_out_ US_GUARDED_BY(mutex_) = 0;
  unsigned sleeping_ US_GUARDED_BY(mutex_) = 0;
  unsigned called_ US_GUARDED_BY(mutex_) = 0;  // sleepers that were woken and are not up yet
  Deadline watched_until_ US_GUARDED_BY(mutex_) = kNever;  // when a sleeper wakes up by itself
  bool ending_ US_GUARDED_BY(mutex_) = false;
};

}  // namespace understudy
