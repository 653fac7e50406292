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
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/handle.h"
#include "base/mutex.h"
#include "device/product_profile.h"
#include "stream/kept_by.h"
#include "stream/stream_waits.h"
#include "stream/task_queue.h"
#include "stream/wait_links.h"

namespace understudy {

class Reports;
class RunQueue;
class StreamOrder;
class StreamRegistry;
class WaitGraph;
struct ReportQueue;

// Which threads may run the tasks of a stream.
enum class RunState : uint8_t {
  kIdle,     // none needs to: the queue is empty, or a thread is about to look
  kReady,    // the one that takes it from the run queue
  kRunning,  // its owner
  kParked,   // none: the task in front waits for something
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

// A stream's place among those that are ready.
struct ReadyLink {
  Stream* next = nullptr;
  Stream* previous = nullptr;
  size_t list = 0;            // the number of the list
  bool needs_worker = false;  // the task in front is not for threads that wait
  uint32_t counted_as = 0;    // by a schedule: the state of the last stream here that had a turn
};

// The thread of the program that runs the stream's callbacks, if there is one.
struct Subscription {
  std::shared_ptr<ReportQueue> queue;
  bool had_host_functions = false;
};

struct Stream {
  // ---- What it is. Constant while it lives; atomic for threads that hold a stale handle.
  std::atomic<uint32_t> state{0};  // a SlotState
  uint32_t index = 0;
  uint32_t pool_next = 0;
  std::atomic<uint32_t> flags{0};
  std::atomic<uint64_t> owner{0};  // the context, by its handle
  std::atomic<uint32_t> device{0};
  std::atomic<uint32_t> priority{0};
  std::atomic<bool> is_default{false};
  std::atomic<bool> is_unattended{false};  // synchronisations do not wait for it
  std::atomic<bool> holds_tasks{false};    // they are for a model, and never run by themselves
  std::atomic<OverflowMode> overflow_mode{OverflowMode::kSaturation};  // of its device, then
  std::atomic<bool> stops_on_failure{false};
  KeptBy<StreamRegistry, StreamSettings> settings;
  // Where viewers of the process see that it has work; its own flag where they do not.
  std::atomic<uint8_t> unseen_mark{0};
  std::atomic<uint8_t>* busy_mark = &unseen_mark;

  // ---- Threads that add tasks.
  alignas(64) BriefMutex queue_mutex{LockRank::kStreamQueue};
  std::atomic<uint64_t> submitted{0};        // changed under the lock
  std::atomic<uint64_t> known_completed{0};  // at least so many are
  TaskQueue queue;                           // its end under the lock; its front is the owner's

  // ---- The owner.
  alignas(64) std::atomic<uint64_t> completed{0};
  std::atomic<bool> in_user_code{false};  // the owner runs a function of the program
  std::optional<Error> unreported;        // why the task in front has failed
  uint64_t reported = 0;                  // position of the task whose callback was sent out

  // ---- What others tell the owner. Changes rarely, and all threads read it.
  alignas(64) std::atomic<RunState> run_state{RunState::kIdle};
  std::atomic<uint64_t> drop_until{0};  // tasks up to here do not run
  std::atomic<uint64_t> stop_at{0};     // this task ends early, the rest runs
  std::atomic<uint64_t> answered{0};    // the callback of the task at this position ran
  std::atomic<uint32_t> aborts{0};
  std::atomic<bool> aborted_with_device{false};
  std::atomic<bool> is_orphan{false};  // destroyed: its last owner gives the slot back
  Stream* next_closed = nullptr;       // among those that the thread which closed it has to end

  // ---- Threads and streams that wait for it, and what it waits for itself.
  std::atomic<uint64_t> wanted{kNoPosition};  // the lowest position that is waited for
  KeptBy<WaitGraph, WaitList> waiters;
  KeptBy<WaitGraph, ParkedStream> parked;

  KeptBy<RunQueue, ReadyLink> ready;
  KeptBy<StreamOrder, RecentWaits> recent_waits;

  // ---- The first failure that no synchronisation has returned.
  std::atomic<bool> has_failed{false};
  Mutex failure_mutex{LockRank::kStreamFailure};
  std::optional<Error> failure US_GUARDED_BY(failure_mutex);
  bool failure_stays US_GUARDED_BY(failure_mutex) = false;

  KeptBy<Reports, Subscription> subscription;

  // Adds a task at the end, and returns its position. May throw for want of memory.
  uint64_t push_locked(const Task& task) US_REQUIRES(queue_mutex) {
    queue.push(task);
    const uint64_t position = submitted.load(std::memory_order_relaxed) + 1;
    submitted.store(position);
    return position;
  }
  // Tasks that are queued do not run any more. Returns the position of the last one.
  uint64_t drop_queued_locked() US_REQUIRES(queue_mutex) {
    const uint64_t position = submitted.load();
    drop_tasks_until(position);
    return position;
  }
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
  SlotLife life() const { return SlotState::life(state.load(std::memory_order_acquire)); }
  // By the thread that makes it ready, after that, and by the one that makes it idle, before that:
  // so the marks come in the order of the states.
  void mark_busy() const { busy_mark->store(1, std::memory_order_relaxed); }
  void mark_idle() const { busy_mark->store(0, std::memory_order_relaxed); }
  bool has_tasks() const { return submitted.load() != completed.load(); }
};

// A stream as a caller remembers it. The functions below valid() REQUIRE that it was valid once,
// and tell of another stream if the slot is used again.
struct StreamReference {
  Stream* stream = nullptr;
  uint32_t state = 0;

  bool valid() const {
    return stream != nullptr && stream->state.load(std::memory_order_acquire) == state;
  }
  uint64_t handle() const;
  uint32_t id() const { return stream->index; }
  uint64_t owner() const { return stream->owner.load(std::memory_order_relaxed); }
  unsigned device() const { return stream->device.load(std::memory_order_relaxed); }
  uint32_t priority() const { return stream->priority.load(std::memory_order_relaxed); }
  uint32_t flags() const { return stream->flags.load(std::memory_order_relaxed); }
  bool is_default() const { return stream->is_default.load(std::memory_order_relaxed); }
  bool holds_tasks() const { return stream->holds_tasks.load(std::memory_order_relaxed); }
  OverflowMode overflow_mode() const {
    return stream->overflow_mode.load(std::memory_order_relaxed);
  }
  bool stops_on_failure() const { return stream->stops_on_failure.load(); }
};

// The error for a handle whose stream has ended, or never was.
Error not_a_live_stream(uint64_t handle);

}  // namespace understudy
