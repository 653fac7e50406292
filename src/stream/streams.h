// SPDX-License-Identifier: Apache-2.0
//
// All streams of the process: they are given tasks, waited for, aborted and ended. This object owns
// the parts that do it, each of which knows only those above it in this list:
//
//   StreamRegistry    which streams there are
//   StreamOrder       which of them come behind which tasks of others
//   RunQueue          which of them are ready, the worker threads, and a schedule, if any
//   WaitGraph         which of them are parked, and the threads that sleep
//   Reports           callbacks on their way to threads of the program
//   TaskRunner        runs the tasks of a stream that the calling thread owns
//   Workers           what a worker thread does with a stream
//   StreamWaiter      what a thread that waits for a stream does
//   WorkerHelperPool  lends idle workers to large copies
//
// Rules: STREAM, GEN-04 to GEN-06. Any thread may call anything, without a lock.
#pragma once

#include <cstdint>
#include <optional>

#include "base/deadline.h"
#include "base/result.h"
#include "device/settings.h"
#include "memory/host_memory.h"
#include "memory/transfer.h"
#include "stream/reports.h"
#include "stream/run_queue.h"
#include "stream/stream.h"
#include "stream/stream_order.h"
#include "stream/stream_registry.h"
#include "stream/stream_waiter.h"
#include "stream/task_runner.h"
#include "stream/task_uses.h"
#include "stream/wait_graph.h"
#include "stream/worker_helper_pool.h"
#include "stream/workers.h"

namespace understudy {

// Position of the task that the calling thread queued last, other than on a default stream, as far
// as 32 bits tell; 0 before (ERR-20).
uint32_t last_task_of_thread();

// Hears of synchronisations.
class SynchronizationObserver {
 public:
  // A stream or a context of the device was waited for. Called without a lock.
  virtual void on_synchronized(unsigned device) = 0;

 protected:
  ~SynchronizationObserver() = default;
};

class Streams {
 public:
  Streams(const Settings& settings, Transfer& transfer, HostMemory& host,
          const OwnFigures* figures = nullptr);
  ~Streams();

  StreamRegistry& registry() { return registry_; }
  StreamOrder& order() { return order_; }
  WaitGraph& wait_graph() { return wait_graph_; }
  Reports& reports() { return reports_; }
  Result<StreamReference> create(const StreamDescription& description) {
    return registry_.create(description);
  }
  Result<StreamReference> find(uint64_t handle) const { return registry_.find(handle); }

  // Adds a task and takes over what it owns, also where it fails. Gives its position. Waits where a
  // stream that runs has very many. On a stream that holds its tasks, none ever runs: see hold.
  Result<uint64_t> submit(const StreamReference& reference, const Task& task);
  // The two halves of it: what may wait or fail, and what does not wait. For callers that hold a
  // lock which a task may need.
  Result<void> prepare(const StreamReference& reference);
  Result<uint64_t> submit_prepared(const StreamReference& reference, Task task);

  // Before other threads use it.
  void set_observer(SynchronizationObserver& observer) { observer_ = &observer; }

  // Waits for the tasks queued so far; the error of one that failed.
  Result<void> synchronize(const StreamReference& reference, Deadline deadline = kNever);
  // The same whatever kind of stream it is.
  Result<void> drain(const StreamReference& reference);
  // The same for all streams of a context.
  Result<void> synchronize_owner(uint64_t owner, Deadline deadline = kNever);
  // Waits for all of them, or for those of a device, whatever comes of their tasks.
  void finish_owner(uint64_t owner);
  void finish_device(unsigned device);
  // Waits until all streams are empty, while no thread adds tasks; the failure of one that ended in
  // an error, which stays there to be returned. Gives up where gives_up() says that a stream cannot
  // get on.
  Result<void> finish_all(bool (*gives_up)());
  bool is_complete(const StreamReference& reference);
  // Before a call of the program tells how far something is: it may ask until that is done.
  void let_run_for_query() {
    if (run_queue_.is_scheduled()) [[unlikely]]
      run_for_query();
  }
  // At the end of the process: what a schedule did, if there is one.
  void tell_schedule() {
    if (run_queue_.is_scheduled()) run_queue_.tell_schedule();
  }
  // Waits until a task is done. False at the deadline.
  bool wait_until(Stream& stream, uint64_t position, Deadline deadline) {
    note_wait_for_task(stream, position, deadline);
    if (!waiter_.wait_until(stream, position, deadline)) return false;
    note_known_task(stream, position);
    return true;
  }

