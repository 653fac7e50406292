// SPDX-License-Identifier: Apache-2.0
#include "server/event_table.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "unit/ledger_image.h"
#include "unit/platform/planned_fault.h"
#include "unit/run_on_threads.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

constexpr uint64_t kStream = 5;
constexpr uint64_t kOtherStream = 6;

class SharedEventsTest : public testing::Test {
 protected:
  uint32_t add() { return value_of(events_.add()).number(); }
  uint64_t record(uint32_t event, uint64_t stream = kStream) {
    return value_of(events_.record(event, stream));
  }
  bool is_live(uint32_t event) const { return image_.event(event).live.load() != 0; }
  // A process that holds an event, records it, says so and then waits to be told.
  auto recorder_of(ShareToken token) {
    return [this, token](const Line& line) {
      const std::unique_ptr<Server> joined = server_.join();
      EventTable& events = joined->events();
      EXPECT_TRUE(value_of(events.hold(token)));
      const uint64_t record = value_of(events.record(token.number(), kStream));
      line.say(record);
      line.hear_word();
      events.reach(token.number(), record);
      line.say();
      line.hear();
    };
  }

  TestServer server_;
  std::unique_ptr<Server> joined_ = server_.join();
  LedgerImage image_{server_};
  EventTable& events_ = joined_->events();
};

TEST_F(SharedEventsTest, BeginsWithoutARecord) {
  const uint32_t event = add();
  EXPECT_EQ(events_.latest(event), 0u);
  EXPECT_EQ(events_.state(event, 0), RecordState::kNone);
}

TEST_F(SharedEventsTest, RecordsAreNumberedAndReachedOneByOne) {
  const uint32_t event = add();
  EXPECT_EQ(record(event), 1u);
  EXPECT_EQ(record(event), 2u);
  EXPECT_EQ(events_.latest(event), 2u);
  EXPECT_EQ(events_.state(event, 1), RecordState::kPending);
  events_.reach(event, 2);
  EXPECT_EQ(events_.state(event, 1), RecordState::kPending);
  EXPECT_EQ(events_.state(event, 2), RecordState::kReached);
  events_.reach(event, 1);
  EXPECT_EQ(events_.state(event, 1), RecordState::kReached);
}

TEST_F(SharedEventsTest, LaterRecordAtTheSamePlaceStandsForAnEarlierOne) {
  const uint32_t event = add();
  const uint64_t first = record(event);
  uint64_t last = first;
  while (last < first + EventEntry::kRecords) last = record(event);
  EXPECT_EQ(events_.state(event, first), RecordState::kPending);
  // The place is the later one's by now.
  events_.reach(event, first);
  EXPECT_EQ(events_.state(event, last), RecordState::kPending);
  events_.reach(event, last);
  EXPECT_EQ(events_.state(event, first), RecordState::kReached);
  EXPECT_EQ(events_.state(event, first + 1), RecordState::kPending);
}

TEST_F(SharedEventsTest, RecordThatWouldTakeThePlaceOfAnotherStreamsIsRefused) {
  const uint32_t event = add();
  const uint64_t first = record(event);
  while (events_.latest(event) < EventEntry::kRecords) {
    events_.reach(event, record(event, kOtherStream));
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(fails_with(events_.record(event, kOtherStream), ErrorCode::kOutOfEvents));
    EXPECT_EQ(events_.latest(event), EventEntry::kRecords);
    EXPECT_EQ(events_.state(event, first), RecordState::kPending);
  }
  events_.reach(event, first);
  EXPECT_EQ(events_.state(event, first), RecordState::kReached);
  EXPECT_EQ(record(event, kOtherStream), first + EventEntry::kRecords);
}

// The same stream of two processes is two streams.
TEST_F(SharedEventsTest, PlaceOfAnotherProcessIsTakenOnlyWhenThatProcessIsDead) {
  const ShareToken token = value_of(events_.add());
  OtherProcess other(recorder_of(token));
  const uint64_t theirs = other.hear_word();
  while (events_.latest(token.number()) < EventEntry::kRecords) {
    events_.reach(token.number(), record(token.number()));
  }
  EXPECT_TRUE(fails_with(events_.record(token.number(), kStream), ErrorCode::kOutOfEvents));
  EXPECT_EQ(events_.state(token.number(), theirs), RecordState::kPending);
  other.kill();
  EXPECT_EQ(record(token.number()), theirs + EventEntry::kRecords);
}

TEST_F(SharedEventsTest, EventThatIsUsedAgainRemembersNothing) {
  const uint32_t event = add();
  for (int i = 0; i < 40; ++i) events_.reach(event, record(event));
  events_.drop(event);
  EXPECT_FALSE(is_live(event));
  ASSERT_EQ(add(), event);
  EXPECT_EQ(events_.latest(event), 0u);
  for (uint64_t number = 1; number <= EventEntry::kRecords; ++number) {
    EXPECT_EQ(record(event), number);
    EXPECT_EQ(events_.state(event, number), RecordState::kPending) << number;
  }
}

TEST_F(SharedEventsTest, OtherProcessesRecordAndReach) {
  const ShareToken token = value_of(events_.add());
  OtherProcess other(recorder_of(token));
  const uint64_t theirs = other.hear_word();
  EXPECT_EQ(events_.latest(token.number()), theirs);
  EXPECT_EQ(record(token.number()), theirs + 1);
  EXPECT_EQ(events_.state(token.number(), theirs), RecordState::kPending);
  other.say();
  other.hear_word();
  EXPECT_EQ(events_.state(token.number(), theirs), RecordState::kReached);
  EXPECT_EQ(events_.state(token.number(), theirs + 1), RecordState::kPending);
  // What was reached stays so when its process dies.
  other.kill();
  EXPECT_EQ(events_.state(token.number(), theirs), RecordState::kReached);
}

