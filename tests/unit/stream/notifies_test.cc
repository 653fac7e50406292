// SPDX-License-Identifier: Apache-2.0
#include "stream/notifies.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "unit/platform/planned_fault.h"
#include "unit/run_on_threads.h"
#include "unit/stream/stream_test_base.h"

namespace understudy {
namespace {

class NotifiesTest : public StreamTestBase {
 protected:
  Notifies& notifies() { return rig_.notifies; }
  NotifyTable& table() { return rig_.memory.capacity.server().notifies(); }
  ProcessSlots& slots() { return rig_.memory.capacity.server().slots(); }

  NotifyReference make(NotifyFamily family = NotifyFamily::kFlag) {
    return value_of(notifies().create(0, family));
  }
  void set(const NotifyReference& notify, const StreamReference& stream) {
    ASSERT_TRUE(is_ok(notifies().record(notify, stream, kSetFlag)));
  }
  void take(const NotifyReference& notify, const StreamReference& stream, uint32_t limit = 0) {
    ASSERT_TRUE(is_ok(notifies().let_wait(notify, stream, kTakeFlag, limit)));
  }
  ShareToken share(const NotifyReference& notify) {
    return value_of(notifies().share(notify, {.device = 0, .open_to_all = true}));
  }

  const StreamReference first_ = make_stream();
  const StreamReference second_ = make_stream();
};

TEST_F(NotifiesTest, HandleFindsItsNotifyUntilThatEnds) {
  const NotifyReference notify = make();
  const uint64_t handle = Notifies::handle_of(notify);
  EXPECT_EQ(value_of(notifies().find(handle, NotifyFamily::kFlag)).notify, notify.notify);
  EXPECT_TRUE(
      fails_with(notifies().find(handle, NotifyFamily::kCounting), ErrorCode::kInvalidHandle));
  ASSERT_TRUE(is_ok(notifies().destroy(notify)));
  EXPECT_TRUE(fails_with(notifies().find(handle, NotifyFamily::kFlag), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(fails_with(notifies().destroy(notify), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(fails_with(notifies().record(notify, first_, kSetFlag), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(
      fails_with(notifies().let_wait(notify, first_, kTakeFlag, 0), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(fails_with(notifies().clear(notify), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(fails_with(notifies().share(notify, {}), ErrorCode::kInvalidHandle));
}

TEST_F(NotifiesTest, SlotIsUsedAgainOnlyAfterTheLastTask) {
  const NotifyReference notify = make();
  take(notify, first_);
  wait_until_parked(first_);
  ASSERT_TRUE(is_ok(notifies().destroy(notify)));
  std::vector<NotifyReference> others;
  for (int i = 0; i < 300; ++i) {
    others.push_back(make());
    EXPECT_NE(others.back().notify, notify.notify);
  }
  streams().abort(first_);
  for (const NotifyReference& each : others) ASSERT_TRUE(is_ok(notifies().destroy(each)));
}

TEST_F(NotifiesTest, EndOfADeviceEndsItsNotifiesAlone) {
  const NotifyReference ended = make();
  const NotifyReference other = value_of(notifies().create(1, NotifyFamily::kFlag));
  notifies().end_device(0);
  EXPECT_TRUE(fails_with(notifies().destroy(ended), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(is_ok(notifies().destroy(other)));
}

TEST_F(NotifiesTest, TaskThatIsRefusedLeavesNoUserBehind) {
  const NotifyReference notify = make();
  const StreamReference ended = make_stream();
  ASSERT_TRUE(is_ok(streams().destroy(ended)));
  EXPECT_FALSE(notifies().record(notify, ended, kSetFlag).ok());
  EXPECT_FALSE(notifies().let_wait(notify, ended, kTakeFlag, 0).ok());
  BriefLock lock(notify.notify->mutex);
  EXPECT_EQ(notify.notify->users, 1u);
}

// ---- Shared ----

TEST_F(NotifiesTest, ShareTakesTheNumberAndTheWaitsAlong) {
  const NotifyReference set_before = make();
  set(set_before, first_);
  expect_synchronized(first_);
  EXPECT_TRUE(table().take(share(set_before).number()));

  const NotifyReference awaited = make();
  take(awaited, first_);
  wait_until_parked(first_);
  const ShareToken token = share(awaited);
  EXPECT_EQ(share(awaited).word(), token.word());
  set(awaited, second_);
  expect_synchronized(first_);
  EXPECT_FALSE(table().take(token.number()));
}

TEST_F(NotifiesTest, RingOfAnotherProcessWakesParkedStreams) {
  const NotifyReference notify = make();
  const ShareToken token = share(notify);
  for (int round = 0; round < 50; ++round) {
    take(notify, first_);
    if (round % 2 == 0) wait_until_parked(first_);
    // As another process does it, which sees none of the streams here.
    table().set(token.number());
    slots().ring_self();
    expect_synchronized(first_);
  }
}

TEST_F(NotifiesTest, WithoutAListenerStreamsLookThemselves) {
  const platform::PlannedFault fault(platform::SystemCall::kStartThread, 1, EAGAIN);
  const NotifyReference notify = make();
  const ShareToken token = share(notify);
  ASSERT_TRUE(fault.happened());
  EXPECT_FALSE(slots().is_listening());
  take(notify, first_);
  wait_until_parked(first_);
  table().set(token.number());
  expect_synchronized(first_);
}

TEST_F(NotifiesTest, LastUserGivesUpTheHold) {
  const NotifyReference notify = make();
  const ShareToken token = share(notify);
  const NotifyReference opened = value_of(notifies().open(token, 1));
  EXPECT_TRUE(opened.is_imported());
  EXPECT_EQ(slots().holds(), 1u);
  EXPECT_TRUE(fails_with(notifies().share(opened, {}), ErrorCode::kInvalidParam));
  take(opened, first_);
  wait_until_parked(first_);
  ASSERT_TRUE(is_ok(notifies().destroy(notify)));
  EXPECT_EQ(rig_.ended_export.word(), token.word());
  EXPECT_FALSE(table().is_open(token));
  EXPECT_TRUE(fails_with(notifies().open(token, 0), ErrorCode::kInvalidHandle));
  ASSERT_TRUE(is_ok(notifies().destroy(opened)));
  EXPECT_EQ(slots().holds(), 1u);  // the task's
  streams().abort(first_);
  EXPECT_EQ(slots().holds(), 0u);
}

TEST_F(NotifiesTest, DestroyDoesNotWaitForTheLedger) {
  const NotifyReference notify = make();
  (void)share(notify);
  {
    const LedgerLock lock(slots().mutex(), kNever);
    ASSERT_TRUE(lock.taken().ok());
    std::thread([&] { EXPECT_TRUE(is_ok(notifies().destroy(notify))); }).join();
    EXPECT_EQ(slots().holds(), 1u);
  }
  // The next one that is shared gives it up.
  const NotifyReference next = make();
  (void)share(next);
  EXPECT_EQ(slots().holds(), 1u);
  ASSERT_TRUE(is_ok(notifies().destroy(next)));
  EXPECT_EQ(slots().holds(), 0u);
}

TEST_F(NotifiesTest, ThreadsThatShareTheSameNotifyGetTheSameToken) {
  for (int round = 0; round < 20; ++round) {
    const NotifyReference notify = make();
    std::vector<uint64_t> tokens(4);
    run_on_threads(4,
                   [&](int thread) { tokens[static_cast<size_t>(thread)] = share(notify).word(); });
    for (const uint64_t token : tokens) EXPECT_EQ(token, tokens.front());
    ASSERT_TRUE(is_ok(notifies().destroy(notify)));
    EXPECT_EQ(slots().holds(), 0u);
  }
}

TEST_F(NotifiesTest, OpensAndDestroysOfManyThreadsLeaveNothing) {
  const NotifyReference notify = make();
  const ShareToken token = share(notify);
  run_on_threads(4, [&](int) {
    for (int round = 0; round < 200; ++round) {
      const NotifyReference opened = value_of(notifies().open(token, 0));
      ASSERT_TRUE(is_ok(notifies().destroy(opened)));
    }
  });
  EXPECT_TRUE(table().is_open(token));
  ASSERT_TRUE(is_ok(notifies().destroy(notify)));
  (void)value_of(notifies().create(0, NotifyFamily::kFlag));
  const NotifyReference last = make();
  (void)share(last);  // gives up what another holder of the ledger's lock kept
  ASSERT_TRUE(is_ok(notifies().destroy(last)));
  EXPECT_EQ(slots().holds(), 0u);
}

}  // namespace
}  // namespace understudy
