// SPDX-License-Identifier: Apache-2.0
#include "stream/wait_graph.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "stream/workers.h"
#include "unit/run_on_threads.h"
#include "unit/stream/stream_tools.h"

namespace understudy {
namespace {

using Outcome = WaitGraph::Outcome;

// Streams that were woken are idle again as soon as a worker has seen them.
struct IdlingRunner {
  static RunEnd run(Stream& stream, const RunLimits&) {
    stream.submitted.store(stream.completed.load());
    return RunEnd::kEmpty;
  }
  static bool release(Stream& stream) { return RunQueue::release(stream); }
};

struct WaitGraphRig {
  using IdlingWorkers = BasicWorkers<IdlingRunner, WaitGraph>;
  IdlingRunner runner;
  WaitGraph wait_graph{run_queue};
  IdlingWorkers workers{run_queue, wait_graph, runner};
  RunQueue run_queue{{IdlingWorkers::work, &workers}};
};

class WaitGraphTest : public testing::Test {
 protected:
  // A stream with a task in front, owned by the test.
  Stream& own(size_t number) {
    Stream& stream = streams_[number];
    stream.submitted.store(stream.completed.load() + 1);
    stream.run_state.store(RunState::kRunning);
    return stream;
  }
  void advance(Stream& stream, uint64_t position) {
    stream.completed.store(position);
    wait_graph_.note_progress(stream);
  }
  static bool is_parked(const Stream& stream) {
    return stream.run_state.load() == RunState::kParked;
  }
  static void expect_woken(const Stream& stream) {
    wait_for([&] { return stream.run_state.load() == RunState::kIdle; });
  }
  EventMoment moment() { return {&event_, event_.state.load(), event_.sequence.load()}; }
  static Deadline in_an_hour() { return deadline_after(std::chrono::hours(1)); }