TEST_F(SharedEventsTest, RecordOfAProcessThatDiedIsLost) {
  const ShareToken token = value_of(events_.add());
  OtherProcess other(recorder_of(token));
  const uint64_t theirs = other.hear_word();
  other.kill();
  EXPECT_EQ(events_.state(token.number(), theirs), RecordState::kLost);
  events_.sleep(token.number(), theirs, kNever);  // does not
  joined_->slots().reclaim_if_any();
  EXPECT_EQ(events_.state(token.number(), theirs), RecordState::kLost);
  // The next process has the slot, but is another.
  OtherProcess next([&](const Line&) {
    const std::unique_ptr<Server> joined = server_.join();
    EXPECT_EQ(joined->slots().own_slot(), 1u);
    EXPECT_EQ(joined->events().state(token.number(), theirs), RecordState::kLost);
  });
  EXPECT_TRUE(next.ended_well());
}

TEST_F(SharedEventsTest, SleeperIsWokenByAnotherProcess) {
  const ShareToken token = value_of(events_.add());
  const uint64_t own = record(token.number());
  OtherProcess other([&](const Line& line) {
    const std::unique_ptr<Server> joined = server_.join();
    EventTable& events = joined->events();
    EXPECT_TRUE(value_of(events.hold(token)));
    line.say();
    const Deadline patience = Clock::now() + std::chrono::seconds(60);
    while (events.state(token.number(), own) == RecordState::kPending && !has_passed(patience)) {
      events.sleep(token.number(), own, patience);
    }
    EXPECT_EQ(events.state(token.number(), own), RecordState::kReached);
  });
  other.hear_word();
  events_.reach(token.number(), own);
  EXPECT_TRUE(other.ended_well());
}

TEST_F(SharedEventsTest, SleepEndsAtItsDeadlineAndNotLater) {
  const uint32_t event = add();
  const uint64_t pending = record(event);
  const auto begin = Clock::now();
  events_.sleep(event, pending, begin);
  events_.sleep(event, pending, begin + std::chrono::milliseconds(5));
  events_.sleep(event, 0, kNever);  // there is nothing to wait for
  events_.reach(event, pending);
  events_.sleep(event, pending, kNever);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(SharedEventsTest, ClosedEventLetsNoOneInAndStaysWithItsHolders) {
  const ShareToken token = value_of(events_.add());
  OtherProcess holder(recorder_of(token));
  holder.hear_word();
  events_.close(token.number());
  EXPECT_FALSE(value_of(events_.hold(token)));
  events_.drop(token.number());
  EXPECT_TRUE(is_live(token.number()));
  holder.say();
  holder.hear_word();
  holder.kill();
  joined_->slots().reclaim_if_any();
  EXPECT_FALSE(is_live(token.number()));
}

TEST_F(SharedEventsTest, EventOfADeadProcessLetsNoOneInAndStaysWithItsHolders) {
  OtherProcess maker([&](const Line& line) {
    const std::unique_ptr<Server> joined = server_.join();
    line.say(value_of(joined->events().add()).word());
    line.hear();
  });
  const ShareToken token(maker.hear_word());
  ASSERT_TRUE(value_of(events_.hold(token)));
  maker.kill();
  EXPECT_FALSE(value_of(events_.hold(token)));
  joined_->slots().reclaim_if_any();
  EXPECT_FALSE(value_of(events_.hold(token)));
  EXPECT_TRUE(is_live(token.number()));
  events_.reach(token.number(), record(token.number()));
  EXPECT_EQ(events_.state(token.number(), 1), RecordState::kReached);
  events_.drop(token.number());
  EXPECT_FALSE(is_live(token.number()));
}

TEST_F(SharedEventsTest, HoldingTwiceIsHoldingOnce) {
  const ShareToken token = value_of(events_.add());
  EXPECT_TRUE(value_of(events_.hold(token)));
  EXPECT_EQ(joined_->slots().holds(), 1u);
  events_.drop(token.number());
  EXPECT_FALSE(is_live(token.number()));
  EXPECT_EQ(joined_->slots().holds(), 0u);
}

TEST_F(SharedEventsTest, UnknownTokensHoldNothing) {
  const ShareToken token = value_of(events_.add());
  for (const ShareToken wrong : {ShareToken(0), ShareToken(token.number(), 0),
                                 ShareToken(token.number(), token.secret() ^ 1),
                                 ShareToken(token.number() + 1, token.secret())}) {
    EXPECT_FALSE(value_of(events_.hold(wrong)));
  }
}

TEST_F(SharedEventsTest, FullTableSaysSo) {
  TableHead& head = image_.header().events;
  head.high.store(kMostEvents);
  head.backed.store(kMostEvents);
  EXPECT_TRUE(fails_with(events_.add(), ErrorCode::kOutOfResources));
  EXPECT_EQ(joined_->slots().holds(), 0u);
  head.high.store(0);
  head.backed.store(0);
  EXPECT_TRUE(is_ok(events_.add()));
}

TEST_F(SharedEventsTest, StayExactWithManyThreads) {
  const uint32_t event = add();
  run_on_threads(4, [&](int) {
    for (int round = 0; round < 500; ++round) events_.reach(event, record(event));
  });
  EXPECT_EQ(events_.latest(event), 2000u);
  for (uint64_t number = 2000 - EventEntry::kRecords + 1; number <= 2000; ++number) {
    EXPECT_EQ(events_.state(event, number), RecordState::kReached) << number;
  }
}

}  // namespace
}  // namespace understudy
