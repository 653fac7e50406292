// SPDX-License-Identifier: Apache-2.0
#include "stream/waiting.h"

#include <algorithm>

#include "platform/futex.h"

namespace understudy {

// ---- Parking ----

bool Waiting::is_cut_short(const Stream& stream) {
  const uint64_t position = stream.completed.load(std::memory_order_relaxed) + 1;
  return stream.drops(position) || stream.stops(position);
}

void Waiting::watch_locked(Stream& on, Watcher& watcher, uint64_t position) {
  watcher.position = position;
  on.watchers.add(watcher);
  // In this order, and the owner of `on` does it in the other one: either it sees what is wanted,
  // or the caller sees how far it got.
  if (position < on.wanted.load()) on.wanted.store(position);
}

void Waiting::park_locked(Stream& stream, Deadline wake_at) {
  ParkedStream& parked = stream.parked;
  parked.wake_at = wake_at;
  if (wake_at != kNever) {
    parked.timed.stream = &stream;
    timed_.add(parked.timed);
    const Clock::rep moment = wake_at.time_since_epoch().count();
    if (moment < next_wake_.load(std::memory_order_relaxed)) {
      next_wake_.store(moment);
      scheduler_.poke();
    }
  }
  stream.run_state.store(RunState::kParked);
}

void Waiting::wake_locked(Stream& stream) {
  ParkedStream& parked = stream.parked;
  parked.watcher.unlink();
  parked.waits_for = nullptr;
  if (parked.event != nullptr) {
    parked.event->unbound_waits.fetch_sub(1, std::memory_order_relaxed);
    parked.event = nullptr;
  }
  if (parked.values.is_linked()) {
    parked.values.unlink();
    value_waiters_.fetch_sub(1, std::memory_order_relaxed);
  }
  parked.timed.unlink();
  scheduler_.resume(stream);
}

bool Waiting::park_until_done(Stream& stream, Stream& on, uint64_t position, Deadline wake_at) {
  MutexLock lock(mutex_);
  if (is_cut_short(stream)) return false;
  Watcher& watcher = stream.parked.watcher;
  watcher.stream = &stream;
  watch_locked(on, watcher, position);
  if (on.completed.load() >= position) {
    watcher.unlink();
    find_wanted(on);
    return false;
  }
  stream.parked.waits_for = &on;
  park_locked(stream, wake_at);
  return true;
}

bool Waiting::park_until_recorded(Stream& stream, const EventMoment& moment, Deadline wake_at) {
  MutexLock lock(mutex_);
  if (is_cut_short(stream)) return false;
  Event& event = *moment.event;
  event.unbound_waits.fetch_add(1);
  if (event.state.load() != moment.state || event.sequence.load() > moment.sequence) {
    event.unbound_waits.fetch_sub(1);
    return false;
  }
  Watcher& watcher = stream.parked.watcher;
  watcher.stream = &stream;
  event.waiters.add(watcher);
  stream.parked.event = &event;
  park_locked(stream, wake_at);
  return true;
}

bool Waiting::park_until_written(Stream& stream, Deadline wake_at) {
  MutexLock lock(mutex_);
  if (is_cut_short(stream)) return false;
  stream.parked.values.stream = &stream;
  values_.add(stream.parked.values);
  value_waiters_.fetch_add(1, std::memory_order_relaxed);
  park_locked(stream, wake_at);
  return true;
}

bool Waiting::park_until_answered(Stream& stream) {
  MutexLock lock(mutex_);
  const uint64_t position = stream.completed.load(std::memory_order_relaxed) + 1;
  if (is_cut_short(stream) || stream.answered.load() >= position) return false;
  park_locked(stream, kNever);
  return true;
}

// ---- Waking ----

void Waiting::find_wanted(Stream& on) {
  uint64_t lowest = kNoPosition;
  WatchList& watchers = on.watchers;
  for (Watcher* each = watchers.first(); each != nullptr; each = watchers.after(*each)) {
    lowest = std::min(lowest, each->position);
  }
  on.wanted.store(lowest);
}

void Waiting::wake_thread_locked(Watcher& watcher, Watcher::Word word) {
  watcher.unlink();
  // From here on the watcher may be gone; its address still finds the thread.
  watcher.word.store(word, std::memory_order_release);
  platform::wake_one(watcher.word);
}

void Waiting::wake_satisfied(Stream& on) {
  MutexLock lock(mutex_);
  const uint64_t done = on.completed.load();
  for (Watcher* watcher = on.watchers.first(); watcher != nullptr;) {
    Watcher& here = *watcher;
    watcher = on.watchers.after(here);
    if (here.position > done) continue;
    if (here.stream != nullptr) {
      wake_locked(*here.stream);
    } else {
      wake_thread_locked(here, Watcher::kReached);
    }
  }
  find_wanted(on);
}

void Waiting::interrupt(Stream& on) {
  MutexLock lock(mutex_);
  for (Watcher* watcher = on.watchers.first(); watcher != nullptr;) {
    Watcher& here = *watcher;
    watcher = on.watchers.after(here);
    if (here.stream == nullptr) wake_thread_locked(here, Watcher::kInterrupted);
  }
  find_wanted(on);
}

void Waiting::wake_value_waiters() {
  MutexLock lock(mutex_);
  while (StreamLink* const link = values_.first()) wake_locked(*link->stream);
}

void Waiting::wake_unbound(Event& event) {
  MutexLock lock(mutex_);
  while (Watcher* const watcher = event.waiters.first()) wake_locked(*watcher->stream);
}

void Waiting::wake(Stream& stream) {
  MutexLock lock(mutex_);
  if (stream.run_state.load() == RunState::kParked) wake_locked(stream);
}

void Waiting::wake_due() {
  MutexLock lock(mutex_);
  const Deadline now = Clock::now();
  Deadline next = kNever;
  for (StreamLink* link = timed_.first(); link != nullptr;) {
    Stream& stream = *link->stream;
    link = timed_.after(*link);
    if (stream.parked.wake_at <= now) {
      wake_locked(stream);
    } else {
      next = std::min(next, stream.parked.wake_at);
    }
  }
  next_wake_.store(next.time_since_epoch().count());
}

// ---- Threads ----

Waiting::Outcome Waiting::wait(Stream& on, uint64_t position, Deadline deadline) {
  Watcher watcher;
  {
    MutexLock lock(mutex_);
    watch_locked(on, watcher, position);
    if (on.completed.load() >= position) {
      watcher.unlink();
      find_wanted(on);
      return Outcome::kReached;
    }
  }
  uint32_t word = Watcher::kAsleep;
  while ((word = watcher.word.load(std::memory_order_acquire)) == Watcher::kAsleep) {
    if (has_passed(deadline)) break;
    platform::sleep_on(watcher.word, Watcher::kAsleep, deadline);
  }
  if (word == Watcher::kReached) return Outcome::kReached;
  if (word == Watcher::kInterrupted) return Outcome::kInterrupted;
  MutexLock lock(mutex_);
  watcher.unlink();
  find_wanted(on);
  return on.completed.load() >= position ? Outcome::kReached : Outcome::kTimeOver;
}

std::optional<Waiting::Blocker> Waiting::blocker_of(Stream& stream) {
  MutexLock lock(mutex_);
  if (stream.run_state.load() != RunState::kParked || stream.parked.waits_for == nullptr) {
    return std::nullopt;
  }
  return Blocker{stream.parked.waits_for, stream.parked.watcher.position};
}

}  // namespace understudy
