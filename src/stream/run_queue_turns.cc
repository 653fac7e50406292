// SPDX-License-Identifier: Apache-2.0
//
// The run queue where a schedule decides which stream a worker gets, and when.
#include <algorithm>
#include <utility>

#include "platform/futex.h"
#include "stream/run_queue.h"

namespace understudy {

// ---- Workers ----

void RunQueue::set_turn_open_locked(bool is_open) {
  if (std::exchange(is_turn_open_, is_open) == is_open) return;
  count_ready_locked(is_open ? 1 : -1);
}

WorkerCounts::Call RunQueue::call_for_turn_locked() {
  set_turn_open_locked(schedule_->may_begin());
  return needs_another_locked() ? call_locked() : WorkerCounts::Call::kNone;
}

Stream* RunQueue::pop_for_turn_locked() {
  schedule_->look(Clock::now());
  Stream* chosen = nullptr;
  if (schedule_->may_begin()) {
    chosen = lists_[0].first;
    for (Stream* each = chosen; each != nullptr; each = link_locked(*each).next) {
      if (schedule_->prefers(*each, *chosen)) chosen = each;
    }
    unlink_locked(*chosen);
    const uint32_t state = chosen->state.load();
    const bool is_new =
        SlotState::alive(state) && std::exchange(link_locked(*chosen).counted_as, state) != state;
    schedule_->begin_turn(*chosen, is_new ? Schedule::Had::kNone : Schedule::Had::kTurns);
  }
  set_turn_open_locked(false);
  return chosen;
}

void RunQueue::note_turn_locked() {
  turn_word_.fetch_add(1);
  platform::wake_all(turn_word_);
}

void RunQueue::end_turn() {
  auto call = WorkerCounts::Call::kNone;
  {
    MutexLock lock(mutex_);
    schedule_->end_turn();
    note_turn_locked();
    call = call_for_turn_locked();
  }
  answer(call);
}

// ---- Threads of the program ----

void RunQueue::add(Demand& demand) {
  auto call = WorkerCounts::Call::kNone;
  {
    MutexLock lock(mutex_);
    schedule_->add(demand);
    call = call_for_turn_locked();
  }
  answer(call);
}

void RunQueue::withdraw(Demand& demand) {
  MutexLock lock(mutex_);
  schedule_->remove(demand);
  set_turn_open_locked(schedule_->may_begin());
}

void RunQueue::settle() {
  uint64_t last = 0;
  {
    MutexLock lock(mutex_);
    last = schedule_->begun();
  }
  while (true) {
    const uint32_t word = turn_word_.load();
    {
      MutexLock lock(mutex_);
      if (schedule_->is_settled(last)) return;
    }
    platform::sleep_on(turn_word_, word, kNever);
  }
}

namespace {

class DemandedTurn final : public Demand {
 public:
  explicit DemandedTurn(const Schedule& schedule)
      : schedule_(schedule), before_(schedule.tasks()) {}
  bool is_met() const override { return schedule_.tasks() != before_; }

 private:
  const Schedule& schedule_;
  const uint64_t before_;
};

}  // namespace

void RunQueue::run_for_query() {
  std::optional<DemandedTurn> demand;
  {
    MutexLock lock(mutex_);
    if (!schedule_->begin_query()) return;
    demand.emplace(*schedule_);
  }
  add(*demand);
  // A function of the program may wait for what this thread does next.
  const Deadline limit = Clock::now() + Schedule::kQuiet;
  while (true) {
    const uint32_t word = turn_word_.load();
    {
      MutexLock lock(mutex_);
      const bool is_busy = !schedule_->is_settled(schedule_->begun());
      const bool may_come = is_turn_open_ || (schedule_->is_any_under_way() && !has_passed(limit));
      if (demand->is_met() || (!is_busy && !may_come)) break;
    }
    platform::sleep_on(turn_word_, word, limit);
  }
  withdraw(*demand);
}

void RunQueue::tell_schedule() {
  MutexLock lock(mutex_);
  schedule_->tell();
}

}  // namespace understudy