  // A worker looks at a stream for a moment after it is idle: streams end behind the run queue.
  std::array<Stream, 6> streams_;
  Stream& on_ = streams_[5];
  Event event_;
  WaitGraphRig rig_;
  WaitGraph& wait_graph_ = rig_.wait_graph;
};

TEST_F(WaitGraphTest, StreamIsParkedUntilTheOtherGotThere) {
  Stream& stream = own(0);
  ASSERT_TRUE(wait_graph_.park_until_done(stream, on_, 3, kNever));
  EXPECT_TRUE(is_parked(stream));
  EXPECT_EQ(on_.wanted.load(), 3u);
  advance(on_, 2);
  EXPECT_TRUE(is_parked(stream));
  advance(on_, 3);
  expect_woken(stream);
  EXPECT_EQ(on_.wanted.load(), kNoPosition);
}

TEST_F(WaitGraphTest, WhatIsDoneAlreadyIsNotWaitedFor) {
  Stream& stream = own(0);
  advance(on_, 3);
  EXPECT_FALSE(wait_graph_.park_until_done(stream, on_, 3, kNever));
  EXPECT_EQ(stream.run_state.load(), RunState::kRunning);
  EXPECT_EQ(on_.wanted.load(), kNoPosition);
}

TEST_F(WaitGraphTest, StreamWhoseTaskIsDroppedOrStoppedIsNotParked) {
  Stream& dropped = own(0);
  dropped.drop_tasks_until(1);
  Stream& stopped = own(1);
  stopped.stop_at.store(1);
  for (Stream* const stream : {&dropped, &stopped}) {
    EXPECT_FALSE(wait_graph_.park_until_done(*stream, on_, 3, kNever));
    EXPECT_FALSE(wait_graph_.park_until_recorded(*stream, moment(), kNever));
    EXPECT_FALSE(wait_graph_.park_until_written(*stream, kNever));
    EXPECT_FALSE(wait_graph_.park_until_answered(*stream));
  }
  EXPECT_EQ(on_.wanted.load(), kNoPosition);
  EXPECT_EQ(event_.unbound_waits.count.load(), 0u);
}

TEST_F(WaitGraphTest, EachOfManyIsWokenAtItsOwnPosition) {
  constexpr std::array<uint64_t, 4> kPositions{7, 2, 9, 4};
  for (size_t i = 0; i < kPositions.size(); ++i) {
    ASSERT_TRUE(wait_graph_.park_until_done(own(i), on_, kPositions[i], kNever));
  }
  for (uint64_t done = 1; done < 10; ++done) {
    advance(on_, done);
    uint64_t lowest = kNoPosition;
    for (size_t i = 0; i < kPositions.size(); ++i) {
      if (kPositions[i] <= done) {
        expect_woken(streams_[i]);
      } else {
        EXPECT_TRUE(is_parked(streams_[i]));
        lowest = std::min(lowest, kPositions[i]);
      }
    }
    EXPECT_EQ(on_.wanted.load(), lowest);
  }
}

TEST_F(WaitGraphTest, OneStepMayWakeSeveral) {
  for (size_t i = 0; i < 4; ++i)
    ASSERT_TRUE(wait_graph_.park_until_done(own(i), on_, i + 1, kNever));
  advance(on_, 3);
  for (size_t i = 0; i < 3; ++i) expect_woken(streams_[i]);
  EXPECT_TRUE(is_parked(streams_[3]));
}

TEST_F(WaitGraphTest, NextRecordOfAnEventWakesAllWhoWaitForIt) {
  ASSERT_TRUE(wait_graph_.park_until_recorded(own(0), moment(), kNever));
  ASSERT_TRUE(wait_graph_.park_until_recorded(own(1), moment(), kNever));
  EXPECT_EQ(event_.unbound_waits.count.load(), 2u);
  event_.sequence.fetch_add(1);
  wait_graph_.note_event(event_);
  expect_woken(streams_[0]);
  expect_woken(streams_[1]);
  EXPECT_EQ(event_.unbound_waits.count.load(), 0u);
}

TEST_F(WaitGraphTest, EventThatWasRecordedOrHasEndedIsNotWaitedFor) {
  const EventMoment before = moment();
  event_.sequence.fetch_add(1);
  EXPECT_FALSE(wait_graph_.park_until_recorded(own(0), before, kNever));
  const EventMoment alive = moment();
  event_.state.fetch_add(1);
  EXPECT_FALSE(wait_graph_.park_until_recorded(own(0), alive, kNever));
  EXPECT_EQ(event_.unbound_waits.count.load(), 0u);
}

TEST_F(WaitGraphTest, EndOfTheEventWakes) {
  ASSERT_TRUE(wait_graph_.park_until_recorded(own(0), moment(), kNever));
  event_.state.fetch_add(1);
  wait_graph_.note_event(event_);
  expect_woken(streams_[0]);
}

TEST_F(WaitGraphTest, ChangeWakesAllWhoWaitForIt) {
  ParkedStreams list;
  std::atomic<uint32_t> changes{4};
  EXPECT_FALSE(wait_graph_.park_until_changed(own(0), list, changes, 3, kNever));
  ASSERT_TRUE(wait_graph_.park_until_changed(own(0), list, changes, 4, kNever));
  ASSERT_TRUE(wait_graph_.park_until_changed(own(1), list, changes, 4, in_an_hour()));
  EXPECT_EQ(list.count.load(), 2u);
  changes.fetch_add(1);
  wait_graph_.note_change(list);
  expect_woken(streams_[0]);
  expect_woken(streams_[1]);
  EXPECT_EQ(list.count.load(), 0u);
}

TEST_F(WaitGraphTest, RingGivesOneStreamToTheCallerAndWakesTheOthers) {
  std::atomic<uint32_t> rings{0};
  EXPECT_EQ(wait_graph_.claim_rung(), nullptr);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(wait_graph_.park_until_rung(own(i), rings, 0, in_an_hour()));
  }
  Stream* const claimed = wait_graph_.claim_rung();
  ASSERT_EQ(claimed, &streams_[0]);
  EXPECT_EQ(claimed->run_state.load(), RunState::kRunning);
  expect_woken(streams_[1]);
  expect_woken(streams_[2]);
  EXPECT_EQ(wait_graph_.claim_rung(), nullptr);
  // It can be parked again, and a record of this process wakes it, too.
  ASSERT_TRUE(wait_graph_.park_until_rung(*claimed, rings, 0, kNever));
  wait_graph_.note_ring();
  expect_woken(*claimed);
}

TEST_F(WaitGraphTest, WriteWakesAllWhoWaitForMemory) {
  ASSERT_TRUE(wait_graph_.park_until_written(own(0), in_an_hour()));
  ASSERT_TRUE(wait_graph_.park_until_written(own(1), kNever));
  wait_graph_.note_write();
  expect_woken(streams_[0]);
  expect_woken(streams_[1]);
  wait_graph_.wake_due();
  EXPECT_EQ(rig_.run_queue.alarm(), kNever);
}

TEST_F(WaitGraphTest, WorkersWakeStreamsWhoseTimeHasCome) {
  ASSERT_TRUE(wait_graph_.park_until_written(own(0), in_an_hour()));
  ASSERT_TRUE(wait_graph_.park_until_written(own(1), Clock::now() + std::chrono::milliseconds(1)));
  ASSERT_TRUE(wait_graph_.park_until_done(own(2), on_, 5, Clock::now()));
  expect_woken(streams_[1]);
  expect_woken(streams_[2]);
  EXPECT_TRUE(is_parked(streams_[0]));
  wait_graph_.wake(streams_[0]);
}

TEST_F(WaitGraphTest, NextMomentIsTheEarliestOfThoseParked) {
  const Deadline early = in_an_hour();
  const Deadline late = early + std::chrono::hours(1);
  ASSERT_TRUE(wait_graph_.park_until_written(own(0), late));
  EXPECT_EQ(rig_.run_queue.alarm(), late);
  ASSERT_TRUE(wait_graph_.park_until_done(own(1), on_, 5, early));
  EXPECT_EQ(rig_.run_queue.alarm(), early);
  ASSERT_TRUE(wait_graph_.park_until_done(own(2), on_, 5, kNever));
  EXPECT_EQ(rig_.run_queue.alarm(), early);
  // That of a stream which was woken may stay until someone looks.
  wait_graph_.wake(streams_[1]);
  wait_graph_.wake_due();
  EXPECT_EQ(rig_.run_queue.alarm(), late);
  wait_graph_.wake(streams_[0]);
  wait_graph_.wake_due();
  EXPECT_EQ(rig_.run_queue.alarm(), kNever);
  EXPECT_TRUE(is_parked(streams_[2]));
}

TEST_F(WaitGraphTest, StreamWokenByTimeIsNotInTheOtherListAnyMore) {
  ASSERT_TRUE(wait_graph_.park_until_done(own(0), on_, 5, Clock::now()));
  expect_woken(streams_[0]);
  ASSERT_TRUE(wait_graph_.park_until_written(own(0), kNever));
  advance(on_, 5);
  EXPECT_TRUE(is_parked(streams_[0]));
  wait_graph_.note_write();
  expect_woken(streams_[0]);
}

TEST_F(WaitGraphTest, AnswerIsWaitedForUnlessItCame) {
  Stream& stream = own(0);
  ASSERT_TRUE(wait_graph_.park_until_answered(stream));
  stream.answered.store(1);
  wait_graph_.wake(stream);
  expect_woken(stream);
  EXPECT_FALSE(wait_graph_.park_until_answered(own(0)));
}

TEST_F(WaitGraphTest, WakingWithNothingParkedDoesNothing) {
  Stream& stream = own(0);
  wait_graph_.wake(stream);
  EXPECT_EQ(stream.run_state.load(), RunState::kRunning);
  wait_graph_.wake(on_);
  EXPECT_EQ(on_.run_state.load(), RunState::kIdle);
  wait_graph_.note_write();
  wait_graph_.note_event(event_);
  wait_graph_.wake_due();
  wait_graph_.interrupt(on_);
  advance(on_, 1);
}

TEST_F(WaitGraphTest, BlockerIsTheStreamThatAParkedOneWaitsFor) {
  EXPECT_FALSE(wait_graph_.blocker_of(own(0)));
  ASSERT_TRUE(wait_graph_.park_until_done(own(0), on_, 5, kNever));
  const auto blocker = wait_graph_.blocker_of(streams_[0]);
  ASSERT_TRUE(blocker);
  EXPECT_EQ(blocker->stream, &on_);
  EXPECT_EQ(blocker->position, 5u);
  ASSERT_TRUE(wait_graph_.park_until_written(own(1), kNever));
  EXPECT_FALSE(wait_graph_.blocker_of(streams_[1]));
  advance(on_, 5);
  expect_woken(streams_[0]);
  EXPECT_FALSE(wait_graph_.blocker_of(streams_[0]));
}

// ---- Threads ----

class WaitGraphThreadTest : public WaitGraphTest {
 protected:
  // Whether a thread waits for a position, the lowest of all.
  void wait_until_wanted(uint64_t position) const {
    wait_for([&] { return on_.wanted.load() == position; });
  }
};

TEST_F(WaitGraphThreadTest, PositionThatIsReachedNeedsNoWaiting) {
  advance(on_, 3);
  EXPECT_EQ(wait_graph_.wait(on_, 3, kNever), Outcome::kReached);
  EXPECT_EQ(wait_graph_.wait(on_, 1, Deadline()), Outcome::kReached);
}

TEST_F(WaitGraphThreadTest, TimeOverLeavesNothingWanted) {
  EXPECT_EQ(wait_graph_.wait(on_, 3, Clock::now()), Outcome::kTimeOver);
  EXPECT_EQ(wait_graph_.wait(on_, 3, deadline_after(std::chrono::milliseconds(1))),
            Outcome::kTimeOver);
  EXPECT_EQ(on_.wanted.load(), kNoPosition);
}

TEST_F(WaitGraphThreadTest, IsWokenWhenThePositionIsReached) {
  std::thread waiter([&] { EXPECT_EQ(wait_graph_.wait(on_, 2, kNever), Outcome::kReached); });
  wait_until_wanted(2);
  advance(on_, 1);
  advance(on_, 2);
  waiter.join();
}

TEST_F(WaitGraphThreadTest, InterruptWakesThreadsAndNoStreams) {
  ASSERT_TRUE(wait_graph_.park_until_done(own(0), on_, 9, kNever));
  std::thread waiter([&] { EXPECT_EQ(wait_graph_.wait(on_, 2, kNever), Outcome::kInterrupted); });
  wait_until_wanted(2);
  wait_graph_.interrupt(on_);
  waiter.join();
  EXPECT_TRUE(is_parked(streams_[0]));
  EXPECT_EQ(on_.wanted.load(), 9u);
}

TEST_F(WaitGraphThreadTest, ManyThreadsAtDifferentPositionsAreAllWoken) {
  constexpr int kThreads = 6;
  for (uint64_t round = 0; round < 30; ++round) {
    const uint64_t begin = on_.completed.load();
    run_on_threads(kThreads + 1, [&](int index) {
      if (index > 0) {
        const uint64_t position = begin + static_cast<uint64_t>(index);
        EXPECT_EQ(wait_graph_.wait(on_, position, kNever), Outcome::kReached);
        EXPECT_GE(on_.completed.load(), position);
        return;
      }
      for (uint64_t i = 1; i <= kThreads; ++i) advance(on_, begin + i);
    });
  }
  EXPECT_EQ(on_.wanted.load(), kNoPosition);
}

TEST_F(WaitGraphThreadTest, TimesThatRunOutWhileTheStreamGetsThereLoseNobody) {
  for (int round = 0; round < 200; ++round) {
    const uint64_t position = on_.completed.load() + 1;
    run_on_threads(3, [&](int index) {
      if (index == 0) return advance(on_, position);
      const Deadline deadline = Clock::now() + std::chrono::microseconds(index * 20);
      const Outcome outcome = wait_graph_.wait(on_, position, index == 1 ? deadline : kNever);
      EXPECT_TRUE(outcome == Outcome::kReached || (index == 1 && outcome == Outcome::kTimeOver));
    });
    ASSERT_EQ(on_.wanted.load(), kNoPosition);
  }
}

}  // namespace
}  // namespace understudy
