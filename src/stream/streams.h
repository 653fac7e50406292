// SPDX-License-Identifier: Apache-2.0
//
// All streams of the process: made, given tasks, waited for, and ended. A thread that waits for a
// stream nobody runs does the work itself, as far as it contains no function of the program.
// Rules: STREAM, GEN-04 to GEN-06. Any thread may call anything, without a lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/deadline.h"
#include "base/mutex.h"
#include "base/result.h"
#include "device/settings.h"
#include "memory/host_memory.h"
#include "memory/transfer.h"
#include "stream/reports.h"
#include "stream/scheduler.h"
#include "stream/stream.h"
#include "stream/task_runner.h"
#include "stream/waiting.h"

namespace understudy {

struct StreamDescription {
  uint64_t owner = 0;  // the context, by its handle
  unsigned device = 0;
  uint32_t priority = 0;
  uint32_t flags = 0;  // for whoever asks for them
  bool is_default = false;
  bool is_unattended = false;
};

enum class FailureMode : uint8_t { kContinue, kStop };

// Position of the task that the calling thread queued last, as far as 32 bits tell; 0 before.
uint32_t last_task_of_thread();

class Streams final : private WorkerClient {
 public:
  Streams(const Settings& settings, Transfer& transfer, HostMemory& host);
  ~Streams();

  Result<StreamReference> create(const StreamDescription& description);
  // Refuses handles of streams that ended or never were.
  Result<StreamReference> find(uint64_t handle);
  // How many can still be made on a device.
  unsigned available(unsigned device) const;

  // Adds a task and takes over what it owns, also where it fails. Gives its position. Waits where a
  // stream that runs has very many.
  Result<uint64_t> submit(const StreamReference& reference, const Task& task);
  // The two halves of it: what may wait or fail, and what does not wait. For callers that hold a
  // lock which a task may need.
  Result<void> prepare(const StreamReference& reference);
  Result<uint64_t> submit_prepared(const StreamReference& reference, Task task);

  // Waits for the tasks queued so far; the error of one that failed.
  Result<void> synchronize(const StreamReference& reference, Deadline deadline = kNever);
  // The same whatever kind of stream it is.
  Result<void> drain(const StreamReference& reference);
  // The same for all streams of a context.
  Result<void> synchronize_owner(uint64_t owner, Deadline deadline = kNever);
  // Waits for all of them, whatever comes of their tasks.
  void finish_owner(uint64_t owner);
  static bool is_complete(const StreamReference& reference);
  // Waits until a task is done. False at the deadline.
  bool wait_until(Stream& stream, uint64_t position, Deadline deadline);

  // Ends a stream after its tasks, or drops those that have not begun. Not for default streams.
  Result<void> destroy(const StreamReference& reference);
  Result<void> destroy_at_once(const StreamReference& reference);
  // Ends all streams of a context at once, its default stream, too.
  void end_owner(uint64_t owner);

  // Drops all tasks of a stream and forgets its failures; threads that wait for it hear of that.
  // Does not wait for a function of the program to return.
  void abort(const StreamReference& reference);
  // The same for all streams of a device, until a limit of time.
  Result<void> abort_device(unsigned device, Deadline deadline);
  // Ends the task in front, if it waits or takes long; the others run.
  void stop_front(const StreamReference& reference);

  // Once a context stops on failures, it stays so.
  Result<void> set_failure_mode(const StreamReference& reference, FailureMode mode);
  void set_priority(const StreamReference& reference, uint32_t priority);
  StreamSettings settings_of(const StreamReference& reference);
  template <typename Change>
  void change_settings(const StreamReference& reference, Change change) {
    MutexLock lock(mutex_);
    if (reference.valid()) change(reference.stream->settings);
  }

  // From now on idle workers help with large copies of this process.
  void help_with_copies();

  Reports& reports() { return reports_; }
  Waiting& waiting() { return waiting_; }

 private:
  // Streams with more tasks make those who add to them wait, unless they are parked.
  static constexpr uint64_t kCrowded = 16 * 1024;
  static constexpr uint64_t kMostQueued = 1024 * 1024;
  enum class AbortScope : uint8_t { kStream, kDevice };

  RunEnd run(Stream& stream) override;
  void recycle(Stream& stream) override;
  Deadline next_wake() const override { return waiting_.next_wake(); }
  void wake_due() override { waiting_.wake_due(); }

  static bool has_room(Stream& stream);
  Result<void> wait_for_room(const StreamReference& reference);
  // Runs what a stream needs to get to a position, as far as the caller may.
  void help(Stream& stream, uint64_t position, Deadline deadline);
  // Runs a stream that the caller owns up to a position, as far as a thread that waits may.
  RunEnd run_for(const Waiting::Blocker& wanted, Deadline deadline);
  // The caller owns the stream and has run it.
  void let_go(Stream& stream, RunEnd end);
  Waiting::Outcome wait_once(Stream& stream, uint64_t position, Deadline deadline);
  Result<void> finish_waiting(const StreamReference& reference, uint64_t position, uint32_t aborts,
                              Deadline deadline);
  // Streams that live and for which `matches` is true.
  template <typename Matches>
  std::vector<StreamReference> collect(Matches matches) const;
  std::vector<StreamReference> streams_of(uint64_t owner) const;

  // Tasks up to a position that are not to run any more.
  struct Dropping {
    Stream* stream;
    uint64_t position;
  };
  // All that are queued; nothing if it is another stream by now.
  std::optional<Dropping> begin_dropping(const StreamReference& reference, AbortScope scope);
  // Waits until they are out of the queue. False at the deadline.
  bool finish_dropping(const Dropping& dropping, Deadline deadline = kNever);

  static Result<void> check_not_default(const Stream& stream);
  enum class CloseIf : uint8_t { kEmpty, kAnyway };
  // Makes the handle stale, and gives the reference that is good from then on; nothing if there are
  // tasks.
  Result<std::optional<StreamReference>> close(const StreamReference& reference, CloseIf condition);
  // After it was closed.
  void retire(Stream& stream);
  void retire_at_once(const StreamReference& closed);

  const Settings& settings_;
  StreamPool pool_;
  Scheduler scheduler_;
  Waiting waiting_;
  Reports reports_;
  TaskRunner runner_;
  std::array<std::atomic<uint32_t>, kMaxDevices> created_{};  // without default streams
  Mutex mutex_{LockRank::kStreamRegistry};
  std::set<uint64_t> stopping_owners_ US_GUARDED_BY(mutex_);
  bool helps_ = false;
};

}  // namespace understudy
