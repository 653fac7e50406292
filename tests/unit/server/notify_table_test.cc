// SPDX-License-Identifier: Apache-2.0
#include "server/notify_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>

#include "unit/ledger_image.h"
#include "unit/run_on_threads.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

class SharedNotifiesTest : public testing::Test {
 protected:
  ShareToken add() { return value_of(notifies_.add({.device = 1, .open_to_all = true})); }
  bool is_live(uint32_t notify) const { return image_.notify(notify).live.load() != 0; }

  TestServer server_;
  std::unique_ptr<Server> joined_ = server_.join();
  LedgerImage image_{server_};
  NotifyTable& notifies_ = joined_->notifies();
};

TEST_F(SharedNotifiesTest, IsTakenOnceForEachTimeItWasSet) {
  const uint32_t notify = add().number();
  EXPECT_FALSE(notifies_.take(notify));
  notifies_.set(notify);
  notifies_.set(notify);
  EXPECT_TRUE(notifies_.take(notify));
  EXPECT_FALSE(notifies_.take(notify));
  notifies_.set(notify);
  notifies_.clear(notify);
  EXPECT_FALSE(notifies_.take(notify));
}

TEST_F(SharedNotifiesTest, TokenFindsWhatItIs) {
  const ShareToken token = value_of(notifies_.add({.device = 1, .open_to_all = false}));
  const auto view = value_of(notifies_.find(token));
  ASSERT_TRUE(view);
  EXPECT_EQ(view->owner, joined_->slots().own_tag());
  EXPECT_EQ(view->description.device, 1u);
  EXPECT_FALSE(view->description.open_to_all);
  EXPECT_TRUE(notifies_.is_open(token));
  for (const ShareToken wrong : {ShareToken(0), ShareToken(token.number(), 0),
                                 ShareToken(token.number(), token.secret() ^ 1),
                                 ShareToken(token.number() + 1, token.secret())}) {
    EXPECT_FALSE(value_of(notifies_.find(wrong)));
    EXPECT_FALSE(value_of(notifies_.hold(wrong)));
    EXPECT_FALSE(notifies_.is_open(wrong));
  }
  notifies_.close(token.number());
  EXPECT_FALSE(value_of(notifies_.find(token)));
  EXPECT_FALSE(notifies_.is_open(token));
}

TEST_F(SharedNotifiesTest, EntryThatIsUsedAgainIsNotSet) {
  const uint32_t notify = add().number();
  notifies_.set(notify);
  EXPECT_TRUE(notifies_.drop(notify));
  EXPECT_FALSE(is_live(notify));
  ASSERT_EQ(add().number(), notify);
  EXPECT_FALSE(notifies_.take(notify));
}

TEST_F(SharedNotifiesTest, RingsAllHoldersAndNoOneElse) {
  const ShareToken token = add();
  OtherProcess bystander(server_.member());
  bystander.hear_word();
  OtherProcess holder([&](const Line& line) {
    const std::unique_ptr<Server> joined = server_.join();
    EXPECT_TRUE(value_of(joined->notifies().hold(token)));
    line.say(joined->slots().own_slot());
    line.hear();
  });
  const auto slot = static_cast<unsigned>(holder.hear_word());
  const auto rings = [&](unsigned of) { return image_.slot(of).rings.load(); };
  const uint32_t own = rings(joined_->slots().own_slot());
  const uint32_t theirs = rings(slot);
  const uint32_t others = rings(1);
  notifies_.set(token.number());
  EXPECT_EQ(rings(joined_->slots().own_slot()), own + 1);
  EXPECT_EQ(rings(slot), theirs + 1);
  EXPECT_EQ(rings(1), others);
}

// The other process sleeps until it is rung: nothing else wakes it.
TEST_F(SharedNotifiesTest, RingWakesAProcessThatListens) {
  const ShareToken token = add();
  OtherProcess other([&](const Line& line) {
    const std::unique_ptr<Server> joined = server_.join();
    NotifyTable& notifies = joined->notifies();
    EXPECT_TRUE(value_of(notifies.hold(token)));
    joined->slots().listen();
    uint32_t seen = joined->slots().rings().load();
    line.say();
    while (!notifies.take(token.number())) {
      joined->slots().sleep_until_rung(seen);
      seen = joined->slots().rings().load();
    }
  });
  other.hear_word();
  notifies_.set(token.number());
  EXPECT_TRUE(other.ended_well());
}

