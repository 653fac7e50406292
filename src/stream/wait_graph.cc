// SPDX-License-Identifier: Apache-2.0
#include "stream/wait_graph.h"

#include <algorithm>

#include "platform/futex.h"

namespace understudy {

// ---- Parking ----

bool WaitGraph::is_cut_short(const Stream& stream) {
  const uint64_t position = stream.completed.load(std::memory_order_relaxed) + 1;
  return stream.drops(position) || stream.stops(position);
}

void WaitGraph::watch_locked(Stream& on, Waiter& waiter, uint64_t position) {
  waiter.position = position;
  waiters_locked(on).add(waiter);
  // In this order, and the owner of `on` does it in the other one: either it sees what is wanted,
  // or the caller sees how far it got.
  if (position < on.wanted.load()) on.wanted.store(position);
}

void WaitGraph::unwatch_locked(Stream& on, Waiter& waiter) {
  waiter.unlink();
  find_wanted_locked(on);
}

void WaitGraph::find_wanted_locked(Stream& on) {
  uint64_t lowest = kNoPosition;
  WaitList& waiters = waiters_locked(on);
  for (Waiter* each = waiters.first(); each != nullptr; each = waiters.after(*each)) {
    lowest = std::min(lowest, each->position);
  }
  on.wanted.store(lowest);
}

void WaitGraph::park_locked(Stream& stream, Deadline wake_at) {
  ParkedStream& parked = parked_locked(stream);
  parked.wake_at = wake_at;
  if (wake_at != kNever) {
    parked.timed.stream = &stream;
    timed_.add(parked.timed);
    if (wake_at < run_queue_.alarm()) run_queue_.advance_alarm(wake_at);
  }
  stream.run_state.store(RunState::kParked);
}

void WaitGraph::unpark_locked(Stream& stream) {
  ParkedStream& parked = parked_locked(stream);
  parked.waiter.unlink();
  parked.waits_for = nullptr;
  if (parked.parked_with != nullptr) {
    parked.parked_with->count.fetch_sub(1, std::memory_order_relaxed);
    parked.parked_with = nullptr;
  }
  if (parked.values.is_linked()) {
    parked.values.unlink();
    value_waiters_.fetch_sub(1, std::memory_order_relaxed);
  }
  parked.timed.unlink();
}

void WaitGraph::wake_locked(Stream& stream) {
  unpark_locked(stream);
  run_queue_.hand_over(stream, RunQueue::Successor::kAnyone);
}

bool WaitGraph::park_until_done(Stream& stream, Stream& on, uint64_t position, Deadline wake_at) {
  MutexLock lock(mutex_);
  if (is_cut_short(stream)) return false;
  ParkedStream& parked = parked_locked(stream);
  parked.waiter.stream = &stream;
  watch_locked(on, parked.waiter, position);
  if (on.completed.load() >= position) {
    unwatch_locked(on, parked.waiter);
    return false;
  }
  parked.waits_for = &on;
  park_locked(stream, wake_at);
  return true;
}

template <typename Stays>
bool WaitGraph::park_in(ParkedStreams& list, Stream& stream, Deadline wake_at, Stays stays) {
  MutexLock lock(mutex_);
  if (is_cut_short(stream)) return false;
  // In this order, and a thread that changes something does it in the other one: either it sees the
  // count, or this thread sees the change.
  list.count.fetch_add(1);
  if (!stays()) {
    list.count.fetch_sub(1);
    return false;
  }
  ParkedStream& parked = parked_locked(stream);
  parked.waiter.stream = &stream;
  waiters_locked(list).add(parked.waiter);
  parked.parked_with = &list;
  park_locked(stream, wake_at);
  return true;
}

bool WaitGraph::park_until_recorded(Stream& stream, const EventMoment& moment, Deadline wake_at) {
  const Event& event = *moment.event;
  return park_in(moment.event->unbound_waits, stream, wake_at, [&] {
    return event.state.load() == moment.state && event.sequence.load() <= moment.sequence;
  });
}

bool WaitGraph::park_until_changed(Stream& stream, ParkedStreams& list,
                                   const std::atomic<uint32_t>& changes, uint32_t seen,
                                   Deadline wake_at) {
  return park_in(list, stream, wake_at, [&] { return changes.load() == seen; });
}

bool WaitGraph::park_until_written(Stream& stream, Deadline wake_at) {
  MutexLock lock(mutex_);
  if (is_cut_short(stream)) return false;
  ParkedStream& parked = parked_locked(stream);
  parked.values.stream = &stream;
  values_.add(parked.values);
  value_waiters_.fetch_add(1, std::memory_order_relaxed);
  park_locked(stream, wake_at);
  return true;
}

bool WaitGraph::park_until_answered(Stream& stream) {
  MutexLock lock(mutex_);
  const uint64_t position = stream.completed.load(std::memory_order_relaxed) + 1;
  if (is_cut_short(stream) || stream.answered.load() >= position) return false;
  park_locked(stream, kNever);
  return true;
}

// ---- Waking ----

void WaitGraph::wake_thread(Waiter& waiter, Waiter::Word word) {
  waiter.unlink();
  // From here on the waiter may be gone; its address still finds the thread.
  waiter.word.store(word, std::memory_order_release);
  platform::wake_one(waiter.word);
}

void WaitGraph::wake_satisfied(Stream& on) {
  MutexLock lock(mutex_);
  const uint64_t done = on.completed.load();
  WaitList& waiters = waiters_locked(on);
  for (Waiter* waiter = waiters.first(); waiter != nullptr;) {
    Waiter& here = *waiter;
    waiter = waiters.after(here);
    if (here.position > done) continue;
    if (here.stream != nullptr) {
      wake_locked(*here.stream);
    } else {
      wake_thread(here, Waiter::kReached);
    }
  }
  find_wanted_locked(on);
}

void WaitGraph::interrupt(Stream& on) {
  MutexLock lock(mutex_);
  WaitList& waiters = waiters_locked(on);
  for (Waiter* waiter = waiters.first(); waiter != nullptr;) {
    Waiter& here = *waiter;
    waiter = waiters.after(here);
    if (here.stream == nullptr) wake_thread(here, Waiter::kInterrupted);
  }
  find_wanted_locked(on);
}

void WaitGraph::wake_value_waiters() {
  MutexLock lock(mutex_);
  while (StreamLink* const link = values_.first()) wake_locked(*link->stream);
}

void WaitGraph::wake_all(ParkedStreams& list) {
  MutexLock lock(mutex_);
  WaitList& waiters = waiters_locked(list);
  while (Waiter* const waiter = waiters.first()) wake_locked(*waiter->stream);
}

Stream* WaitGraph::claim_one(ParkedStreams& list) {
  MutexLock lock(mutex_);
  WaitList& waiters = waiters_locked(list);
  Waiter* const first = waiters.first();
  if (first == nullptr) return nullptr;
  Stream& claimed = *first->stream;
  unpark_locked(claimed);
  claimed.run_state.store(RunState::kRunning);
  while (Waiter* const other = waiters.first()) wake_locked(*other->stream);
  return &claimed;
}

void WaitGraph::wake(Stream& stream) {
  MutexLock lock(mutex_);
  if (stream.run_state.load() == RunState::kParked) wake_locked(stream);
}

void WaitGraph::wake_due() {
  MutexLock lock(mutex_);
  const Deadline now = Clock::now();
  Deadline next = kNever;
  for (StreamLink* link = timed_.first(); link != nullptr;) {
    Stream& stream = *link->stream;
    link = timed_.after(*link);
    const Deadline wake_at = parked_locked(stream).wake_at;
    if (wake_at <= now) {
      wake_locked(stream);
    } else {
      next = std::min(next, wake_at);
    }
  }
  run_queue_.set_alarm(next);
}

// ---- Threads ----

WaitGraph::Demanding::Demanding(WaitGraph& wait_graph, Demand& demand) : demand_(demand) {
  if (!wait_graph.run_queue_.is_scheduled()) [[likely]]
    return;
  // What the program has written since the last call is seen now, not at some moment.
  wait_graph.note_write();
  run_queue_ = &wait_graph.run_queue_;
  run_queue_->add(demand_);
}

WaitGraph::Demanding::~Demanding() {
  if (run_queue_ != nullptr) run_queue_->withdraw(demand_);
}

namespace {

class DemandedTask final : public Demand {
 public:
  DemandedTask(const Stream& stream, uint64_t position) : stream_(stream), position_(position) {}
  bool is_met() const override { return stream_.is_done(position_); }

