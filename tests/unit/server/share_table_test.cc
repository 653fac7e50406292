// SPDX-License-Identifier: Apache-2.0
#include "server/share_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "unit/ledger_image.h"
#include "unit/run_on_threads.h"
#include "unit/share_rig.h"

namespace understudy {
namespace {

class ShareTableTest : public testing::Test {
 protected:
  // A process that holds a share, says so, and drops it when told.
  auto holder_of(ShareToken token) {
    return [this, token](const Line& line) {
      ShareRig theirs(server_);
      EXPECT_TRUE(theirs.hold(token));
      line.say();
      line.hear_word();
      line.say(static_cast<uint64_t>(theirs.drop(token)));
      line.hear();
    };
  }
  // A process that exports, says its token, and lives until told.
  auto exporter() {
    return [this](const Line& line) {
      ShareRig theirs(server_);
      line.say(theirs.add().word());
      line.hear();
    };
  }
  static AfterDrop drop_of(OtherProcess& holder) {
    holder.say();
    return static_cast<AfterDrop>(holder.hear_word());
  }

  TestServer server_;
  ShareRig own_{server_};
  LedgerImage image_{server_};
};

TEST_F(ShareTableTest, IsFoundByItsTokenAsItWasDescribed) {
  ShareDescription wanted;
  wanted.kind = ShareKind::kKey;
  wanted.open_to_all = true;
  wanted.read_only = true;
  wanted.page_kind = PageKind::kNormal;
  wanted.attribute = 3;
  wanted.location = {LocationKind::kDevice, 1};
  wanted.backing = 27;
  wanted.offset = 12345;
  wanted.size = 678;
  wanted.usable = 600;
  wanted.charged = kNormalPage;
  ASSERT_TRUE(own_.capacity.charge({1, PageKind::kNormal, kNormalPage}));
  const ShareToken token = value_of(own_.shares.add(wanted));
  const std::optional<ShareView> view = own_.find(token);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->number, token.number());
  EXPECT_EQ(view->owner, own_.slots.own_tag());
  EXPECT_EQ(view->description.kind, wanted.kind);
  EXPECT_TRUE(view->description.open_to_all && view->description.read_only);
  EXPECT_EQ(view->description.page_kind, wanted.page_kind);
  EXPECT_EQ(view->description.attribute, wanted.attribute);
  EXPECT_EQ(view->description.location, wanted.location);
  EXPECT_EQ(view->description.backing, wanted.backing);
  EXPECT_EQ(view->description.offset, wanted.offset);
  EXPECT_EQ(view->description.size, wanted.size);
  EXPECT_EQ(view->description.usable, wanted.usable);
  EXPECT_EQ(view->description.charged, wanted.charged);
  EXPECT_EQ(own_.capacity.figures(1, PageKind::kNormal).free,
            TestServer::kNormalMemory - kNormalPage);
}

TEST_F(ShareTableTest, IsNotFoundByAnyOtherToken) {
  const ShareToken token = own_.add();
  EXPECT_FALSE(own_.find(ShareToken(token.word() ^ uint64_t{1} << 40)));
  EXPECT_FALSE(own_.find(ShareToken(token.number(), 0)));
  EXPECT_FALSE(own_.find(ShareToken(token.number() + 1, token.secret())));
  EXPECT_FALSE(own_.hold(ShareToken(token.number(), token.secret() + 1)));
}

TEST_F(ShareTableTest, ChargeGoesFromTheProcessToTheShareAndIsCreditedOnce) {
  const ShareToken token = own_.add();
  EXPECT_EQ(PoolWord(image_.pages(0).load()).used(), 0u);
  EXPECT_EQ(image_.shared_pages().load(), kShareBytes / kNormalPage);
  EXPECT_EQ(own_.used(), kShareBytes);
  EXPECT_EQ(own_.drop(token), AfterDrop::kOwnAgain);
  EXPECT_EQ(own_.used(), 0u);
  EXPECT_FALSE(own_.find(token));
}

TEST_F(ShareTableTest, MemoryOfTheHostIsNotCharged) {
  for (const LocationKind kind : {LocationKind::kHost, LocationKind::kHostNuma}) {
    ShareDescription wanted = ShareRig::description();
    wanted.location = {kind, 0};
    const ShareToken token = value_of(own_.shares.add(wanted));
    EXPECT_EQ(own_.used(), 0u);
    EXPECT_EQ(own_.drop(token), AfterDrop::kOwnAgain);
    EXPECT_EQ(own_.used(), 0u);
  }
}

TEST_F(ShareTableTest, ClosedShareLetsNoOneInUntilItIsReopened) {
  const ShareToken token = own_.add();
  ASSERT_TRUE(own_.shares.token_of(token.number()));
  EXPECT_EQ(own_.shares.token_of(token.number())->word(), token.word());
  own_.shares.close(token);
  EXPECT_FALSE(own_.find(token));
  EXPECT_FALSE(own_.hold(token));
  EXPECT_FALSE(own_.shares.token_of(token.number()));
  EXPECT_EQ(own_.used(), kShareBytes);
  const ShareToken again =
      value_of(own_.shares.reopen(token.number(), ShareKind::kFabric, true, kShareBytes / 2));
  EXPECT_EQ(again.number(), token.number());
  EXPECT_NE(again.word(), token.word());
  EXPECT_FALSE(own_.find(token));
  ASSERT_TRUE(own_.find(again));
  EXPECT_EQ(own_.find(again)->description.kind, ShareKind::kFabric);
  EXPECT_TRUE(own_.find(again)->description.open_to_all);
  EXPECT_EQ(own_.find(again)->description.usable, kShareBytes / 2);
  EXPECT_EQ(own_.find(again)->description.size, kShareBytes);
  // The token before it closes nothing any more.
  own_.shares.close(token);
  EXPECT_TRUE(own_.find(again));
  EXPECT_EQ(own_.drop(again), AfterDrop::kOwnAgain);
}

TEST_F(ShareTableTest, HolderThatGoesFirstLeavesItToItsOwner) {
  const ShareToken token = own_.add();
  OtherProcess other(holder_of(token));
  other.hear_word();
  EXPECT_EQ(drop_of(other), AfterDrop::kHeld);
  EXPECT_EQ(own_.drop(token), AfterDrop::kOwnAgain);
  EXPECT_FALSE(own_.has_returns());
}

TEST_F(ShareTableTest, OwnerThatGoesFirstGetsItBackFromTheLastHolder) {
  const ShareToken token = own_.add();
  OtherProcess first(holder_of(token));
  first.hear_word();
  OtherProcess second(holder_of(token));
  second.hear_word();
  EXPECT_EQ(own_.drop(token), AfterDrop::kHeld);
  EXPECT_EQ(drop_of(first), AfterDrop::kHeld);
  EXPECT_EQ(own_.used(), kShareBytes);
  EXPECT_FALSE(own_.has_returns());
  EXPECT_EQ(drop_of(second), AfterDrop::kReturned);
  EXPECT_EQ(own_.used(), 0u);
  ASSERT_TRUE(own_.has_returns());
  EXPECT_EQ(own_.take_returns(), std::vector<uint32_t>{token.number()});
  EXPECT_FALSE(own_.has_returns());
  EXPECT_TRUE(own_.take_returns().empty());
  EXPECT_EQ(own_.add().number(), token.number());
}

TEST_F(ShareTableTest, HolderThatDiesIsAHolderThatDropped) {
  const ShareToken token = own_.add();
  const ShareToken left = own_.add();
  OtherProcess other([&](const Line& line) {
    ShareRig theirs(server_);
    EXPECT_TRUE(theirs.hold(token) && theirs.hold(left));
    // To hold it twice is to hold it.
    EXPECT_TRUE(theirs.hold(left));
    line.say();
    line.hear();
  });
  other.hear_word();
  EXPECT_EQ(own_.drop(left), AfterDrop::kHeld);
  other.kill();
  EXPECT_EQ(own_.used(), kShareBytes);
  ASSERT_TRUE(own_.has_returns());
  EXPECT_EQ(own_.take_returns(), std::vector<uint32_t>{left.number()});
  EXPECT_EQ(own_.drop(token), AfterDrop::kOwnAgain);
  EXPECT_EQ(own_.used(), 0u);
}

TEST_F(ShareTableTest, ShareOfADeadProcessIsChargedUntilItsLastHolderDrops) {
  OtherProcess owner(exporter());
  const ShareToken token(owner.hear_word());
  ASSERT_TRUE(own_.hold(token));
  const ProcessTag tag = own_.find(token)->owner;
  owner.kill();
  EXPECT_EQ(own_.used(), kShareBytes);  // and the dead are cleared
  EXPECT_FALSE(own_.find(token));
  EXPECT_FALSE(own_.hold(token));
  ASSERT_EQ(own_.held_parts(tag).size(), 1u);
  EXPECT_EQ(own_.drop(token), AfterDrop::kOrphaned);
  EXPECT_EQ(own_.used(), 0u);
  EXPECT_TRUE(own_.held_parts(tag).empty());
}

TEST_F(ShareTableTest, ShareOfADeadProcessLetsNoOneInEvenBeforeItIsCleared) {
  OtherProcess owner(exporter());
  const ShareToken token(owner.hear_word());
  owner.kill();
  EXPECT_FALSE(own_.hold(token));
  EXPECT_EQ(own_.used(), 0u);
}

TEST_F(ShareTableTest, ReturnThatItsOwnerNeverTookGoesWithTheOwner) {
  OtherProcess owner([&](const Line& line) {
    ShareRig theirs(server_);
    const ShareToken token = theirs.add();
    line.say(token.word());
    line.hear_word();
    line.say(static_cast<uint64_t>(theirs.drop(token)));
    line.hear();
  });
  const ShareToken token(owner.hear_word());
  ASSERT_TRUE(own_.hold(token));
  EXPECT_EQ(drop_of(owner), AfterDrop::kHeld);
  EXPECT_EQ(own_.drop(token), AfterDrop::kReturned);
  owner.kill();
  EXPECT_EQ(own_.used(), 0u);
  EXPECT_EQ(own_.add().number(), token.number());
}

TEST_F(ShareTableTest, NextProcessOfASlotHasNothingOfTheOneBefore) {
  OtherProcess owner(exporter());
  const ShareToken token(owner.hear_word());
  ASSERT_TRUE(own_.hold(token));
  owner.kill();
  OtherProcess next([&](const Line&) {
    ShareRig theirs(server_);
    EXPECT_EQ(theirs.slots.own_slot(), 1u);
    EXPECT_FALSE(theirs.has_returns());
    EXPECT_TRUE(theirs.take_returns().empty());
    EXPECT_TRUE(theirs.held_parts(theirs.slots.own_tag()).empty());
    EXPECT_FALSE(theirs.hold(token));
  });
  EXPECT_TRUE(next.ended_well());
  EXPECT_EQ(own_.drop(token), AfterDrop::kOrphaned);
}

TEST_F(ShareTableTest, HeldPartsAreThoseOfOneOwner) {
  const ShareToken first = own_.add();
  ShareDescription wanted = ShareRig::description();
  wanted.backing = 2;
  wanted.offset = 8 * kMiB;
  (void)own_.add(wanted);
  OtherProcess other(exporter());
  other.hear_word();
  const auto parts = own_.held_parts(own_.slots.own_tag());
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].backing, 2u);
  EXPECT_EQ(parts[1].offset, 8 * kMiB);
  EXPECT_EQ(parts[1].size, kShareBytes);
  EXPECT_EQ(own_.drop(first), AfterDrop::kOwnAgain);
  EXPECT_EQ(own_.held_parts(own_.slots.own_tag()).size(), 1u);
}

