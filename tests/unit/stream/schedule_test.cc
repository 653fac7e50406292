// SPDX-License-Identifier: Apache-2.0
#include "stream/schedule.h"

#include <gtest/gtest.h>

#include <deque>

namespace understudy {
namespace {

class DemandedPosition final : public Demand {
 public:
  DemandedPosition(const Stream& stream, uint64_t position)
      : stream_(stream), position_(position) {}
  bool is_met() const override { return stream_.is_done(position_); }

 private:
  const Stream& stream_;
  const uint64_t position_;
};

class ScheduleTest : public testing::Test {
 protected:
  Stream& make_ready_stream(unsigned tasks = 1) {
    Stream& stream = streams_.emplace_back();
    stream.index = static_cast<uint32_t>(streams_.size());
    add_tasks(stream, tasks);
    schedule_.note_ready(Deadline());
    return stream;
  }
  void add_tasks(Stream& stream, unsigned tasks) {
    for (unsigned i = 0; i < tasks; ++i) {
      schedule_.note_task(stream);
      stream.submitted.fetch_add(1);
    }
  }
  void begin_turn(Stream& stream) {
    schedule_.note_taken();
    schedule_.begin_turn(stream, Schedule::Had::kTurns);
  }
  enum class Ran { kTask, kNothing };
  void end_turn(Stream& stream, Ran ran) {
    if (ran == Ran::kTask) stream.completed.fetch_add(1);
    if (stream.has_tasks()) schedule_.note_ready(Deadline());
    schedule_.end_turn();
  }
  void run_task(Stream& stream) {
    begin_turn(stream);
    end_turn(stream, Ran::kTask);
  }
  // As often as it takes to see that nothing happens.
  void look_twice() {
    for (int i = 0; i < 2; ++i) {
      now_ += Schedule::kQuiet;
      schedule_.look(now_);
    }
  }

