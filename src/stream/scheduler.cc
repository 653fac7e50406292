// SPDX-License-Identifier: Apache-2.0
#include "stream/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/pause.h"
#include "platform/futex.h"
#include "platform/thread.h"

namespace understudy {

namespace {

constexpr auto kPatience = std::chrono::microseconds(30);
constexpr unsigned kMostWorkers = 16;

unsigned worker_limit() {
  // Two at least: a long copy on one stream does not keep the others waiting.
  return std::clamp(platform::usable_processors(), 2U, kMostWorkers);
}

}  // namespace

Scheduler::Scheduler(WorkerClient& client)
    : client_(client),
      most_workers_(worker_limit()),
      patience_(platform::usable_processors() > 1 ? Clock::duration(kPatience)
                                                  : Clock::duration::zero()),
      helpers_(std::min(platform::usable_processors() - 1, kMostHelpers)) {}

Scheduler::~Scheduler() { end(); }

void Scheduler::end() {
  while (true) {
    {
      MutexLock lock(mutex_);
      ending_ = true;
      sleep_word_.fetch_add(1);
      if (workers_ == 0) break;
    }
    platform::wake_all(sleep_word_);
    nap();
  }
  // The last thing a worker does with this object.
  while (gone_.load(std::memory_order_acquire) != started_.load(std::memory_order_acquire)) nap();
}

// ---- Streams change hands ----

void Scheduler::push_locked(Stream& stream) {
  List& list = lists_[stream.priority.load(std::memory_order_relaxed)];
  stream.ready_previous = list.last;
  stream.ready_next = nullptr;
  (list.last != nullptr ? list.last->ready_next : list.first) = &stream;
  list.last = &stream;
  stream.ready_list = static_cast<size_t>(&list - lists_.data());
  ready_.fetch_add(1, std::memory_order_relaxed);
}

void Scheduler::unlink_locked(Stream& stream) {
  List& list = lists_[stream.ready_list];
  (stream.ready_previous != nullptr ? stream.ready_previous->ready_next : list.first) =
      stream.ready_next;
  (stream.ready_next != nullptr ? stream.ready_next->ready_previous : list.last) =
      stream.ready_previous;
  ready_.fetch_sub(1, std::memory_order_relaxed);
}

Stream* Scheduler::pop_locked() {
  for (List& list : lists_) {
    if (list.first == nullptr) continue;
    Stream& stream = *list.first;
    unlink_locked(stream);
    stream.needs_worker = false;
    stream.run_state.store(RunState::kRunning);
    return &stream;
  }
  return nullptr;
}

void Scheduler::offer_idle(Stream& stream) {
  Call call;
  {
    MutexLock lock(mutex_);
    auto idle = RunState::kIdle;
    if (!stream.run_state.compare_exchange_strong(idle, RunState::kReady)) return;
    stream.needs_worker = false;
    push_locked(stream);
    call = call_locked();
  }
  answer(call);
}

void Scheduler::hand_over(Stream& stream, Successor successor) {
  Call call;
  {
    MutexLock lock(mutex_);
    stream.run_state.store(RunState::kReady);
    stream.needs_worker = successor == Successor::kWorker;
    push_locked(stream);
    call = call_locked();
  }
  answer(call);
}

bool Scheduler::try_claim(Stream& stream) {
  if (stream.run_state.load() != RunState::kReady) return false;
  MutexLock lock(mutex_);
  if (stream.run_state.load() != RunState::kReady || stream.needs_worker) return false;
  unlink_locked(stream);
  stream.run_state.store(RunState::kRunning);
  return true;
}

bool Scheduler::try_own(Stream& stream) {
  MutexLock lock(mutex_);
  auto idle = RunState::kIdle;
  if (stream.run_state.compare_exchange_strong(idle, RunState::kRunning)) return true;
  if (idle != RunState::kReady) return false;
  unlink_locked(stream);
  stream.run_state.store(RunState::kRunning);
  return true;
}

bool Scheduler::release(Stream& stream) {
  // In this order, and whoever adds a task does it in the other one: either this thread sees the
  // task, or the other one sees that nobody owns the stream.
  stream.run_state.store(RunState::kIdle);
  if (stream.submitted.load() != stream.completed.load()) {
    auto idle = RunState::kIdle;
    if (stream.run_state.compare_exchange_strong(idle, RunState::kRunning)) return false;
  }
  if (stream.is_orphan.load()) client_.recycle(stream);
  return true;
}

// ---- Errands ----

Errand* Scheduler::pop_errand_locked() {
  if (errands_ == nullptr) return nullptr;
  Errand& errand = *std::exchange(errands_, errands_->next);
  errand.state = Errand::State::kTaken;
  ready_.fetch_sub(1, std::memory_order_relaxed);
  return &errand;
}

void Scheduler::run_errand(Errand& errand) {
  errand.work(errand.argument);
  MutexLock lock(mutex_);
  errand.state = Errand::State::kDone;  // from here on it is its owner's
}

void Scheduler::offer(std::span<Errand> errands) noexcept {
  for (Errand& errand : errands) {
    Call call;
    {
      MutexLock lock(mutex_);
      errand.state = Errand::State::kOffered;
      errand.next = std::exchange(errands_, &errand);
      ready_.fetch_add(1, std::memory_order_relaxed);
      call = call_locked();
    }
    answer(call);
  }
}

void Scheduler::withdraw(std::span<Errand> errands) noexcept {
  for (Errand& errand : errands) {
    while (true) {
      {
        MutexLock lock(mutex_);
        if (errand.state == Errand::State::kDone) break;
        if (errand.state == Errand::State::kOffered) {
          Errand** link = &errands_;
          while (*link != &errand) link = &(*link)->next;
          *link = errand.next;
          ready_.fetch_sub(1, std::memory_order_relaxed);
          break;
        }
      }
      // Somebody is in the middle of its last step.
      nap();
    }
  }
}

// ---- Workers ----

Scheduler::Call Scheduler::call_locked() {
  if (looking_out_ > 0) return Call::kNobody;  // it will see
  if (sleeping_ > called_) {
    ++called_;
    sleep_word_.fetch_add(1, std::memory_order_relaxed);
    return Call::kSleeper;
  }
  if (called_ > 0 || workers_ - in_user_code_ >= most_workers_) return Call::kNobody;
  ++workers_;
  return Call::kNewWorker;
}

bool Scheduler::needs_another_locked() const {
  return ready_.load(std::memory_order_relaxed) > 0 || client_.next_wake() < watched_until_;
}

void Scheduler::answer(Call call) noexcept {
  if (call == Call::kNobody) return;
  if (call == Call::kSleeper) {
    platform::wake_one(sleep_word_);
    return;
  }
  if (start_worker().ok()) return;
  MutexLock lock(mutex_);
  --workers_;  // the others will have to do
}

Result<void> Scheduler::start_worker() {
  started_.fetch_add(1, std::memory_order_relaxed);
  Result<void> started = platform::start_thread("understudy", work, this);
  if (!started.ok()) started_.fetch_sub(1, std::memory_order_relaxed);
  return started;
}

Result<void> Scheduler::start_first_worker() {
  {
    MutexLock lock(mutex_);
    if (workers_ > 0) return {};
    ++workers_;
  }
  Result<void> started = start_worker();
  MutexLock lock(mutex_);
  if (!started.ok()) {
    --workers_;
  } else {
    has_started_.store(true, std::memory_order_release);
  }
  return started;
}

void Scheduler::poke() noexcept {
  Call call;
  {
    MutexLock lock(mutex_);
    call = call_locked();
  }
  answer(call);
}

void Scheduler::begin_user_code() noexcept {
  Call call = Call::kNobody;
  {
    MutexLock lock(mutex_);
    ++in_user_code_;
    if (needs_another_locked()) call = call_locked();
  }
  answer(call);
}

void Scheduler::end_user_code() noexcept {
  MutexLock lock(mutex_);
  --in_user_code_;
}

void Scheduler::work(void* scheduler) {
  auto& self = *static_cast<Scheduler*>(scheduler);
  auto seen = Seen::kNothing;
  while (Stream* const stream = self.next_stream(seen)) seen = self.serve(*stream);
  self.gone_.fetch_add(1, std::memory_order_release);
}

Scheduler::Seen Scheduler::serve(Stream& stream) {
  while (true) {
    const RunEnd end = client_.run(stream);
    if (has_passed(client_.next_wake())) client_.wake_due();
    switch (end) {
      case RunEnd::kParked:
        return Seen::kSome;
      case RunEnd::kEmpty:
        if (!linger(stream) && release(stream)) return Seen::kNothing;
        call_if_needed();  // others may have relied on this worker, which has work again
        break;
      case RunEnd::kReached:
      case RunEnd::kForOther:
      case RunEnd::kTurnOver:
        if (ready_.load(std::memory_order_relaxed) == 0) break;
        hand_over(stream, Successor::kAnyone);
        return Seen::kSome;
    }
  }
}

bool Scheduler::linger(Stream& stream) {
  const uint64_t done = stream.completed.load(std::memory_order_relaxed);
  if (patience_ == Clock::duration::zero()) return false;
  {
    MutexLock lock(mutex_);
    ++looking_out_;
  }
  const Deadline until = Clock::now() + patience_;
  bool found = false;
  do {
    for (int i = 0; i < 16 && !found; ++i) {
      pause_briefly();
      found = stream.submitted.load(std::memory_order_acquire) != done;
    }
  } while (!found && ready_.load(std::memory_order_relaxed) == 0 &&
           !stream.is_orphan.load(std::memory_order_relaxed) && Clock::now() < until);
  MutexLock lock(mutex_);
  --looking_out_;
  return found;
}

void Scheduler::call_if_needed() {
  if (ready_.load(std::memory_order_relaxed) == 0 && client_.next_wake() == kNever) return;
  auto call = Call::kNobody;
  {
    MutexLock lock(mutex_);
    if (needs_another_locked()) call = call_locked();
  }
  answer(call);
}

void Scheduler::look_out() {
  if (patience_ == Clock::duration::zero()) return;
  {
    MutexLock lock(mutex_);
    ++looking_out_;
  }
  const Deadline until = std::min(Clock::now() + patience_, client_.next_wake());
  do {
    for (int i = 0; i < 16 && ready_.load(std::memory_order_relaxed) == 0; ++i) pause_briefly();
  } while (ready_.load(std::memory_order_relaxed) == 0 && Clock::now() < until);
  MutexLock lock(mutex_);
  --looking_out_;
}

Stream* Scheduler::next_stream(Seen seen) {
  while (true) {
    if (has_passed(client_.next_wake())) client_.wake_due();
    Call call = Call::kNobody;
    Stream* stream = nullptr;
    Errand* errand = nullptr;
    {
      MutexLock lock(mutex_);
      stream = pop_locked();
      if (stream == nullptr) errand = pop_errand_locked();
      const bool busy = stream != nullptr || errand != nullptr;
      if (busy && needs_another_locked()) call = call_locked();
    }
    answer(call);
    if (stream != nullptr) return stream;
    if (errand != nullptr) {
      run_errand(*errand);
      seen = Seen::kSome;
      continue;
    }
    if (seen == Seen::kSome) {
      look_out();
      seen = Seen::kNothing;
      continue;
    }
    if (!is_needed()) return nullptr;
    sleep();
    seen = Seen::kSome;
  }
}

bool Scheduler::is_needed() {
  auto call = Call::kNobody;
  {
    MutexLock lock(mutex_);
    if (!ending_ && workers_ - in_user_code_ <= most_workers_) return true;
    --workers_;
    // It may have been this worker that was called.
    if (!ending_ && needs_another_locked()) call = call_locked();
  }
  answer(call);
  return false;
}

void Scheduler::sleep() {
  uint32_t word = 0;
  Deadline deadline = kNever;
  {
    MutexLock lock(mutex_);
    if (ready_.load(std::memory_order_relaxed) > 0 || ending_) return;
    ++sleeping_;
    // One sleeper that watches the clock is enough.
    if (client_.next_wake() < watched_until_) deadline = watched_until_ = client_.next_wake();
    word = sleep_word_.load(std::memory_order_relaxed);
  }
  platform::sleep_on(sleep_word_, word, deadline);
  MutexLock lock(mutex_);
  --sleeping_;
  if (called_ > 0) --called_;
  if (deadline == watched_until_) watched_until_ = kNever;
}

}  // namespace understudy
