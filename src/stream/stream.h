// SPDX-License-Identifier: Apache-2.0
//
// A stream: a queue of tasks that run one after the other, and how far they are. Positions count
// the tasks of a slot from 1 and never start again, not even when the slot is used for another
// stream: "task p is done" is `completed >= p`, for ever. That is all an event remembers.
//
// One thread at a time owns a stream (kRunning) and runs its tasks: a worker, or a thread that
// waits for it. Slots are type-stable.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/handle.h"
#include "base/mutex.h"
#include "memory/object_pool.h"
#include "stream/task_queue.h"
#include "stream/watch_list.h"

namespace understudy {

struct ReportQueue;

// Who may run the tasks of a stream.
enum class RunState : uint8_t {
  kIdle,     // nobody needs to: the queue is empty, or someone is about to look
  kReady,    // whoever takes it from the scheduler's list
  kRunning,  // its owner
  kParked,   // nobody: the task in front waits for something
};

inline constexpr unsigned kPriorities = 8;
inline constexpr uint64_t kNoPosition = UINT64_MAX;

// Upper bounds on cores that a program sets for a device or a stream. Remembered, without effect.
inline constexpr unsigned kCoreKinds = 2;
using CoreLimits = std::array<std::optional<uint32_t>, kCoreKinds>;

// What a program sets for a stream and reads back.
struct StreamSettings {
  uint32_t overflow_check = 0;
  uint32_t custom_tag = 0;
  uint32_t cache_operations = 0;
  CoreLimits core_limits;
};

struct Stream {
  // ---- What it is. Constant while it lives; atomic for those who hold a stale handle.
  std::atomic<uint32_t> state{0};  // a SlotState
  uint32_t index = 0;
  uint32_t pool_next = 0;
  std::atomic<uint32_t> flags{0};
  std::atomic<uint64_t> owner{0};  // the context, by its handle
  std::atomic<uint32_t> device{0};
  std::atomic<uint32_t> priority{0};
  std::atomic<bool> is_default{false};
  std::atomic<bool> is_unattended{false};  // whoever waits for it does not wait
  std::atomic<bool> stops_on_failure{false};
  StreamSettings settings;  // under the lock of Streams

  // ---- Those who add tasks.
  alignas(64) BriefMutex queue_mutex{LockRank::kStreamQueue};
  std::atomic<uint64_t> submitted{0};
  std::atomic<uint64_t> known_completed{0};  // at least so many are
  TaskQueue queue;

  // ---- The owner.
  alignas(64) std::atomic<uint64_t> completed{0};
  std::atomic<bool> in_user_code{false};  // the owner runs a function of the program
  std::optional<Error> untold;            // why the task in front has failed
  uint64_t reported = 0;                  // position of the task whose callback was sent out

  // ---- What others tell the owner. Changes rarely, and all look at it.
  alignas(64) std::atomic<RunState> run_state{RunState::kIdle};
  std::atomic<uint64_t> drop_until{0};  // tasks up to here do not run
  std::atomic<uint64_t> stop_at{0};     // this task ends early, the rest runs
  std::atomic<uint64_t> answered{0};    // the callback of the task at this position ran
  std::atomic<uint32_t> aborts{0};
  std::atomic<bool> aborted_with_device{false};
  std::atomic<bool> is_orphan{false};  // destroyed: whoever owns it last gives the slot back

  // ---- Those who wait for it, under the lock of Waiting; the lowest position they want.
  std::atomic<uint64_t> wanted{kNoPosition};
  WatchList watchers;
  ParkedStream parked;

  // ---- The list of streams that are ready, under the lock of the scheduler.
  Stream* ready_next = nullptr;
  Stream* ready_previous = nullptr;
  size_t ready_list = 0;      // the number of the list
  bool needs_worker = false;  // the task in front is not for threads that wait

  // ---- What went wrong since someone was told.
  std::atomic<bool> has_failed{false};
  Mutex failure_mutex{LockRank::kStreamFailure};
  std::optional<Error> failure US_GUARDED_BY(failure_mutex);
  bool failure_stays US_GUARDED_BY(failure_mutex) = false;

  // ---- Callbacks, under the lock of Reports.
  std::shared_ptr<ReportQueue> reports;
  bool had_host_functions = false;

  // Tasks up to a position do not run any more.
  void drop_tasks_until(uint64_t position) {
    uint64_t known = drop_until.load();
    while (known < position && !drop_until.compare_exchange_weak(known, position)) {
    }
  }
  // Whether a task is not to run, or to end early.
  bool drops(uint64_t position) const {
    return position <= drop_until.load(std::memory_order_acquire);
  }
  bool stops(uint64_t position) const {
    return position == stop_at.load(std::memory_order_acquire);
  }
  bool is_done(uint64_t position) const {
    return completed.load(std::memory_order_acquire) >= position;
  }
};

using StreamPool = ObjectPool<Stream, 32>;

// A stream as someone remembers it.
struct StreamReference {
  Stream* stream = nullptr;
  uint32_t state = 0;

  bool valid() const {
    return stream != nullptr && stream->state.load(std::memory_order_acquire) == state;
  }
  // REQUIRES: was valid once.
  uint64_t handle() const;
};

// What to say of a handle whose stream has ended, or never was.
Error not_a_live_stream(uint64_t handle);

}  // namespace understudy