  Schedule schedule_{{.text = "seed=1", .seed = 1, .slow = {}}};
  std::deque<Stream> streams_;
  Deadline now_{};
};

TEST_F(ScheduleTest, TasksRunWhileADemandIsNotMet) {
  Stream& stream = make_ready_stream(3);
  EXPECT_FALSE(schedule_.may_begin());
  DemandedPosition demand(stream, 2);
  schedule_.add(demand);
  EXPECT_TRUE(schedule_.may_begin());
  run_task(stream);
  EXPECT_TRUE(schedule_.may_begin());
  run_task(stream);
  EXPECT_FALSE(schedule_.may_begin());
  schedule_.remove(demand);
  EXPECT_FALSE(schedule_.may_begin());
}

TEST_F(ScheduleTest, WithdrawnDemandLetsNothingRun) {
  Stream& stream = make_ready_stream();
  DemandedPosition demand(stream, 1);
  DemandedPosition other(stream, 1);
  schedule_.add(demand);
  schedule_.add(other);
  schedule_.remove(demand);
  EXPECT_TRUE(schedule_.may_begin());
  schedule_.remove(other);
  EXPECT_FALSE(schedule_.may_begin());
}

TEST_F(ScheduleTest, OneTaskRunsAtATime) {
  Stream& stream = make_ready_stream();
  make_ready_stream();
  Demand anything;
  schedule_.add(anything);
  begin_turn(stream);
  EXPECT_FALSE(schedule_.may_begin());
  EXPECT_FALSE(schedule_.is_settled(1));
  end_turn(stream, Ran::kTask);
  EXPECT_TRUE(schedule_.may_begin());
  EXPECT_TRUE(schedule_.is_settled(1));
  schedule_.remove(anything);
}

TEST_F(ScheduleTest, NothingReadyIsNothingToRun) {
  Demand anything;
  schedule_.add(anything);
  EXPECT_FALSE(schedule_.may_begin());
  EXPECT_EQ(schedule_.next_look(), kNever);
  schedule_.remove(anything);
}

TEST_F(ScheduleTest, TurnThatOnlyLookedDoesNotCount) {
  Stream& stream = make_ready_stream();
  begin_turn(stream);
  end_turn(stream, Ran::kNothing);
  EXPECT_EQ(schedule_.tasks(), 0U);
  run_task(stream);
  EXPECT_EQ(schedule_.tasks(), 1U);
  EXPECT_EQ(schedule_.begun(), 2U);
}

TEST_F(ScheduleTest, FunctionThatWaitsForAStreamIsSetAside) {
  Stream& stream = make_ready_stream();
  const Stream& other = make_ready_stream();
  Demand anything;
  schedule_.add(anything);
  begin_turn(stream);
  schedule_.begin_user_code();
  EXPECT_TRUE(schedule_.is_settled(1));
  EXPECT_FALSE(schedule_.may_begin());
  DemandedPosition demand(other, 1);
  schedule_.add(demand);
  EXPECT_TRUE(schedule_.may_begin());
  streams_[1].completed.store(1);
  EXPECT_FALSE(schedule_.may_begin());
  schedule_.remove(demand);
  schedule_.end_user_code();
  EXPECT_FALSE(schedule_.is_settled(1));
  end_turn(stream, Ran::kTask);
  schedule_.remove(anything);
}

TEST_F(ScheduleTest, FunctionThatDoesNotReturnIsSetAside) {
  Stream& stream = make_ready_stream();
  make_ready_stream();
  Demand anything;
  schedule_.add(anything);
  begin_turn(stream);
  look_twice();
  EXPECT_FALSE(schedule_.may_begin()) << "a task of the library ends by itself";
  schedule_.begin_user_code();
  look_twice();
  EXPECT_TRUE(schedule_.may_begin());
  schedule_.end_user_code();
  EXPECT_FALSE(schedule_.may_begin());
  end_turn(stream, Ran::kTask);
  schedule_.remove(anything);
}

TEST_F(ScheduleTest, ProgramThatMakesNoCallLetsTasksRunUntilItDoes) {
  Stream& stream = make_ready_stream(2);
  EXPECT_NE(schedule_.next_look(), kNever);
  schedule_.look(now_);
  EXPECT_FALSE(schedule_.may_begin()) << "too early";
  look_twice();
  EXPECT_TRUE(schedule_.may_begin());
  run_task(stream);
  EXPECT_TRUE(schedule_.may_begin()) << "it still makes no call";
  add_tasks(stream, 1);
  EXPECT_FALSE(schedule_.may_begin());
  look_twice();
  EXPECT_TRUE(schedule_.may_begin());
  (void)schedule_.begin_query();
  EXPECT_FALSE(schedule_.may_begin());
}

TEST(QueuedBatchesTest, StreamOvertakesWhatWasQueuedBefore) {
  std::deque<Stream> streams(3);
  QueuedBatches batches;
  const auto queue = [&](Stream& stream) {
    batches.add(stream);
    stream.submitted.fetch_add(1);
  };
  for (const int stream : {0, 0, 1, 0, 2}) queue(streams[stream]);
  EXPECT_FALSE(batches.overtakes(streams[0]));
  EXPECT_TRUE(batches.overtakes(streams[1]));
  streams[0].completed.store(2);
  EXPECT_FALSE(batches.overtakes(streams[1]));
  EXPECT_TRUE(batches.overtakes(streams[0]));
  EXPECT_TRUE(batches.overtakes(streams[2]));
  streams[1].completed.store(1);
  EXPECT_FALSE(batches.overtakes(streams[0]));
  streams[0].completed.store(3);
  streams[2].completed.store(1);
  EXPECT_FALSE(batches.overtakes(streams[1])) << "nothing is queued any more";
}

TEST(QueuedBatchesTest, FirstTaskOfAStreamDecides) {
  std::deque<Stream> streams(2);
  QueuedBatches batches;
  for (const int stream : {1, 0, 1}) {
    batches.add(streams[stream]);
    streams[stream].submitted.fetch_add(1);
  }
  EXPECT_TRUE(batches.is_before(streams[1], streams[0]));
  EXPECT_FALSE(batches.is_before(streams[0], streams[1]));
  streams[1].completed.store(1);
  EXPECT_TRUE(batches.is_before(streams[0], streams[1]));
}

TEST(QueuedBatchesTest, WhatIsDoneBehindAStreamThatWaitsIsForgotten) {
  std::deque<Stream> streams(3);
  QueuedBatches batches;
  const auto queue = [&](Stream& stream) {
    batches.add(stream);
    stream.submitted.fetch_add(1);
  };
  queue(streams[0]);
  for (int i = 0; i < 200'000; ++i) {  // as many looks at as many batches would take minutes
    queue(streams[2]);
    queue(streams[1]);
    ASSERT_TRUE(batches.is_before(streams[2], streams[1]));
    ASSERT_TRUE(batches.overtakes(streams[1]));
    streams[1].completed.fetch_add(1);
    streams[2].completed.fetch_add(1);
  }
  queue(streams[1]);
  EXPECT_TRUE(batches.is_before(streams[0], streams[1]));
}

TEST(QueuedBatchesTest, TaskThatWasRefusedIsForgotten) {
  std::deque<Stream> streams(2);
  QueuedBatches batches;
  batches.add(streams[0]);
  batches.add(streams[1]);
  streams[1].submitted.store(1);
  EXPECT_FALSE(batches.overtakes(streams[1]));
}

}  // namespace
}  // namespace understudy