TEST_F(ShareTableTest, FullTableTakesNothingFromTheProcess) {
  TableHead& head = image_.header().shares;
  head.backed.store(kMostShares);
  head.high.store(kMostShares);
  ASSERT_TRUE(own_.capacity.charge({0, PageKind::kHuge, kShareBytes}));
  EXPECT_TRUE(fails_with(own_.shares.add(ShareRig::description()), ErrorCode::kOutOfResources));
  EXPECT_EQ(image_.header().changes.load() % 2, 0u);
  EXPECT_EQ(own_.used(), kShareBytes);
  head.high.store(0);
  own_.capacity.credit({0, PageKind::kHuge, kShareBytes});
  EXPECT_EQ(own_.used(), 0u);
}

TEST_F(ShareTableTest, StaysExactWithManyThreads) {
  run_on_threads(4, [&](int) {
    for (int round = 0; round < 200; ++round) {
      const ShareToken token = own_.add();
      EXPECT_TRUE(own_.find(token));
      EXPECT_EQ(own_.drop(token), AfterDrop::kOwnAgain);
    }
  });
  EXPECT_EQ(own_.used(), 0u);
  EXPECT_EQ(own_.slots.holds(), 0u);
  EXPECT_LE(image_.header().shares.high.load(), 4u);
}

