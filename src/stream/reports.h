// SPDX-License-Identifier: Apache-2.0
//
// Callbacks that run on threads of the program: a thread subscribes to streams, streams send it
// reports, and the thread takes them one at a time. A stream has either a subscribed thread or
// host functions, which run on threads of the library. Rules: CB.
// Any thread may call anything.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/deadline.h"
#include "base/mutex.h"
#include "base/result.h"
#include "stream/stream.h"
#include "stream/wait_graph.h"

namespace understudy {

struct Report {
  Stream* stream = nullptr;
  uint64_t position = 0;
  UserFunction callback{};
};

// What one thread is to run.
struct ReportQueue {
  struct Contents {
    unsigned device = 0;
    unsigned streams = 0;  // that it serves
    std::deque<Report> reports;
  };
  KeptBy<Reports, Contents> contents;
  std::atomic<uint32_t> word{0};  // what the thread sleeps on
};

class Reports {
 public:
  explicit Reports(WaitGraph& wait_graph) : wait_graph_(wait_graph) {}

  Result<void> subscribe(const StreamReference& reference, uint64_t thread);
  // Callbacks that have not begun are dropped, which is a failure of the stream.
  Result<void> unsubscribe(const StreamReference& reference, uint64_t thread);
  // Refuses a stream that has no subscribed thread, or one with far too much to do.
  Result<void> check_subscribed(const StreamReference& reference);
  // Makes it a stream of host functions from now on.
  Result<void> claim_for_host_functions(const StreamReference& reference);

  // Sends a callback out. False if no thread is subscribed.
  bool send(Stream& stream, uint64_t position, const UserFunction& callback);
  // The next report for a thread.
  Result<Report> take(uint64_t thread, Deadline deadline);
  // Runs the callback, on the thread that took the report.
  static void call(const Report& report);
  // The callback has run.
  void answer(const Report& report);
  // Drops reports of a stream whose tasks up to a position are dropped.
  void forget(Stream& stream, uint64_t position);
  // The stream has ended. What it had sent still runs.
  void end(Stream& stream);

  // A callback will never run.
  void note_dropped(const UserFunction& callback);
  // Takes the arguments of callbacks of a function that will never run, as many as there is room
  // for. They are remembered from the first call for a function on.
  size_t take_dropped(void (*function)(void*), std::span<void*> room);

 private:
  static constexpr size_t kMostReports = 1024 * 1024;
  static constexpr size_t kMostThreads = 1024;

  Subscription& subscription_locked(Stream& stream) US_REQUIRES(mutex_) {
    return stream.subscription.value;
  }
  ReportQueue::Contents& contents_locked(ReportQueue& queue) US_REQUIRES(mutex_) {
    return queue.contents.value;
  }

  // Takes the stream from its thread.
  void leave_locked(Stream& stream) US_REQUIRES(mutex_);
  // A thread that serves no stream and has nothing to run is not subscribed any more.
  void end_if_idle_locked(const std::shared_ptr<ReportQueue>& queue) US_REQUIRES(mutex_);
  // Returns the position of the last one that was dropped, 0 if there was none.
  uint64_t drop_reports_locked(Stream& stream, uint64_t up_to) US_REQUIRES(mutex_);
  void note_dropped_locked(const UserFunction& callback) US_REQUIRES(mutex_);

  WaitGraph& wait_graph_;
  Mutex mutex_{LockRank::kReports};
  std::map<uint64_t, std::shared_ptr<ReportQueue>> by_thread_ US_GUARDED_BY(mutex_);
  // By function, for those that were asked for.
  std::map<void (*)(void*), std::vector<void*>> dropped_ US_GUARDED_BY(mutex_);
};

}  // namespace understudy
