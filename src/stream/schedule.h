// SPDX-License-Identifier: Apache-2.0
//
// The order in which tasks of different streams run where a seed chooses it (key `schedule`). Tasks
// run one at a time, in turns: a worker takes the stream that the seed chooses among those that are
// ready, runs one task and lets the stream go. A turn begins only
//
// - while the program demands progress: a thread waits for a stream, or asks how far it is; or
// - once the program has made no call for a while: it may look at memory that tasks write.
//
// It ends where the demand is met, so that the order follows from the seed and the program's calls.
// A turn whose function of the program waits for a stream itself is set aside meanwhile, and so is
// one whose function does not return for a while: it may wait for tasks.
//
// Not synchronised: the run queue guards it, which owns it, asks it what may run and wakes threads.
// It ends with the run queue; a fork child has its own, or none.
#pragma once

#include <cstdint>

#include "base/deadline.h"
#include "device/schedule_choice.h"
#include "stream/queued_batches.h"
#include "stream/seeded_order.h"
#include "stream/stream.h"

namespace understudy {

struct Turn;

// What the program waits for. Tasks run until it is met, or withdrawn. Belongs to the thread that
// waits.
class Demand {
 public:
  Demand() = default;
  virtual ~Demand() = default;
  Demand(const Demand&) = delete;
  Demand& operator=(const Demand&) = delete;

  // Of a thread that does not know what it waits for: never.
  virtual bool is_met() const { return false; }

 private:
  friend class Schedule;

  Turn* turn_ = nullptr;  // whose function of the program the thread is in, if it is
  Demand* next_ = nullptr;
};

class Schedule {
 public:
  explicit Schedule(const ScheduleChoice& choice) : choice_(choice), order_(choice) {}

  // ---- Streams that are ready.
  void note_ready(Deadline now);
  void note_taken() { --ready_; }
  // Whether one comes before another.
  bool prefers(const Stream& stream, const Stream& other) const;

  // ---- Calls of the program.
  // A task is about to be queued.
  void note_task(const Stream& stream);
  void add(Demand& demand);
  void remove(Demand& demand);
  // A call asks how far something is. Whether a task is to run before.
  bool begin_query();

  // ---- Turns. Those without a number are the calling worker's.
  bool may_begin() const;
  // REQUIRES: may_begin().
  enum class Had : uint8_t { kTurns, kNone };
  void begin_turn(Stream& stream, Had before);
  void end_turn();
  void begin_user_code();
  void end_user_code();
  // How many have taken a task from its queue, and how many have begun.
  uint64_t tasks() const { return tasks_; }
  uint64_t begun() const { return begun_; }
  // Whether no turn up to a number is under way, other than in functions of the program.
  bool is_settled(uint64_t number) const;
  bool is_any_under_way() const { return turns_ != nullptr; }

  // ---- Programs that make no call.
  // When to look for that; never, if nothing could run.
  Deadline next_look() const { return ready_ > 0 ? look_at_ : kNever; }
  void look(Deadline now);
  // How long a program makes no call before tasks run by themselves, at least.
  static constexpr Clock::duration kQuiet = std::chrono::milliseconds(50);

  // One line: what was done and how to repeat it.
  void tell() const;

 private:
  bool is_demanded() const;
  // For people, at the end.
  void count(const Turn& turn);
  bool is_quiet() const { return quiet_since_ == calls_; }

  const ScheduleChoice choice_;
  const SeededOrder order_;
  uint64_t ready_ = 0;  // streams
  Demand* demands_ = nullptr;
  Turn* turns_ = nullptr;  // under way
  uint64_t begun_ = 0;
  uint64_t ended_ = 0;
  uint64_t calls_ = 1;
  uint64_t queries_ = 0;
  uint64_t quiet_since_ = 0;  // the number of calls when there were none for a while
  uint64_t seen_ = 0;         // of calls and turns, at the last look
  Deadline look_at_ = kNever;

  QueuedBatches batches_;
  uint64_t tasks_ = 0;  // that ran or were dropped
  uint64_t ran_ = 0;
  uint64_t streams_ = 0;
  uint64_t overtakings_ = 0;
  uint64_t undemanded_ = 0;  // tasks that ran because no call was made
};

}  // namespace understudy