TEST_F(SharedNotifiesTest, LivesUntilItsLastHolderIsGone) {
  OtherProcess maker([&](const Line& line) {
    const std::unique_ptr<Server> joined = server_.join();
    line.say(value_of(joined->notifies().add({})).word());
    line.hear();
  });
  const ShareToken token(maker.hear_word());
  ASSERT_TRUE(value_of(notifies_.hold(token)));
  EXPECT_TRUE(value_of(notifies_.hold(token)));
  EXPECT_EQ(joined_->slots().holds(), 1u);
  maker.kill();
  EXPECT_FALSE(value_of(notifies_.find(token)));
  EXPECT_FALSE(value_of(notifies_.hold(token)));
  joined_->slots().reclaim_if_any();
  EXPECT_TRUE(is_live(token.number()));
  notifies_.set(token.number());
  EXPECT_TRUE(notifies_.take(token.number()));
  EXPECT_TRUE(notifies_.drop(token.number()));
  EXPECT_FALSE(is_live(token.number()));
  EXPECT_EQ(joined_->slots().holds(), 0u);
}

TEST_F(SharedNotifiesTest, DropDoesNotWaitForAProcessThatHasTheLedger) {
  const uint32_t notify = add().number();
  OtherProcess holder([&](const Line& line) {
    const std::unique_ptr<Server> joined = server_.join();
    const LedgerLock lock(joined->slots().mutex(), kNever);
    line.say();
    line.hear();
  });
  holder.hear_word();
  EXPECT_FALSE(notifies_.drop(notify, kOneAttempt));
  EXPECT_TRUE(is_live(notify));
  holder.kill();
  EXPECT_TRUE(notifies_.drop(notify, kOneAttempt));
  EXPECT_FALSE(is_live(notify));
}

TEST_F(SharedNotifiesTest, FullTableSaysSo) {
  TableHead& head = image_.header().notifies;
  head.high.store(kMostNotifies);
  head.backed.store(kMostNotifies);
  EXPECT_TRUE(fails_with(notifies_.add({}), ErrorCode::kOutOfResources));
  EXPECT_EQ(joined_->slots().holds(), 0u);
  head.high.store(0);
  head.backed.store(0);
  EXPECT_TRUE(is_ok(notifies_.add({})));
}

TEST_F(SharedNotifiesTest, OfManyThreadsOneTakesIt) {
  const uint32_t notify = add().number();
  constexpr int kRounds = 100;
  std::atomic<int> taken{0};
  std::atomic<int> set{0};
  run_on_threads(4, [&](int thread) {
    if (thread == 0) {
      for (int round = 0; round < kRounds; ++round) {
        notifies_.set(notify);
        set.store(round + 1);
        while (taken.load() <= round) std::this_thread::yield();
      }
      return;
    }
    while (taken.load() < kRounds) {
      if (notifies_.take(notify)) taken.fetch_add(1);
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(taken.load(), kRounds);
  EXPECT_FALSE(notifies_.take(notify));
}

// Processes that make, find, set and drop notifies until they are killed leave none behind.
TEST_F(SharedNotifiesTest, KillsLeakNothing) {
  constexpr int kKills = 60;
  const ShareToken token = add();
  std::mt19937 random(7);
  for (int kill = 0; kill < kKills; ++kill) {
    OtherProcess victim([&](const Line& line) {
      const std::unique_ptr<Server> joined = server_.join();
      NotifyTable& notifies = joined->notifies();
      line.say();
      while (true) {
        EXPECT_TRUE(value_of(notifies.hold(token)));
        const ShareToken own = value_of(notifies.add({}));
        notifies.set(own.number());
        notifies.set(token.number());
        (void)notifies.take(token.number());
        notifies.drop(token.number());
        notifies.drop(own.number());
      }
    });
    victim.hear_word();
    const auto end = Clock::now() + std::chrono::microseconds(random() % 500);
    while (Clock::now() < end) notifies_.set(token.number());
    victim.kill();
  }
  ASSERT_TRUE(can_lock(*joined_));
  joined_->slots().reclaim_if_any();
  EXPECT_EQ(joined_->slots().holds(), 1u);
  EXPECT_TRUE(is_live(token.number()));
  for (uint32_t number = 0; number < image_.header().notifies.high.load(); ++number) {
    EXPECT_EQ(is_live(number), number == token.number()) << number;
  }
}

}  // namespace
}  // namespace understudy
