// SPDX-License-Identifier: Apache-2.0
//
// Processes that die in the middle of a change, with the mutex of the ledger: whoever takes it next
// repairs what they left. Each step of a change is the last one of a process once.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "device/ledger_table.h"
#include "device/share_table.h"
#include "device/shared_events.h"
#include "unit/share_rig.h"

namespace understudy {
namespace {

// The states of a share, as they are in share_table.cc.
constexpr uint32_t kShared = 1;
constexpr uint32_t kReturned = 2;

constexpr uint64_t kPages = kShareBytes / kNormalPage;

using Steps = std::vector<std::function<void(Ledger&)>>;

void change(Ledger& ledger) { ledger.header().changes.fetch_add(1); }
std::atomic<uint64_t>& shared_pages(Ledger& ledger) { return ledger.header().shared[0].words[1]; }
std::atomic<uint64_t>& own_pages(Ledger& ledger) { return ledger.own().devices[0].words[1]; }

class LedgerRepair : public testing::Test {
 protected:
  // Does the first steps with the lock and dies.
  static void die_after(Ledger& ledger, const Steps& steps, size_t count) {
    const LedgerLock lock = value_of(ledger.lock());
    for (size_t i = 0; i < count; ++i) steps[i](ledger);
    OtherProcess::end_child();
  }