  // Another process has rung this one: lets the streams that wait for that look again. The calling
  // thread runs short tasks of one of them itself, so that no other has to be woken for it.
  void on_ring();

  // Drops all tasks of a stream and forgets its failures; threads that wait for it hear of that.
  // Does not wait for a function of the program to return.
  void abort(const StreamReference& reference);
  // The same for all streams of a device, until a limit of time.
  Result<void> abort_device(unsigned device, Deadline deadline);
  // Ends the task in front, if it waits or takes long; the others run.
  void stop_front(const StreamReference& reference);

  // Ends a stream after its tasks, or drops those that have not begun. Not for default streams.
  Result<void> destroy(const StreamReference& reference);
  Result<void> destroy_at_once(const StreamReference& reference);
  // Ends all streams of a context, or of a device, at once, default streams, too. Allocates
  // nothing: it cannot stop half way.
  void end_owner(uint64_t owner);
  void end_device(unsigned device);
  // A context has ended.
  void forget_owner(uint64_t owner) { registry_.forget_owner(owner); }

 private:
  // Streams with more tasks make threads that add to them wait, unless they are parked.
  static constexpr uint64_t kCrowded = 16 * 1024;
  static constexpr uint64_t kMostQueued = 1024 * 1024;

  void run_for_query();
  // What becomes of a task that waits for a model to run (STREAM-30). There are no models, so it is
  // let go now: that cannot be told from keeping it until the stream is cleaned or ends.
  Result<uint64_t> hold(const StreamReference& reference, Task task);

  static bool has_room(Stream& stream);
  Result<void> wait_for_room(const StreamReference& reference);

  // How far a stream has to get, and how often it was aborted when that was decided.
  struct Target {
    StreamReference stream;
    uint64_t position;
    uint32_t aborts;
  };
  void finish(Stream& stream) { (void)wait_until(stream, stream.submitted.load(), kNever); }
  static Target everything_queued(const StreamReference& reference);
  Result<void> wait_for(const Target& target, Deadline deadline);

  // Tasks up to a position that are not to run any more.
  enum class AbortScope : uint8_t { kStream, kDevice };
  struct Dropping {
    Stream* stream;
    uint64_t position;
  };
  // All that are queued; nothing if it is another stream by now.
  std::optional<Dropping> begin_dropping(const StreamReference& reference, AbortScope scope);
  // Waits until they are out of the queue. False at the deadline.
  bool finish_dropping(const Dropping& dropping, Deadline deadline = kNever);

  static Result<void> check_not_default(const StreamReference& reference);
  enum class CloseIf : uint8_t { kEmpty, kAnyway };
  // Makes the handle stale, and gives the reference that is good from then on; nothing if there are
  // tasks.
  Result<std::optional<StreamReference>> close(const StreamReference& reference, CloseIf condition);
  // After it was closed.
  void retire(Stream& stream);
  void retire_at_once(const StreamReference& closed);
  // Streams that were closed and have to end, all of them before the first one is waited for: they
  // may wait for each other.
  class ClosedStreams;

  StreamRegistry registry_;
  StreamOrder order_;
  RunQueue run_queue_;
  WaitGraph wait_graph_;
  Reports reports_;
  TaskRunner runner_;
  Workers workers_;
  StreamWaiter waiter_;
  WorkerHelperPool helpers_;
  CopyEngine& copy_engine_;
  SynchronizationObserver* observer_ = nullptr;
};

}  // namespace understudy
