// SPDX-License-Identifier: Apache-2.0
#include "stream/run_queue.h"

#include <algorithm>
#include <utility>

#include "base/pause.h"
#include "platform/futex.h"
#include "platform/log.h"
#include "platform/thread.h"

namespace understudy {

namespace {

constexpr auto kPatience = std::chrono::microseconds(30);
// How long a worker looks in before it sleeps until it is called, and how often: the kernel adds
// some 50 us of its own to each nap.
constexpr auto kDoze = std::chrono::microseconds(2500);
constexpr auto kNap = std::chrono::microseconds(20);
constexpr unsigned kMostWorkers = 16;

unsigned worker_limit() {
  // Two at least: a long copy on one stream does not keep the others waiting.
  return std::clamp(platform::usable_processors(), 2U, kMostWorkers);
}

}  // namespace

RunQueue::RunQueue(WorkerMain main, const std::optional<ScheduleChoice>& schedule)
    : main_(main),
      patience_(platform::usable_processors() > 1 ? Clock::duration(kPatience)
                                                  : Clock::duration::zero()),
      counts_(worker_limit()),
      schedule_(schedule ? std::make_unique<Schedule>(*schedule) : nullptr) {}

RunQueue::~RunQueue() { end(); }

void RunQueue::end() {
  while (true) {
    {
      MutexLock lock(mutex_);
      ending_ = true;
      sleep_word_.fetch_add(1);
      if (!counts_.has_worker()) break;
    }
    platform::wake_all(sleep_word_);
    nap();
  }
  // The last thing a worker does with this object.
  while (gone_.load(std::memory_order_acquire) != started_.load(std::memory_order_acquire)) nap();
}

// ---- Streams change hands ----

void RunQueue::push_locked(Stream& stream, Successor successor) {
  stream.mark_busy();
  ReadyLink& link = link_locked(stream);
  link.list = is_scheduled() ? 0 : stream.priority.load(std::memory_order_relaxed);
  link.needs_worker = successor == Successor::kWorker;
  List& list = lists_[link.list];
  link.previous = list.last;
  link.next = nullptr;
  (list.last != nullptr ? link_locked(*list.last).next : list.first) = &stream;
  list.last = &stream;
  if (is_scheduled()) [[unlikely]]
    return schedule_->note_ready(Clock::now());
  count_ready_locked(1);
}

void RunQueue::unlink_locked(Stream& stream) {
  const ReadyLink& link = link_locked(stream);
  List& list = lists_[link.list];
  (link.previous != nullptr ? link_locked(*link.previous).next : list.first) = link.next;
  (link.next != nullptr ? link_locked(*link.next).previous : list.last) = link.previous;
  // In no order with what other threads do: those that see it ready still leave it alone as well.
  stream.run_state.store(RunState::kRunning, std::memory_order_release);
  if (is_scheduled()) [[unlikely]]
    return schedule_->note_taken();
  count_ready_locked(-1);
}

Stream* RunQueue::pop_locked() {
  if (is_scheduled()) [[unlikely]]
    return pop_for_turn_locked();
  for (const List& list : lists_) {
    if (list.first == nullptr) continue;
    Stream& stream = *list.first;
    unlink_locked(stream);
    return &stream;
  }
  return nullptr;
}

void RunQueue::offer_idle(Stream& stream) {
  auto call = WorkerCounts::Call::kNone;
  {
    MutexLock lock(mutex_);
    auto idle = RunState::kIdle;
    if (!stream.run_state.compare_exchange_strong(idle, RunState::kReady)) return;
    push_locked(stream, Successor::kAnyone);
    call = call_for_stream_locked();
  }
  answer(call);
}

void RunQueue::hand_over(Stream& stream, Successor successor) {
  auto call = WorkerCounts::Call::kNone;
  {
    MutexLock lock(mutex_);
    stream.run_state.store(RunState::kReady);
    push_locked(stream, successor);
    call = call_for_stream_locked();
  }
  answer(call);
}

bool RunQueue::try_claim(Stream& stream) {
  if (stream.run_state.load() != RunState::kReady) return false;
  MutexLock lock(mutex_);
  if (stream.run_state.load() != RunState::kReady || link_locked(stream).needs_worker) return false;
  unlink_locked(stream);
  return true;
}

bool RunQueue::try_own(Stream& stream) {
  MutexLock lock(mutex_);
  auto idle = RunState::kIdle;
  if (stream.run_state.compare_exchange_strong(idle, RunState::kRunning)) return true;
  if (idle != RunState::kReady) return false;
  unlink_locked(stream);
  return true;
}

bool RunQueue::release(Stream& stream) {
  stream.mark_idle();
  // In this order, and a thread that adds a task does it in the other one: either this thread sees
  // the task, or the other one sees that the stream has no owner.
  stream.run_state.store(RunState::kIdle);
  if (stream.submitted.load() == stream.completed.load()) return true;
  auto idle = RunState::kIdle;
  return !stream.run_state.compare_exchange_strong(idle, RunState::kRunning);
}

// ---- Work items ----

WorkItem* RunQueue::pop_item_locked() {
  if (items_ == nullptr) return nullptr;
  WorkItem& item = *std::exchange(items_, items_->next);
  item.state = WorkItem::State::kTaken;
  count_ready_locked(-1);
  return &item;
}

void RunQueue::push(WorkItem& item) noexcept {
  auto call = WorkerCounts::Call::kNone;
  {
    MutexLock lock(mutex_);
    item.state = WorkItem::State::kOffered;
    item.next = std::exchange(items_, &item);
    count_ready_locked(1);
    call = call_locked(WorkerCounts::Urgency::kNow);  // its owner works on the rest meanwhile
  }
  answer(call);
}

bool RunQueue::try_withdraw(WorkItem& item) noexcept {
  MutexLock lock(mutex_);
  if (item.state != WorkItem::State::kOffered) return item.state == WorkItem::State::kDone;
  WorkItem** link = &items_;
  while (*link != &item) link = &(*link)->next;
  *link = item.next;
  count_ready_locked(-1);
  return true;
}

void RunQueue::finish(WorkItem& item) noexcept {
  MutexLock lock(mutex_);
  item.state = WorkItem::State::kDone;  // from here on it is its owner's
}

// ---- Workers are called ----

WorkerCounts::Call RunQueue::call_locked(WorkerCounts::Urgency urgency) {
  const WorkerCounts::Call call = counts_.call(urgency);
  if (call == WorkerCounts::Call::kSleeper) sleep_word_.fetch_add(1, std::memory_order_relaxed);
  if (call == WorkerCounts::Call::kDozer) doze_word_.fetch_add(1, std::memory_order_relaxed);
  return call;
}

Deadline RunQueue::next_look_locked() const {
  return is_scheduled() ? std::min(alarm(), schedule_->next_look()) : alarm();
}

bool RunQueue::needs_another_locked() const {
  return has_work() || next_look_locked() < watched_until_;
}

void RunQueue::answer(WorkerCounts::Call call) noexcept {
  if (call == WorkerCounts::Call::kNone) return;
  if (call == WorkerCounts::Call::kSleeper) {
    platform::wake_one(sleep_word_);
    return;
  }
  if (call == WorkerCounts::Call::kDozer) {
    platform::wake_one(doze_word_);
    return;
  }
  const Result<void> started = start_worker();
  if (started.ok()) return;
  platform::log_note("%s; fewer threads run the tasks of streams", started.error().text());
  MutexLock lock(mutex_);
  counts_.remove_worker();  // the others will have to do
}

Result<void> RunQueue::start_worker() {
  started_.fetch_add(1, std::memory_order_relaxed);
  Result<void> started = platform::start_thread("understudy", main_.run, main_.argument);
  if (!started.ok()) started_.fetch_sub(1, std::memory_order_relaxed);
  return started;
}

Result<void> RunQueue::start_first_worker(const Stream& stream) {
  {
    MutexLock lock(mutex_);
    if (is_scheduled()) schedule_->note_task(stream);
    if (counts_.has_worker()) return {};
    counts_.add_worker();
  }
  Result<void> started = start_worker();
  if (started.ok()) {
    has_started_.store(!is_scheduled(), std::memory_order_release);
  } else {
    MutexLock lock(mutex_);
    counts_.remove_worker();
  }
  return started;
}

void RunQueue::advance_alarm(Deadline moment) noexcept {
  set_alarm(moment);
  auto call = WorkerCounts::Call::kNone;
  {
    MutexLock lock(mutex_);
    call = call_locked();
  }
  answer(call);
}

void RunQueue::begin_user_code() noexcept {
  auto call = WorkerCounts::Call::kNone;
  {
    MutexLock lock(mutex_);
    counts_.enter_user_code();
    if (is_scheduled()) {
      schedule_->begin_user_code();
      note_turn_locked();
    }
    if (needs_another_locked()) call = call_locked();
  }
  answer(call);
}

void RunQueue::end_user_code() noexcept {
  MutexLock lock(mutex_);
  counts_.leave_user_code();
  if (is_scheduled()) schedule_->end_user_code();
}

void RunQueue::leave(Stream& stream) {
  {
    MutexLock lock(mutex_);
    counts_.remove_worker();
  }
  hand_over(stream, Successor::kAnyone);
  if (is_scheduled()) end_turn();
  gone_.fetch_add(1, std::memory_order_release);
}

void RunQueue::call_if_needed() {
  if (!has_work() && alarm() == kNever) return;
  auto call = WorkerCounts::Call::kNone;
  {
    MutexLock lock(mutex_);
    if (needs_another_locked()) call = call_locked();
  }
  answer(call);
}

void RunQueue::hurry() {
  if (!has_work()) return;
  auto call = WorkerCounts::Call::kNone;
  {
    MutexLock lock(mutex_);
    call = call_locked(WorkerCounts::Urgency::kNow);
  }
  answer(call);
}

// ---- Workers look for work ----

Work RunQueue::next(Seen& seen) {
  while (true) {
    if (has_passed(alarm())) return {Work::Kind::kAlarm};
    auto call = WorkerCounts::Call::kNone;
    Stream* stream = nullptr;
    WorkItem* item = nullptr;
    {
      MutexLock lock(mutex_);
      stream = pop_locked();
      if (stream == nullptr) item = pop_item_locked();
      const bool busy = stream != nullptr || item != nullptr;
      if (busy && needs_another_locked()) call = call_locked();
    }
    answer(call);
    if (stream != nullptr) return {Work::Kind::kStream, stream};
    if (item != nullptr) return {Work::Kind::kItem, nullptr, item};
    if (seen == Seen::kSome) {
      look_out();
      seen = Seen::kNothing;
      continue;
    }
    if (!is_needed()) {
      gone_.fetch_add(1, std::memory_order_release);
      return {Work::Kind::kEnd};
    }
    if (doze()) continue;
    sleep();
    seen = Seen::kSome;
  }
}

bool RunQueue::linger(const Stream& stream) {
  const uint64_t done = stream.completed.load(std::memory_order_relaxed);
  if (patience_ == Clock::duration::zero()) return false;
  {
    MutexLock lock(mutex_);
    counts_.begin_looking_out();
  }
  const Deadline until = Clock::now() + patience_;
  bool found = false;
  do {
    for (int i = 0; i < 16 && !found; ++i) {
      pause_briefly();
      found = stream.submitted.load(std::memory_order_acquire) != done;
    }
  } while (!found && !has_work() && !stream.is_orphan.load(std::memory_order_relaxed) &&
           Clock::now() < until);
  MutexLock lock(mutex_);
  counts_.end_looking_out();
  return found;
}

void RunQueue::look_out() {
  if (patience_ == Clock::duration::zero()) return;
  {
    MutexLock lock(mutex_);
    counts_.begin_looking_out();
  }
  const Deadline until = std::min(Clock::now() + patience_, alarm());
  do {
    for (int i = 0; i < 16 && !has_work(); ++i) pause_briefly();
  } while (!has_work() && Clock::now() < until);
  MutexLock lock(mutex_);
  counts_.end_looking_out();
}

bool RunQueue::doze() {
  uint32_t word = 0;
  {
    MutexLock lock(mutex_);
    if (has_work() || ending_) return true;
    if (is_scheduled() || !counts_.try_doze()) return false;
    word = doze_word_.load(std::memory_order_relaxed);
  }
  Deadline now = Clock::now();
  const Deadline until = now + kDoze;
  bool found = false;
  while (!found && now < until) {
    platform::sleep_on(doze_word_, word, std::min<Deadline>(now + kNap, alarm()));
    now = Clock::now();
    found = has_work() || has_passed(alarm()) || doze_word_.load(std::memory_order_relaxed) != word;
  }
  MutexLock lock(mutex_);
  counts_.end_dozing();
  // What was added before this lock was taken called no other worker.
  return found || has_work() || ending_;
}

bool RunQueue::is_needed() {
  auto call = WorkerCounts::Call::kNone;
  {
    MutexLock lock(mutex_);
    if (!ending_ && !counts_.has_too_many()) return true;
    counts_.remove_worker();
    // It may have been this worker that was called.
    if (!ending_ && needs_another_locked()) call = call_locked();
  }
  answer(call);
  return false;
}

void RunQueue::sleep() {
  uint32_t word = 0;
  Deadline deadline = kNever;
  {
    MutexLock lock(mutex_);
    if (has_work() || ending_) return;
    counts_.fall_asleep();
    // One sleeper that watches the clock is enough.
    const Deadline look = next_look_locked();
    if (look < watched_until_) deadline = watched_until_ = look;
    word = sleep_word_.load(std::memory_order_relaxed);
  }
  platform::sleep_on(sleep_word_, word, deadline);
  MutexLock lock(mutex_);
  counts_.wake_up();
  if (deadline == watched_until_) watched_until_ = kNever;
}

}  // namespace understudy