  // The body of a process that joins and, when it is told, clears up after another as far as a
  // step, and dies.
  static auto cleaner_that_dies(const TestServer& server, const Steps& steps, size_t count) {
    return [&server, &steps, count](const Line& line) {
      const std::unique_ptr<Ledger> ledger = server.join();
      line.say();
      line.hear_word();
      die_after(*ledger, steps, count);
    };
  }
  // What must be true whatever happened: a share can be made, held and ended, and all is free.
  static void expect_sound(ShareRig& own, size_t step) {
    EXPECT_EQ(own.used(), 0u) << "step " << step;
    EXPECT_EQ(own.ledger->header().changes.load() % 2, 0u) << "step " << step;
    const ShareToken token = own.add();
    EXPECT_EQ(token.number(), 0u) << "step " << step;
    EXPECT_EQ(own.used(), kShareBytes) << "step " << step;
    EXPECT_EQ(own.drop(token), AfterDrop::kOwnAgain) << "step " << step;
    EXPECT_EQ(own.used(), 0u) << "step " << step;
    EXPECT_EQ(own.ledger->own().holds, 0u) << "step " << step;
  }
};

TEST_F(LedgerRepair, DeathAtAnyStepOfAnExportLeavesNothing) {
  const Steps steps{
      [](Ledger& ledger) { EXPECT_EQ(value_of(take_entry<ShareTableTraits>(ledger)), 0u); },
      change,
      [](Ledger& ledger) {
        ShareEntry& entry = ledger.share(0);
        entry.owner = static_cast<uint16_t>(ledger.own_slot());
        entry.owner_tag = ledger.own_tag().word();
        entry.pages = kPages;
        entry.page_kind = static_cast<uint8_t>(PageKind::kHuge);
      },
      [](Ledger& ledger) { ledger.share(0).holders.add(ledger.own_slot()); },
      [](Ledger& ledger) { ++ledger.own().holds; },
      [](Ledger& ledger) { ++ledger.own().exports; },
      [](Ledger& ledger) { ledger.share(0).live.store(kShared); },
      [](Ledger& ledger) { ledger.share(0).secret.store(1); },
      [](Ledger& ledger) { shared_pages(ledger).fetch_add(kPages); },
      [](Ledger& ledger) { own_pages(ledger).fetch_sub(kPages); },
      change,
  };
  for (size_t count = 0; count <= steps.size(); ++count) {
    const TestServer server;
    ShareRig own(server);
    server.with_process_that_dies([&](Ledger& ledger) {
      own_pages(ledger).store(kPages);
      die_after(ledger, steps, count);
    });
    expect_sound(own, count);
  }
}

TEST_F(LedgerRepair, DeathAtAnyStepOfALastDropReturnsTheMemoryToItsOwner) {
  const Steps steps{
      change,
      [](Ledger& ledger) { ledger.share(0).holders.remove(ledger.own_slot()); },
      [](Ledger& ledger) { --ledger.own().holds; },
      [](Ledger& ledger) { ledger.share(0).secret.store(0); },
      [](Ledger& ledger) { shared_pages(ledger).fetch_sub(kPages); },
      [](Ledger& ledger) { ledger.share(0).live.store(kReturned); },
      [](Ledger& ledger) { ledger.slot(ledger.share(0).owner).returned.fetch_add(1); },
      change,
  };
  for (size_t count = 0; count <= steps.size(); ++count) {
    const TestServer server;
    ShareRig own(server);
    const ShareToken token = own.add();
    OtherProcess holder([&](const Line& line) {
      ShareRig theirs(server);
      EXPECT_TRUE(theirs.hold(token));
      line.say();
      line.hear_word();
      die_after(*theirs.ledger, steps, count);
    });
    holder.hear_word();
    EXPECT_EQ(own.drop(token), AfterDrop::kHeld);
    holder.say();
    EXPECT_TRUE(holder.ended_well());
    EXPECT_EQ(own.used(), 0u) << "step " << count;
    EXPECT_TRUE(own.has_returns()) << "step " << count;
    EXPECT_EQ(value_of(own.shares.take_returns()), std::vector<uint32_t>{0}) << "step " << count;
    expect_sound(own, count);
  }
}

TEST_F(LedgerRepair, DeathAtAnyStepOfTheOwnersLastDropLeavesNothing) {
  const Steps steps{
      change,
      [](Ledger& ledger) { ledger.share(0).holders.remove(ledger.own_slot()); },
      [](Ledger& ledger) { --ledger.own().holds; },
      [](Ledger& ledger) { ledger.share(0).secret.store(0); },
      [](Ledger& ledger) { shared_pages(ledger).fetch_sub(kPages); },
      [](Ledger& ledger) { ledger.share(0).live.store(0); },
      [](Ledger& ledger) { ledger.share(0).next_free = ledger.header().shares.first_free; },
      [](Ledger& ledger) { ledger.header().shares.first_free = 1; },
      change,
  };
  for (size_t count = 0; count <= steps.size(); ++count) {
    const TestServer server;
    ShareRig own(server);
    OtherProcess owner([&](const Line&) {
      ShareRig theirs(server);
      (void)theirs.add();
      die_after(*theirs.ledger, steps, count);
    });
    EXPECT_TRUE(owner.ended_well());
    expect_sound(own, count);
  }
}

// A third process dies while it clears the slot of a dead owner; the last one holds its share.
TEST_F(LedgerRepair, DeathAtAnyStepOfAClearanceIsNoDifference) {
  const Steps steps{
      change,
      [](Ledger& ledger) { ledger.share(0).secret.store(0); },
      [](Ledger& ledger) { ledger.share(0).owner = ShareEntry::kNoSlot; },
      [](Ledger& ledger) { ledger.share(0).holders.remove(2); },
      [](Ledger& ledger) { ledger.slot(2).holds = 0; },
      [](Ledger& ledger) { ledger.slot(2).exports = 0; },
      [](Ledger& ledger) { ledger.slot(2).taken.store(0); },
      change,
  };
  for (size_t count = 0; count <= steps.size(); ++count) {
    const TestServer server;
    ShareRig own(server);
    OtherProcess cleaner(cleaner_that_dies(server, steps, count));
    cleaner.hear_word();
    OtherProcess owner([&](const Line& line) {
      ShareRig theirs(server);
      EXPECT_EQ(theirs.ledger->own_slot(), 2u);
      line.say(theirs.add().word());
      line.hear();
    });
    const ShareToken token(owner.hear_word());
    ASSERT_TRUE(own.hold(token));
    owner.kill();
    cleaner.say();
    EXPECT_TRUE(cleaner.ended_well());
    EXPECT_EQ(own.used(), kShareBytes) << "step " << count;
    EXPECT_FALSE(own.find(token)) << "step " << count;
    EXPECT_EQ(own.drop(token), AfterDrop::kNobodys) << "step " << count;
    expect_sound(own, count);
  }
}

// The same while the share is one that came back to the dead owner, who never took it.
TEST_F(LedgerRepair, DeathAtAnyStepOfAClearanceFreesWhatWasReturned) {
  const Steps steps{
      change,
      [](Ledger& ledger) { ledger.share(0).secret.store(0); },
      [](Ledger& ledger) { ledger.share(0).owner = ShareEntry::kNoSlot; },
  };
  for (size_t count = 0; count <= steps.size(); ++count) {
    const TestServer server;
    ShareRig own(server);
    OtherProcess cleaner(cleaner_that_dies(server, steps, count));
    cleaner.hear_word();
    OtherProcess owner([&](const Line& line) {
      ShareRig theirs(server);
      const ShareToken token = theirs.add();
      line.say(token.word());
      line.hear_word();
      EXPECT_EQ(theirs.drop(token), AfterDrop::kHeld);
      line.say();
      line.hear();
    });
    const ShareToken token(owner.hear_word());
    ASSERT_TRUE(own.hold(token));
    owner.say();
    owner.hear_word();
    EXPECT_EQ(own.drop(token), AfterDrop::kReturned);
    owner.kill();
    cleaner.say();
    EXPECT_TRUE(cleaner.ended_well());
    expect_sound(own, count);
  }
}

TEST_F(LedgerRepair, DeathAtAnyStepOfAnEventLeavesNothing) {
  const Steps steps{
      [](Ledger& ledger) { EXPECT_EQ(value_of(take_entry<EventTableTraits>(ledger)), 0u); },
      [](Ledger& ledger) { ledger.event(0).owner = static_cast<uint16_t>(ledger.own_slot()); },
      [](Ledger& ledger) { ledger.event(0).holders.add(ledger.own_slot()); },
      [](Ledger& ledger) { ++ledger.own().holds; },
      [](Ledger& ledger) { ++ledger.own().exports; },
      [](Ledger& ledger) { ledger.event(0).live.store(1); },
      [](Ledger& ledger) { ledger.event(0).secret.store(1); },
  };
  for (size_t count = 0; count <= steps.size(); ++count) {
    const TestServer server;
    ShareRig own(server);
    SharedEvents events(*own.ledger);
    server.with_process_that_dies([&](Ledger& ledger) { die_after(ledger, steps, count); });
    own.ledger->reclaim_if_any();
    const ShareToken token = value_of(events.add());
    EXPECT_EQ(token.number(), 0u) << "step " << count;
    events.drop(token.number());
    EXPECT_EQ(own.ledger->event(0).live.load(), 0u) << "step " << count;
    EXPECT_EQ(own.ledger->own().holds, 0u) << "step " << count;
  }
}

TEST_F(LedgerRepair, WhatTheLivingHoldIsKept) {
  const TestServer server;
  ShareRig own(server);
  const ShareToken token = own.add();
  SharedEvents events(*own.ledger);
  const ShareToken event = value_of(events.add());
  const uint64_t record = value_of(events.record(event.number(), 1));
  events.reach(event.number(), record);
  server.with_process_that_dies_locked([](Ledger& ledger) {
    change(ledger);
    // Whatever is only a sum may be wrong.
    shared_pages(ledger).store(7);
    ledger.header().held_back[0].words[1].store(1'000'000);
    ledger.header().shares.first_free = 1;
    ledger.header().events.first_free = 1;
    ledger.slot(0).holds = 77;
    ledger.slot(0).returned.store(5);
  });
  EXPECT_EQ(own.used(), kShareBytes);
  EXPECT_EQ(own.ledger->own().holds, 2u);
  EXPECT_FALSE(own.has_returns());
  EXPECT_TRUE(own.find(token));
  EXPECT_EQ(events.state(event.number(), record), RecordState::kReached);
  EXPECT_NE(own.add().number(), token.number());
  EXPECT_NE(value_of(events.add()).number(), event.number());
  EXPECT_EQ(own.ledger->header().held_back[0].words[1].load(), 0u);
}

}  // namespace
}  // namespace understudy
