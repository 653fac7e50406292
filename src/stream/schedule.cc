// SPDX-License-Identifier: Apache-2.0
#include "stream/schedule.h"

#include <cinttypes>
#include <cstdio>
#include <utility>

#include "platform/log.h"

namespace understudy {

// A task that a worker runs.
struct Turn {
  const Schedule* schedule = nullptr;  // none: the thread has no turn
  Turn* next = nullptr;
  Stream* stream = nullptr;
  uint64_t number = 0;
  uint64_t completed = 0;  // tasks of the stream, when it began
  bool overtakes = false;
  bool is_demanded = false;
  bool is_in_user_code = false;
  bool was_in_user_code = false;      // at the last look
  bool is_stuck = false;              // it has been there for a while
  const Demand* waits_for = nullptr;  // there

  bool is_set_aside() const {
    return is_in_user_code && (is_stuck || (waits_for != nullptr && !waits_for->is_met()));
  }
};

namespace {

thread_local Turn own_turn;

template <typename Node>
void unlink(Node*& first, const Node& node, Node* Node::*next) {
  Node** link = &first;
  while (*link != &node) link = &((*link)->*next);
  *link = node.*next;
}

const char* plural(uint64_t count) { return count == 1 ? "" : "s"; }

}  // namespace

// ---- Streams that are ready ----

void Schedule::note_ready(Deadline now) {
  if (ready_++ == 0) look_at_ = now + kQuiet;
}

bool Schedule::prefers(const Stream& stream, const Stream& other) const {
  if (choice_.is_as_queued()) return batches_.is_before(stream, other);
  const double weight = order_.weight(stream.index, tasks_);
  const double other_weight = order_.weight(other.index, tasks_);
  return weight != other_weight ? weight > other_weight : stream.index < other.index;
}

// ---- Calls of the program ----

void Schedule::note_task(const Stream& stream) {
  ++calls_;
  batches_.add(stream);
}

void Schedule::add(Demand& demand) {
  ++calls_;
  demand.next_ = demands_;
  demands_ = &demand;
  // After a fork, the turn may be one of the parent's.
  if (own_turn.schedule != this) return;
  demand.turn_ = &own_turn;
  own_turn.waits_for = &demand;
}

void Schedule::remove(Demand& demand) {
  ++calls_;
  unlink(demands_, demand, &Demand::next_);
  if (demand.turn_ != nullptr) demand.turn_->waits_for = nullptr;
}

bool Schedule::begin_query() {
  ++calls_;
  return order_.lets_query_run(queries_++);
}

bool Schedule::is_demanded() const {
  for (const Demand* each = demands_; each != nullptr; each = each->next_) {
    if (!each->is_met()) return true;
  }
  return false;
}

// ---- Turns ----

bool Schedule::may_begin() const {
  if (ready_ == 0) return false;
  for (const Turn* each = turns_; each != nullptr; each = each->next) {
    if (!each->is_set_aside()) return false;
  }
  return is_quiet() || is_demanded();
}

void Schedule::begin_turn(Stream& stream, Had before) {
  streams_ += before == Had::kNone ? 1 : 0;
  bool is_beside_stuck = false;
  for (const Turn* each = turns_; each != nullptr; each = each->next) {
    is_beside_stuck |= each->is_stuck;
  }
  own_turn = {.schedule = this,
              .next = turns_,
              .stream = &stream,
              .number = ++begun_,
              .completed = stream.completed.load(),
              .overtakes = batches_.overtakes(stream),
              .is_demanded = is_demanded() && !is_beside_stuck};
  turns_ = &own_turn;
}

void Schedule::end_turn() {
  unlink(turns_, own_turn, &Turn::next);
  ++ended_;
  // One that only found out what the stream waits for does not count: it may come at any moment.
  if (own_turn.stream->completed.load() != own_turn.completed) {
    ++tasks_;
    count(own_turn);
  }
  own_turn = {};
}

void Schedule::count(const Turn& turn) {
  if (turn.stream->drops(turn.completed + 1)) return;  // it did not run
  ++ran_;
  overtakings_ += turn.overtakes ? 1 : 0;
  undemanded_ += turn.is_demanded ? 0 : 1;
}

void Schedule::begin_user_code() { own_turn.is_in_user_code = true; }

void Schedule::end_user_code() {
  own_turn.is_in_user_code = own_turn.was_in_user_code = own_turn.is_stuck = false;
}

bool Schedule::is_settled(uint64_t number) const {
  for (const Turn* each = turns_; each != nullptr; each = each->next) {
    if (each->number <= number && !each->is_in_user_code) return false;
  }
  return true;
}

// ---- Programs that make no call ----

void Schedule::look(Deadline now) {
  if (now < next_look()) return;
  const uint64_t seen = calls_ + begun_ + ended_;
  if (seen == std::exchange(seen_, seen) && !is_demanded()) quiet_since_ = calls_;
  for (Turn* each = turns_; each != nullptr; each = each->next) {
    // In user code since the look before, at least.
    each->is_stuck = each->is_in_user_code && each->was_in_user_code;
    each->was_in_user_code = each->is_in_user_code;
  }
  look_at_ = now + kQuiet;
}

void Schedule::tell() const {
  char by_itself[96] = "";
  if (undemanded_ > 0) {
    (void)snprintf(by_itself, sizeof by_itself,
                   "; %" PRIu64 " ran because the program took long, and may come elsewhere",
                   undemanded_);
  }
  platform::say("schedule: %.200s ran %" PRIu64 " task%s of %" PRIu64 " stream%s, %" PRIu64
                " time%s in another order than they were queued%s; repeat with --schedule %.200s",
                choice_.text.c_str(), ran_, plural(ran_), streams_, plural(streams_), overtakings_,
                plural(overtakings_), by_itself, choice_.text.c_str());
}

}  // namespace understudy
