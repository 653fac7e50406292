// SPDX-License-Identifier: Apache-2.0
#include "stream/reports.h"

#include <algorithm>
#include <cinttypes>
#include <new>
#include <utility>

#include "platform/futex.h"
#include "platform/log.h"
#include "platform/thread.h"
#include "stream/task_failure.h"
#include "stream/task_uses.h"
#include "stream/user_code.h"

namespace understudy {

namespace {

Error has_host_functions(const Stream& stream) {
  return Error::format(ErrorCode::kStreamSubscription,
                       "stream %u has host functions, which need no subscribed thread",
                       stream.index);
}

Result<void> check_alive(const StreamReference& reference) {
  if (reference.valid()) [[likely]]
    return {};
  return not_a_live_stream(reference.handle());
}

Error not_subscribed(ErrorCode code, const Stream& stream) {
  return Error::format(code, "no thread is subscribed to stream %u", stream.index);
}

Error thread_not_subscribed(uint64_t thread) {
  return Error::format(ErrorCode::kThreadSubscription,
                       "thread 0x%" PRIx64 " is not subscribed to any stream", thread);
}

void ring(ReportQueue& queue) {
  queue.word.fetch_add(1);
  platform::wake_all(queue.word);
}

}  // namespace

Result<void> Reports::subscribe(const StreamReference& reference, uint64_t thread) {
  Stream& stream = *reference.stream;
  auto fresh = std::make_shared<ReportQueue>();
  MutexLock lock(mutex_);
  US_TRY(check_alive(reference));
  Subscription& subscription = subscription_locked(stream);
  if (subscription.had_host_functions) return has_host_functions(stream);
  const auto known = by_thread_.find(thread);
  if (subscription.queue != nullptr) {
    const bool is_same = known != by_thread_.end() && known->second == subscription.queue;
    return Error::format(is_same ? ErrorCode::kStreamSubscription : ErrorCode::kInvalidParam,
                         "%s thread is subscribed to stream %u already",
                         is_same ? "the" : "another", stream.index);
  }
  if (known == by_thread_.end() && by_thread_.size() >= kMostThreads) {
    return Error::format(ErrorCode::kOutOfResources, "limit of subscribed threads (%zu) reached",
                         kMostThreads);
  }
  const auto [found, is_first] = by_thread_.try_emplace(thread, fresh);
  ReportQueue::Contents& contents = contents_locked(*found->second);
  if (is_first) contents.device = stream.device.load();
  if (contents.device != stream.device.load()) {
    return Error::format(ErrorCode::kInvalidParam,
                         "thread 0x%" PRIx64 " serves streams of device %u, not of device %u",
                         thread, contents.device, stream.device.load());
  }
  ++contents.streams;
  subscription.queue = found->second;
  return {};
}

Result<void> Reports::unsubscribe(const StreamReference& reference, uint64_t thread) {
  Stream& stream = *reference.stream;
  uint64_t dropped = 0;
  {
    MutexLock lock(mutex_);
    US_TRY(check_alive(reference));
    const Subscription& subscription = subscription_locked(stream);
    if (subscription.had_host_functions) return has_host_functions(stream);
    if (subscription.queue == nullptr) {
      return not_subscribed(ErrorCode::kStreamSubscription, stream);
    }
    const auto found = by_thread_.find(thread);
    if (found == by_thread_.end() || found->second != subscription.queue) {
      return Error::format(ErrorCode::kThreadSubscription,
                           "another thread than 0x%" PRIx64 " is subscribed to stream %u", thread,
                           stream.index);
    }
    dropped = drop_reports_locked(stream, UINT64_MAX);
    leave_locked(stream);
  }
  if (dropped > 0) {
    const Error error = Error::format(
        ErrorCode::kNoCallbackThread,
        "the thread of stream %u unsubscribed before its callbacks ran", stream.index);
    log_failure({stream.device.load(), stream.index, static_cast<uint32_t>(dropped),
                 platform::kernel_thread_id(), &error});
    note_failure(reference, error, FailureLife::kUntilTaken);
    answer({&stream, dropped, {}});
  }
  return {};
}

uint64_t Reports::drop_reports_locked(Stream& stream, uint64_t up_to) {
  uint64_t last = 0;
  const Subscription& subscription = subscription_locked(stream);
  if (subscription.queue == nullptr) return last;
  std::deque<Report>& reports = contents_locked(*subscription.queue).reports;
  const auto is_dropped = [&](const Report& report) {
    return report.stream == &stream && report.position <= up_to;
  };
  for (const Report& report : reports) {
    if (!is_dropped(report)) continue;
    last = std::max(last, report.position);
    note_dropped_locked(report.callback);
  }
  std::erase_if(reports, is_dropped);
  return last;
}

void Reports::leave_locked(Stream& stream) {
  const std::shared_ptr<ReportQueue> queue =
      std::exchange(subscription_locked(stream).queue, nullptr);
  if (queue == nullptr) return;
  --contents_locked(*queue).streams;
  end_if_idle_locked(queue);
}

void Reports::end_if_idle_locked(const std::shared_ptr<ReportQueue>& queue) {
  const ReportQueue::Contents& contents = contents_locked(*queue);
  if (contents.streams > 0 || !contents.reports.empty()) return;
  std::erase_if(by_thread_, [&](const auto& entry) { return entry.second == queue; });
  ring(*queue);  // a thread that waits for reports finds that there will be none
}

Result<void> Reports::check_subscribed(const StreamReference& reference) {
  Stream& stream = *reference.stream;
  MutexLock lock(mutex_);
  US_TRY(check_alive(reference));
  const Subscription& subscription = subscription_locked(stream);
  if (subscription.had_host_functions) return has_host_functions(stream);
  if (subscription.queue == nullptr) return not_subscribed(ErrorCode::kNoCallbackThread, stream);
  if (contents_locked(*subscription.queue).reports.size() < kMostReports) return {};
  return Error::format(ErrorCode::kQueueFull,
                       "callback limit (%zu) of the thread that is subscribed to stream %u reached",
                       kMostReports, stream.index);
}

Result<void> Reports::claim_for_host_functions(const StreamReference& reference) {
  Stream& stream = *reference.stream;
  MutexLock lock(mutex_);
  US_TRY(check_alive(reference));
  Subscription& subscription = subscription_locked(stream);
  if (subscription.queue != nullptr) {
    return Error::format(ErrorCode::kStreamSubscription,
                         "a thread is subscribed to stream %u, which can have no host functions",
                         stream.index);
  }
  subscription.had_host_functions = true;
  return {};
}

bool Reports::send(Stream& stream, uint64_t position, const UserFunction& callback) {
  MutexLock lock(mutex_);
  const Subscription& subscription = subscription_locked(stream);
  if (subscription.queue == nullptr) return false;
  contents_locked(*subscription.queue).reports.push_back({&stream, position, callback});
  ring(*subscription.queue);
  return true;
}

Result<Report> Reports::take(uint64_t thread, Deadline deadline) {
  while (true) {
    std::shared_ptr<ReportQueue> queue;
    uint32_t word = 0;
    {
      MutexLock lock(mutex_);
      const auto found = by_thread_.find(thread);
      if (found == by_thread_.end()) return thread_not_subscribed(thread);
      queue = found->second;
      std::deque<Report>& reports = contents_locked(*queue).reports;
      if (!reports.empty()) {
        const Report report = reports.front();
        reports.pop_front();
        end_if_idle_locked(queue);
        return report;
      }
      word = queue->word.load();
    }
    if (has_passed(deadline)) {
      return Error::format(ErrorCode::kReportTimeout, "no callback arrived in time");
    }
    wait_graph_.wait_for_change(queue->word, word, deadline);
  }
}

void Reports::call(const Report& report) {
  const UserFunction& callback = report.callback;
  const OrderedFunction ordered(
      *report.stream, report.position,
      callback.blocks ? Order::AfterFunction::kWaits : Order::AfterFunction::kWent);
  const UserCodeMark mark;
  callback.function(callback.argument);
}

void Reports::answer(const Report& report) {
  Stream& stream = *report.stream;
  uint64_t known = stream.answered.load();
  while (known < report.position &&
         !stream.answered.compare_exchange_weak(known, report.position)) {
  }
  wait_graph_.wake(stream);
}

void Reports::forget(Stream& stream, uint64_t position) {
  MutexLock lock(mutex_);
  drop_reports_locked(stream, position);
}

void Reports::end(Stream& stream) {
  MutexLock lock(mutex_);
  leave_locked(stream);
  subscription_locked(stream).had_host_functions = false;
}

void Reports::note_dropped(const UserFunction& callback) {
  MutexLock lock(mutex_);
  note_dropped_locked(callback);
}

void Reports::note_dropped_locked(const UserFunction& callback) {
  platform::log_note("the callback %p with the argument %p is dropped and never runs",
                     reinterpret_cast<void*>(callback.function), callback.argument);
  const auto asked_for = dropped_.find(callback.function);
  if (asked_for == dropped_.end()) return;
  try {
    asked_for->second.push_back(callback.argument);
  } catch (const std::bad_alloc&) {
    // Then this one is not remembered; the stream goes on.
  }
}

size_t Reports::take_dropped(void (*function)(void*), std::span<void*> room) {
  MutexLock lock(mutex_);
  std::vector<void*>& dropped = dropped_[function];
  const size_t count = std::min(room.size(), dropped.size());
  std::copy(dropped.end() - static_cast<ptrdiff_t>(count), dropped.end(), room.begin());
  dropped.resize(dropped.size() - count);
  return count;
}

}  // namespace understudy