// ---- Batches ----

TEST_F(ShareTableTest, BatchClosesAndDropsAndSaysWhatBecameOfEach) {
  const ShareToken alone = own_.add();
  const ShareToken held = own_.add();
  const ShareToken closed = own_.add();
  OtherProcess other(holder_of(held));
  other.hear_word();
  OtherProcess owner(exporter());
  const ShareToken theirs(owner.hear_word());
  ASSERT_TRUE(own_.hold(theirs));
  owner.kill();
  std::vector<Release> batch{
      {.number = alone.number(), .close_secret = alone.secret(), .drop = true},
      {.number = held.number(), .drop = true},
      {.number = closed.number(), .close_secret = closed.secret()},
      {.number = theirs.number(), .drop = true},
  };
  EXPECT_EQ(own_.used(), 4 * kShareBytes);  // and the dead are cleared
  ASSERT_TRUE(own_.shares.try_release(batch));
  EXPECT_EQ(batch[0].after, AfterDrop::kOwnAgain);
  EXPECT_EQ(batch[1].after, AfterDrop::kHeld);
  EXPECT_EQ(batch[3].after, AfterDrop::kOrphaned);
  EXPECT_FALSE(own_.find(closed));
  EXPECT_FALSE(own_.find(held));
  EXPECT_EQ(own_.used(), 2 * kShareBytes);
  EXPECT_EQ(drop_of(other), AfterDrop::kReturned);
  EXPECT_EQ(own_.take_returns(), std::vector<uint32_t>{held.number()});
}

