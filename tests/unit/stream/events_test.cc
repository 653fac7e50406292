// SPDX-License-Identifier: Apache-2.0
#include "stream/events.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "unit/run_on_threads.h"
#include "unit/stream/stream_test_base.h"

namespace understudy {
namespace {

class EventsTest : public StreamTestBase {
 protected:
  void record(const EventReference& event, const StreamReference& stream) {
    ASSERT_TRUE(is_ok(events().record(event, stream)));
  }
  void let_wait(const StreamReference& stream, const EventReference& event) {
    ASSERT_TRUE(is_ok(events().let_wait(stream, event, 0)));
  }
  std::optional<bool> status(const EventReference& event) {
    return value_of(events().status(event));
  }
  bool waits_are_over(const EventReference& event) {
    return value_of(events().waits_are_over(event));
  }

  const StreamReference first_ = make_stream();
  const StreamReference second_ = make_stream();
};

// ---- Handles ----

TEST_F(EventsTest, HandleFindsItsEventUntilThatEnds) {
  const EventReference event = make_event();
  const uint64_t handle = Events::handle_of(event);
  EXPECT_EQ(value_of(events().find(handle)).event, event.event);
  ASSERT_TRUE(is_ok(events().destroy(event)));
  EXPECT_TRUE(fails_with(events().find(handle), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(fails_with(events().destroy(event), ErrorCode::kInvalidHandle));
}

TEST_F(EventsTest, InventedHandlesAndThoseOfStreamsAreRefused) {
  const uint64_t handle = Events::handle_of(make_event());
  for (const uint64_t invented : {uint64_t{0}, UINT64_MAX, handle + 1, handle ^ uint64_t{1} << 32,
                                  first_.handle(), handle + 1000000}) {
    EXPECT_TRUE(fails_with(events().find(invented), ErrorCode::kInvalidHandle)) << invented;
  }
}

TEST_F(EventsTest, EndedEventCanDoNothingAnyMore) {
  const EventReference event = make_event({.can_reset = true, .has_time = true});
  ASSERT_TRUE(is_ok(events().destroy(event)));
  EXPECT_TRUE(fails_with(events().record(event, first_), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(fails_with(events().reset(event, first_), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(fails_with(events().let_wait(first_, event, 0), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(fails_with(events().status(event), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(fails_with(events().waits_are_over(event), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(fails_with(events().synchronize(event), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(fails_with(events().time(event), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(streams().is_complete(first_));
}

TEST_F(EventsTest, NumberOfEventsOfADeviceIsBounded) {
  std::vector<EventReference> made;
  while (events().available(0) > 0) made.push_back(make_event({.is_limited = true}));
  EXPECT_EQ(made.size(), rig_settings().product.most_events);
  EXPECT_TRUE(fails_with(events().create({.is_limited = true}), ErrorCode::kOutOfEvents));
  EXPECT_TRUE(is_ok(events().create({.device = 1, .is_limited = true})));
  EXPECT_TRUE(is_ok(events().create({}))) << "not of those that count";
  ASSERT_TRUE(is_ok(events().destroy(made.back())));
  EXPECT_EQ(events().available(0), 1u);
  EXPECT_TRUE(is_ok(events().create({.is_limited = true})));
}

TEST_F(EventsTest, EndOfADeviceEndsItsEventsAndNoOther) {
  const unsigned before = events().available(0);
  const EventReference here = make_event({.is_limited = true});
  const EventReference there = make_event({.device = 1});
  events().end_device(0);
  EXPECT_TRUE(fails_with(events().status(here), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(is_ok(events().status(there)));
  EXPECT_EQ(events().available(0), before);
}

TEST_F(EventsTest, SlotThatIsUsedAgainKnowsNothingOfItsLastEvent) {
  const EventReference old = make_event({.has_time = true});
  record(old, first_);
  expect_synchronized(first_);
  const uint64_t sequence = old.event->sequence.load();
  ASSERT_TRUE(is_ok(events().destroy(old)));
  const EventReference event = make_event({.has_time = true});
  ASSERT_EQ(event.event, old.event);
  EXPECT_EQ(status(event), std::nullopt);
  EXPECT_TRUE(fails_with(events().time(event), ErrorCode::kNeverRecorded));
  record(event, first_);
  EXPECT_GT(event.event->sequence.load(), sequence);
}

TEST_F(EventsTest, TaskOfAnEndedEventDoesNotTouchTheNextOneOfItsSlot) {
  const EventReference old = make_event({.can_reset = true, .has_time = true});
  block(first_);
  record(old, first_);
  ASSERT_TRUE(is_ok(events().reset(old, first_)));
  ASSERT_TRUE(is_ok(events().destroy(old)));
  const EventReference event = make_event({.can_reset = true, .has_time = true});
  ASSERT_EQ(event.event, old.event);
  record(event, second_);
  expect_synchronized(second_);
  const Clock::time_point time = value_of(events().time(event));
  gate_.open();
  expect_synchronized(first_);
  EXPECT_EQ(status(event), true);
  EXPECT_EQ(value_of(events().time(event)), time);
}

// ---- Recording ----

TEST_F(EventsTest, StatusIsThatOfTheLatestRecord) {
  const EventReference event = make_event();
  EXPECT_EQ(status(event), std::nullopt);
  record(event, second_);
  expect_synchronized(second_);
  EXPECT_EQ(status(event), true);
  block(first_);
  record(event, first_);
  EXPECT_EQ(status(event), false);
  gate_.open();
  EXPECT_TRUE(is_ok(events().synchronize(event)));
  EXPECT_EQ(status(event), true);
}

TEST_F(EventsTest, RecordOnADestroyedStreamLeavesTheEventAsItWas) {
  const EventReference event = make_event();
  ASSERT_TRUE(is_ok(streams().destroy(first_)));
  EXPECT_TRUE(fails_with(events().record(event, first_), ErrorCode::kInvalidHandle));
  EXPECT_EQ(status(event), std::nullopt);
  record(event, second_);
  ASSERT_TRUE(is_ok(streams().destroy(second_)));
  EXPECT_EQ(status(event), true);
}

TEST_F(EventsTest, DroppedRecordCountsAsReached) {
  const EventReference event = make_event({.has_time = true});
  park(first_, make_event());
  record(event, first_);
  streams().abort(first_);
  EXPECT_EQ(status(event), true);
  EXPECT_TRUE(is_ok(events().synchronize(event)));
  EXPECT_TRUE(fails_with(events().time(event), ErrorCode::kNoTimestamp));
}

TEST_F(EventsTest, SynchronizingEndsAtItsDeadline) {
  const EventReference event = make_event();
  EXPECT_TRUE(is_ok(events().synchronize(event)));
  block(first_);
  record(event, first_);
  EXPECT_TRUE(fails_with(events().synchronize(event, Clock::now()), ErrorCode::kEventTimeout));
  gate_.open();
  EXPECT_TRUE(is_ok(events().synchronize(event)));
}

// ---- Waiting ----

TEST_F(EventsTest, StreamWaitsForTheRecordOfAnother) {
  const EventReference event = make_event();
  block(first_);
  record(event, first_);
  let_wait(second_, event);
  submit(second_, counting(calls_));
  wait_until_parked(second_);
  EXPECT_EQ(calls_.load(), 0);
  gate_.open();
  expect_synchronized(second_);
  EXPECT_EQ(calls_.load(), 1);
}

TEST_F(EventsTest, WaitThatIsOverOrForTheStreamItselfQueuesNothing) {
  const EventReference event = make_event();
  record(event, first_);
  expect_synchronized(first_);
  let_wait(second_, event);
  EXPECT_EQ(second_.stream->submitted.load(), 0u);
  block(first_);
  record(event, first_);
  const uint64_t submitted = first_.stream->submitted.load();
  let_wait(first_, event);
  EXPECT_EQ(first_.stream->submitted.load(), submitted);
  EXPECT_TRUE(waits_are_over(event));
}

TEST_F(EventsTest, QueuedWaitNeedsTheEventNoMore) {
  const EventReference event = make_event();
  block(first_);
  record(event, first_);
  let_wait(second_, event);
  // Neither a record that is never reached nor the end of the event changes what it waits for.
  const StreamReference stuck = make_stream();
  park(stuck, make_event());
  record(event, stuck);
  ASSERT_TRUE(is_ok(events().destroy(event)));
  EXPECT_TRUE(stays([&] { return !streams().is_complete(second_); }));
  gate_.open();
  expect_synchronized(second_);
}

TEST_F(EventsTest, OnlyAResettableClassicEventCanBeWaitedForBeforeItsRecord) {
  const EventReference plain = make_event({});
  EXPECT_TRUE(fails_with(events().let_wait(first_, plain, 0), ErrorCode::kInvalidParam));
  for (const EventFamily family : {EventFamily::kEx, EventFamily::kIpc}) {
    let_wait(first_, make_event({.family = family}));
  }
  EXPECT_EQ(first_.stream->submitted.load(), 0u);
  park(first_, make_event());
}

TEST_F(EventsTest, RecordThatIsYetToComeLetsAllWaitingStreamsGoOnWhenItIsReached) {
  const EventReference event = make_event();
  const StreamReference third = make_stream();
  park(second_, event);
  park(third, event);
  block(first_);
  record(event, first_);
  EXPECT_TRUE(stays([&] { return !streams().is_complete(second_); }));
  gate_.open();
  expect_synchronized(second_);
  expect_synchronized(third);
  EXPECT_TRUE(waits_are_over(event));
}

TEST_F(EventsTest, EndOfTheEventLetsStreamsGoOnThatWaitForItsNextRecord) {
  const EventReference event = make_event();
  park(first_, event);
  ASSERT_TRUE(is_ok(events().destroy(event)));
  expect_synchronized(first_);
}

TEST_F(EventsTest, WaitsAreCountedUntilTheyAreOverOrDropped) {
  const EventReference event = make_event();
  EXPECT_TRUE(waits_are_over(event));
  park(first_, event);
  park(second_, event);
  EXPECT_FALSE(waits_are_over(event));
  streams().abort(first_);
  EXPECT_FALSE(waits_are_over(event));
  streams().stop_front(second_);
  expect_synchronized(second_);
  EXPECT_TRUE(waits_are_over(event));
}

TEST_F(EventsTest, WaitThatIsRefusedIsNotCounted) {
  const EventReference event = make_event();
  ASSERT_TRUE(is_ok(streams().destroy(second_)));
  EXPECT_TRUE(fails_with(events().let_wait(second_, event, 0), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(waits_are_over(event));
}

TEST_F(EventsTest, WaitThatPassesItsLimitFails) {
  const EventReference event = make_event();
  // As if it had begun before the limit was over.
  Task task(TaskKind::kWaitForRecord, 0);
  task.wait = {.stream = nullptr,
               .position = 0,
               .moment = {event.event, event.state, event.event->sequence.load()},
               .limit_seconds = 1,
               .is_counted = false,
               .has_begun = true,
               .deadline = Clock::now() + std::chrono::milliseconds(2)};
  submit(first_, task);
  submit(first_, counting(calls_));
  EXPECT_TRUE(fails_with(streams().synchronize(first_), ErrorCode::kTaskTimeout));
  EXPECT_EQ(calls_.load(), 1);
}

TEST_F(EventsTest, LimitThatIsNotReachedIsNoFailure) {
  const EventReference event = make_event();
  ASSERT_TRUE(is_ok(events().let_wait(second_, event, 3600)));
  wait_until_parked(second_);
  record(event, first_);
  expect_synchronized(second_);
}

// ---- Resetting ----

TEST_F(EventsTest, ResetMakesItAnEventThatWasNeverRecorded) {
  const EventReference event = make_event();
  record(event, first_);
  ASSERT_TRUE(is_ok(events().reset(event, first_)));
  expect_synchronized(first_);
  EXPECT_EQ(status(event), std::nullopt);
  park(second_, event);
  record(event, first_);
  expect_synchronized(second_);
}

TEST_F(EventsTest, ResetThatRunsAfterTheNextRecordChangesNothing) {
  const EventReference event = make_event();
  block(first_);
  ASSERT_TRUE(is_ok(events().reset(event, first_)));
  record(event, second_);
  gate_.open();
  expect_synchronized(first_);
  expect_synchronized(second_);
  EXPECT_EQ(status(event), true);
}

TEST_F(EventsTest, OnlyEventsMadeForItCanBeReset) {
  EXPECT_TRUE(fails_with(events().reset(make_event({}), first_), ErrorCode::kNotSupported));
  EXPECT_EQ(first_.stream->submitted.load(), 0u);
}

// ---- Times ----

TEST_F(EventsTest, TimeIsThatOfTheLatestRecordOnceItIsReached) {
  const EventReference event = make_event({.has_time = true});
  EXPECT_TRUE(fails_with(events().time(event), ErrorCode::kNeverRecorded));
  const Clock::time_point before = Clock::now();
  record(event, first_);
  expect_synchronized(first_);
  const Clock::time_point reached = value_of(events().time(event));
  EXPECT_GE(reached, before);
  EXPECT_LE(reached, Clock::now());
  block(first_);
  record(event, first_);
  EXPECT_TRUE(fails_with(events().time(event), ErrorCode::kNoTimestamp));
  gate_.open();
  expect_synchronized(first_);
  EXPECT_GE(value_of(events().time(event)), reached);
}

TEST_F(EventsTest, EventWithoutTimeHasNone) {
  const EventReference event = make_event();
  record(event, first_);
  expect_synchronized(first_);
  EXPECT_TRUE(fails_with(events().time(event), ErrorCode::kNoTimestamp));
}

TEST_F(EventsTest, TimesOfOneStreamAreInTheOrderOfTheRecords) {
  std::vector<EventReference> recorded;
  for (int i = 0; i < 100; ++i) {
    recorded.push_back(make_event({.has_time = true}));
    record(recorded.back(), first_);
  }
  expect_synchronized(first_);
  for (size_t i = 1; i < recorded.size(); ++i) {
    EXPECT_LE(value_of(events().time(recorded[i - 1])), value_of(events().time(recorded[i])));
  }
}

// ---- All at once ----

TEST_F(EventsTest, ThreadsThatRecordWaitAndLookLoseNobody) {
  const EventReference event = make_event();
  run_on_threads(4, [&](int index) {
    const StreamReference stream = make_stream();
    for (int i = 0; i < 300; ++i) {
      if (index % 2 == 0) {
        EXPECT_TRUE(is_ok(events().record(event, stream)));
      } else {
        EXPECT_TRUE(is_ok(events().let_wait(stream, event, 0)));
      }
      EXPECT_TRUE(is_ok(events().status(event)));
    }
    // One more, for those that wait for the next.
    EXPECT_TRUE(is_ok(events().record(event, first_)));
    EXPECT_TRUE(is_ok(streams().synchronize(stream)));
  });
  EXPECT_TRUE(waits_are_over(event));
}

}  // namespace
}  // namespace understudy