 private:
  const Stream& stream_;
  const uint64_t position_;
};

class DemandedChange final : public Demand {
 public:
  DemandedChange(const std::atomic<uint32_t>& word, uint32_t seen) : word_(word), seen_(seen) {}
  bool is_met() const override { return word_.load() != seen_; }

 private:
  const std::atomic<uint32_t>& word_;
  const uint32_t seen_;
};

}  // namespace

WaitGraph::Outcome WaitGraph::wait(Stream& on, uint64_t position, Deadline deadline) {
  DemandedTask demand(on, position);
  const Demanding demanding(*this, demand);
  const Outcome outcome = sleep(on, position, deadline);
  if (outcome == Outcome::kReached && run_queue_.is_scheduled()) [[unlikely]]
    run_queue_.settle();
  return outcome;
}

void WaitGraph::wait_for_change(const std::atomic<uint32_t>& word, uint32_t seen,
                                Deadline deadline) {
  DemandedChange demand(word, seen);
  const Demanding demanding(*this, demand);
  platform::sleep_on(word, seen, deadline);
  if (run_queue_.is_scheduled()) [[unlikely]]
    run_queue_.settle();
}

WaitGraph::Outcome WaitGraph::sleep(Stream& on, uint64_t position, Deadline deadline) {
  Waiter waiter;
  {
    MutexLock lock(mutex_);
    watch_locked(on, waiter, position);
    if (on.completed.load() >= position) {
      unwatch_locked(on, waiter);
      return Outcome::kReached;
    }
  }
  uint32_t word = Waiter::kAsleep;
  while ((word = waiter.word.load(std::memory_order_acquire)) == Waiter::kAsleep) {
    if (has_passed(deadline)) break;
    platform::sleep_on(waiter.word, Waiter::kAsleep, deadline);
  }
  if (word == Waiter::kReached) return Outcome::kReached;
  if (word == Waiter::kInterrupted) return Outcome::kInterrupted;
  MutexLock lock(mutex_);
  unwatch_locked(on, waiter);
  return on.completed.load() >= position ? Outcome::kReached : Outcome::kTimeOver;
}

std::optional<WaitGraph::Blocker> WaitGraph::blocker_of(Stream& stream) {
  if (stream.run_state.load() != RunState::kParked) return std::nullopt;
  MutexLock lock(mutex_);
  const ParkedStream& parked = parked_locked(stream);
  if (stream.run_state.load() != RunState::kParked || parked.waits_for == nullptr) {
    return std::nullopt;
  }
  return Blocker{parked.waits_for, parked.waiter.position};
}

}  // namespace understudy