TEST_F(ShareTableTest, BatchClosesNoTokenButTheOneItNames) {
  const ShareToken token = own_.add();
  Release wrong{.number = token.number(), .close_secret = token.secret() + 1};
  Release nothing{.number = token.number()};
  ASSERT_TRUE(own_.shares.try_release({&wrong, 1}));
  ASSERT_TRUE(own_.shares.try_release({&nothing, 1}));
  ASSERT_TRUE(own_.shares.try_release({}));
  EXPECT_TRUE(own_.find(token));
}

TEST_F(ShareTableTest, BatchDoesNotWaitForAHolderOfTheLock) {
  const ShareToken token = own_.add();
  OtherProcess other([&](const Line& line) {
    ShareRig theirs(server_);
    {
      const LedgerLock lock(theirs.slots.mutex(), kNever);
      line.say();
      line.hear_word();
    }
    line.say();
    line.hear();
  });
  other.hear_word();
  Release release{.number = token.number(), .close_secret = token.secret(), .drop = true};
  EXPECT_FALSE(own_.shares.try_release({&release, 1}));
  EXPECT_TRUE(own_.shares.token_of(token.number()));
  other.say();
  other.hear_word();
  EXPECT_TRUE(own_.shares.try_release({&release, 1}));
  EXPECT_EQ(release.after, AfterDrop::kOwnAgain);
  EXPECT_EQ(own_.used(), 0u);
}

TEST_F(ShareTableTest, BatchTakesTheLockFromTheDead) {
  const ShareToken token = own_.add();
  server_.with_process_that_dies_locked([](Server&) {});
  Release release{.number = token.number(), .drop = true};
  EXPECT_TRUE(own_.shares.try_release({&release, 1}));
  EXPECT_EQ(release.after, AfterDrop::kOwnAgain);
}

TEST_F(ShareTableTest, ReturnsAreTakenAsFarAsThereIsRoom) {
  const ShareToken first = own_.add();
  const ShareToken second = own_.add();
  OtherProcess other([&](const Line& line) {
    ShareRig theirs(server_);
    EXPECT_TRUE(theirs.hold(first) && theirs.hold(second));
    line.say();
    line.hear();
  });
  other.hear_word();
  EXPECT_EQ(own_.drop(first), AfterDrop::kHeld);
  EXPECT_EQ(own_.drop(second), AfterDrop::kHeld);
  other.kill();
  EXPECT_EQ(own_.used(), 0u);  // and the dead are cleared
  ASSERT_EQ(own_.shares.returns().load(), 2u);
  uint32_t one = 0;
  EXPECT_EQ(value_of(own_.shares.take_returns({})), 0u);
  EXPECT_EQ(value_of(own_.shares.take_returns({&one, 1})), 1u);
  EXPECT_EQ(one, first.number());
  EXPECT_EQ(own_.take_returns(), std::vector<uint32_t>{second.number()});
}

// However memory moves between a process and its share, it is counted once.
TEST_F(ShareTableTest, FiguresAreRightWhileMemoryMoves) {
  OtherProcess mover([&](const Line& line) {
    ShareRig theirs(server_);
    line.say();
    while (true) (void)theirs.drop(theirs.add());
  });
  mover.hear_word();
  for (int i = 0; i < 5000; ++i) ASSERT_LE(own_.used(), kShareBytes) << i;
  mover.kill();
  EXPECT_EQ(own_.used(), 0u);
}

}  // namespace
}  // namespace understudy
