// SPDX-License-Identifier: Apache-2.0
#include "stream/waiting.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "unit/run_on_threads.h"
#include "unit/stream/stream_tools.h"

namespace understudy {
namespace {

using Outcome = Waiting::Outcome;

// Streams that were woken are idle again as soon as a worker has seen them.
struct WaitingRig final : WorkerClient {
  RunEnd run(Stream& stream) override {
    stream.submitted.store(stream.completed.load());
    return RunEnd::kEmpty;
  }
  void recycle(Stream&) override {}
  Deadline next_wake() const override { return waiting.next_wake(); }
  void wake_due() override { waiting.wake_due(); }

  Scheduler scheduler{*this};
  Waiting waiting{scheduler};
};

class WaitingTest : public testing::Test {
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
    waiting_.note_progress(stream);
  }
  static bool is_parked(const Stream& stream) {
    return stream.run_state.load() == RunState::kParked;
  }
  static void expect_woken(const Stream& stream) {
    wait_for([&] { return stream.run_state.load() == RunState::kIdle; });
  }
  EventMoment moment() { return {&event_, event_.state.load(), event_.sequence.load()}; }
  static Deadline in_an_hour() { return deadline_after(std::chrono::hours(1)); }

  // A worker looks at a stream for a moment after it is idle: streams end behind the scheduler.
  std::array<Stream, 6> streams_;
  Stream& on_ = streams_[5];
  Event event_;
  WaitingRig rig_;
  Waiting& waiting_ = rig_.waiting;
};

TEST_F(WaitingTest, StreamIsParkedUntilTheOtherGotThere) {
  Stream& stream = own(0);
  ASSERT_TRUE(waiting_.park_until_done(stream, on_, 3, kNever));
  EXPECT_TRUE(is_parked(stream));
  EXPECT_EQ(on_.wanted.load(), 3u);
  advance(on_, 2);
  EXPECT_TRUE(is_parked(stream));
  advance(on_, 3);
  expect_woken(stream);
  EXPECT_EQ(on_.wanted.load(), kNoPosition);
}

TEST_F(WaitingTest, WhatIsDoneAlreadyIsNotWaitedFor) {
  Stream& stream = own(0);
  advance(on_, 3);
  EXPECT_FALSE(waiting_.park_until_done(stream, on_, 3, kNever));
  EXPECT_EQ(stream.run_state.load(), RunState::kRunning);
  EXPECT_EQ(on_.wanted.load(), kNoPosition);
}

TEST_F(WaitingTest, StreamWhoseTaskIsDroppedOrStoppedIsNotParked) {
  Stream& dropped = own(0);
  dropped.drop_tasks_until(1);
  Stream& stopped = own(1);
  stopped.stop_at.store(1);
  for (Stream* const stream : {&dropped, &stopped}) {
    EXPECT_FALSE(waiting_.park_until_done(*stream, on_, 3, kNever));
    EXPECT_FALSE(waiting_.park_until_recorded(*stream, moment(), kNever));
    EXPECT_FALSE(waiting_.park_until_written(*stream, kNever));
    EXPECT_FALSE(waiting_.park_until_answered(*stream));
  }
  EXPECT_EQ(on_.wanted.load(), kNoPosition);
  EXPECT_EQ(event_.unbound_waits.load(), 0u);
}

TEST_F(WaitingTest, EachOfManyIsWokenAtItsOwnPosition) {
  constexpr std::array<uint64_t, 4> kPositions{7, 2, 9, 4};
  for (size_t i = 0; i < kPositions.size(); ++i) {
    ASSERT_TRUE(waiting_.park_until_done(own(i), on_, kPositions[i], kNever));
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

TEST_F(WaitingTest, OneStepMayWakeSeveral) {
  for (size_t i = 0; i < 4; ++i) ASSERT_TRUE(waiting_.park_until_done(own(i), on_, i + 1, kNever));
  advance(on_, 3);
  for (size_t i = 0; i < 3; ++i) expect_woken(streams_[i]);
  EXPECT_TRUE(is_parked(streams_[3]));
}

TEST_F(WaitingTest, NextRecordOfAnEventWakesAllWhoWaitForIt) {
  ASSERT_TRUE(waiting_.park_until_recorded(own(0), moment(), kNever));
  ASSERT_TRUE(waiting_.park_until_recorded(own(1), moment(), kNever));
  EXPECT_EQ(event_.unbound_waits.load(), 2u);
  event_.sequence.fetch_add(1);
  waiting_.note_event(event_);
  expect_woken(streams_[0]);
  expect_woken(streams_[1]);
  EXPECT_EQ(event_.unbound_waits.load(), 0u);
}

TEST_F(WaitingTest, EventThatWasRecordedOrHasEndedIsNotWaitedFor) {
  const EventMoment before = moment();
  event_.sequence.fetch_add(1);
  EXPECT_FALSE(waiting_.park_until_recorded(own(0), before, kNever));
  const EventMoment alive = moment();
  event_.state.fetch_add(1);
  EXPECT_FALSE(waiting_.park_until_recorded(own(0), alive, kNever));
  EXPECT_EQ(event_.unbound_waits.load(), 0u);
}

TEST_F(WaitingTest, EndOfTheEventWakes) {
  ASSERT_TRUE(waiting_.park_until_recorded(own(0), moment(), kNever));
  event_.state.fetch_add(1);
  waiting_.note_event(event_);
  expect_woken(streams_[0]);
}

TEST_F(WaitingTest, WriteWakesAllWhoWaitForMemory) {
  ASSERT_TRUE(waiting_.park_until_written(own(0), in_an_hour()));
  ASSERT_TRUE(waiting_.park_until_written(own(1), kNever));
  waiting_.note_write();
  expect_woken(streams_[0]);
  expect_woken(streams_[1]);
  waiting_.wake_due();
  EXPECT_EQ(waiting_.next_wake(), kNever);
}

TEST_F(WaitingTest, WorkersWakeStreamsWhoseTimeHasCome) {
  ASSERT_TRUE(waiting_.park_until_written(own(0), in_an_hour()));
  ASSERT_TRUE(waiting_.park_until_written(own(1), Clock::now() + std::chrono::milliseconds(1)));
  ASSERT_TRUE(waiting_.park_until_done(own(2), on_, 5, Clock::now()));
  expect_woken(streams_[1]);
  expect_woken(streams_[2]);
  EXPECT_TRUE(is_parked(streams_[0]));
  waiting_.wake(streams_[0]);
}

TEST_F(WaitingTest, NextMomentIsTheEarliestOfThoseParked) {
  const Deadline early = in_an_hour();
  const Deadline late = early + std::chrono::hours(1);
  ASSERT_TRUE(waiting_.park_until_written(own(0), late));
  EXPECT_EQ(waiting_.next_wake(), late);
  ASSERT_TRUE(waiting_.park_until_done(own(1), on_, 5, early));
  EXPECT_EQ(waiting_.next_wake(), early);
  ASSERT_TRUE(waiting_.park_until_done(own(2), on_, 5, kNever));
  EXPECT_EQ(waiting_.next_wake(), early);
  // That of a stream which was woken may stay until someone looks.
  waiting_.wake(streams_[1]);
  waiting_.wake_due();
  EXPECT_EQ(waiting_.next_wake(), late);
  waiting_.wake(streams_[0]);
  waiting_.wake_due();
  EXPECT_EQ(waiting_.next_wake(), kNever);
  EXPECT_TRUE(is_parked(streams_[2]));
}

TEST_F(WaitingTest, StreamWokenByTimeIsNotInTheOtherListAnyMore) {
  ASSERT_TRUE(waiting_.park_until_done(own(0), on_, 5, Clock::now()));
  expect_woken(streams_[0]);
  ASSERT_TRUE(waiting_.park_until_written(own(0), kNever));
  advance(on_, 5);
  EXPECT_TRUE(is_parked(streams_[0]));
  waiting_.note_write();
  expect_woken(streams_[0]);
}

TEST_F(WaitingTest, AnswerIsWaitedForUnlessItCame) {
  Stream& stream = own(0);
  ASSERT_TRUE(waiting_.park_until_answered(stream));
  stream.answered.store(1);
  waiting_.wake(stream);
  expect_woken(stream);
  EXPECT_FALSE(waiting_.park_until_answered(own(0)));
}

TEST_F(WaitingTest, WakingWithNothingParkedDoesNothing) {
  Stream& stream = own(0);
  waiting_.wake(stream);
  EXPECT_EQ(stream.run_state.load(), RunState::kRunning);
  waiting_.wake(on_);
  EXPECT_EQ(on_.run_state.load(), RunState::kIdle);
  waiting_.note_write();
  waiting_.note_event(event_);
  waiting_.wake_due();
  waiting_.interrupt(on_);
  advance(on_, 1);
}

TEST_F(WaitingTest, BlockerIsTheStreamThatAParkedOneWaitsFor) {
  EXPECT_FALSE(waiting_.blocker_of(own(0)));
  ASSERT_TRUE(waiting_.park_until_done(own(0), on_, 5, kNever));
  const auto blocker = waiting_.blocker_of(streams_[0]);
  ASSERT_TRUE(blocker);
  EXPECT_EQ(blocker->stream, &on_);
  EXPECT_EQ(blocker->position, 5u);
  ASSERT_TRUE(waiting_.park_until_written(own(1), kNever));
  EXPECT_FALSE(waiting_.blocker_of(streams_[1]));
  advance(on_, 5);
  expect_woken(streams_[0]);
  EXPECT_FALSE(waiting_.blocker_of(streams_[0]));
}

// ---- Threads ----

class WaitingThreadTest : public WaitingTest {
 protected:
  // Whether a thread waits for a position, the lowest of all.
  void wait_until_wanted(uint64_t position) const {
    wait_for([&] { return on_.wanted.load() == position; });
  }
};

TEST_F(WaitingThreadTest, PositionThatIsReachedNeedsNoWaiting) {
  advance(on_, 3);
  EXPECT_EQ(waiting_.wait(on_, 3, kNever), Outcome::kReached);
  EXPECT_EQ(waiting_.wait(on_, 1, Deadline()), Outcome::kReached);
}

TEST_F(WaitingThreadTest, TimeOverLeavesNothingWanted) {
  EXPECT_EQ(waiting_.wait(on_, 3, Clock::now()), Outcome::kTimeOver);
  EXPECT_EQ(waiting_.wait(on_, 3, deadline_after(std::chrono::milliseconds(1))),
            Outcome::kTimeOver);
  EXPECT_EQ(on_.wanted.load(), kNoPosition);
  EXPECT_EQ(on_.watchers.first(), nullptr);
}

TEST_F(WaitingThreadTest, IsWokenWhenThePositionIsReached) {
  std::thread waiter([&] { EXPECT_EQ(waiting_.wait(on_, 2, kNever), Outcome::kReached); });
  wait_until_wanted(2);
  advance(on_, 1);
  advance(on_, 2);
  waiter.join();
}

TEST_F(WaitingThreadTest, InterruptWakesThreadsAndNoStreams) {
  ASSERT_TRUE(waiting_.park_until_done(own(0), on_, 9, kNever));
  std::thread waiter([&] { EXPECT_EQ(waiting_.wait(on_, 2, kNever), Outcome::kInterrupted); });
  wait_until_wanted(2);
  waiting_.interrupt(on_);
  waiter.join();
  EXPECT_TRUE(is_parked(streams_[0]));
  EXPECT_EQ(on_.wanted.load(), 9u);
}

TEST_F(WaitingThreadTest, ManyThreadsAtDifferentPositionsAreAllWoken) {
  constexpr int kThreads = 6;
  for (uint64_t round = 0; round < 30; ++round) {
    const uint64_t begin = on_.completed.load();
    run_on_threads(kThreads + 1, [&](int index) {
      if (index > 0) {
        const uint64_t position = begin + static_cast<uint64_t>(index);
        EXPECT_EQ(waiting_.wait(on_, position, kNever), Outcome::kReached);
        EXPECT_GE(on_.completed.load(), position);
        return;
      }
      for (uint64_t i = 1; i <= kThreads; ++i) advance(on_, begin + i);
    });
  }
  EXPECT_EQ(on_.wanted.load(), kNoPosition);
}

TEST_F(WaitingThreadTest, TimesThatRunOutWhileTheStreamGetsThereLoseNobody) {
  for (int round = 0; round < 200; ++round) {
    const uint64_t position = on_.completed.load() + 1;
    run_on_threads(3, [&](int index) {
      if (index == 0) return advance(on_, position);
      const Deadline deadline = Clock::now() + std::chrono::microseconds(index * 20);
      const Outcome outcome = waiting_.wait(on_, position, index == 1 ? deadline : kNever);
      EXPECT_TRUE(outcome == Outcome::kReached || (index == 1 && outcome == Outcome::kTimeOver));
    });
    ASSERT_EQ(on_.watchers.first(), nullptr);
  }
}

}  // namespace
}  // namespace understudy
