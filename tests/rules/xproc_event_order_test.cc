// SPDX-License-Identifier: Apache-2.0
//
// Streams of two processes in order through one event. Each test runs both ways: the event is
// recorded by the process that made it, and by the one that opened it.
// Covers: IPC-14, XPROC-02.
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "rules/xproc_objects.h"

namespace understudy_test::xproc {
namespace {

US_PEER(XprocOrderSide) { serve_event(channel); }

enum class Recorder : uint8_t { kCreator, kOpener };

class XprocOrder : public testing::TestWithParam<Recorder> {
 protected:
  void SetUp() override { ASSERT_EQ(opener_.open(creator_.create()), ACL_SUCCESS); }

  EventSide& recorder() { return GetParam() == Recorder::kCreator ? creator_ : opener_; }
  EventSide& waiter() { return GetParam() == Recorder::kCreator ? opener_ : creator_; }

  // The recorder's stream does not get to the record before it is let go.
  void wait_for_a_record_behind_a_hold() {
    recorder().hold();
    recorder().record();
    waiter().wait();
  }

 private:
  EventSide creator_{XprocOrderSide};
  EventSide opener_{XprocOrderSide};
};
INSTANTIATE_TEST_SUITE_P(, XprocOrder, testing::Values(Recorder::kCreator, Recorder::kOpener),
                         [](const testing::TestParamInfo<Recorder>& parameter) {
                           return std::string(parameter.param == Recorder::kCreator
                                                  ? "recorded_by_the_creator"
                                                  : "recorded_by_the_opener");
                         });

TEST_P(XprocOrder, XPROC_02_AStreamWaitsForTheStreamOfAnotherProcess) {
  wait_for_a_record_behind_a_hold();
  EXPECT_TRUE(waiter().is_held());
  recorder().let_go();
  EXPECT_EQ(waiter().drain(), ACL_SUCCESS);
  EXPECT_EQ(recorder().drain(), ACL_SUCCESS);
}

TEST_P(XprocOrder, XPROC_02_StatusIsThatOfTheCapturedTasks) {
  recorder().hold();
  recorder().record();
  EXPECT_FALSE(waiter().is_complete());
  EXPECT_FALSE(recorder().is_complete());
  recorder().let_go();
  EXPECT_EQ(recorder().drain(), ACL_SUCCESS);
  EXPECT_TRUE(recorder().is_complete());
  EXPECT_TRUE(waiter().is_complete());
}

TEST_P(XprocOrder, XPROC_02_SynchronizeWaitsForTheOtherProcess) {
  recorder().hold();
  recorder().record();
  EXPECT_EQ(waiter().synchronize(5), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
  EXPECT_EQ(recorder().synchronize(5), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
  // The waiter stands in the call while the other process lets go.
  waiter().peer().send(StepRequest{.step = Step::kSynchronize});
  recorder().let_go();
  EXPECT_EQ(waiter().peer().receive<StepAnswer>().code, ACL_SUCCESS);
  EXPECT_EQ(recorder().synchronize(), ACL_SUCCESS);
}

TEST_P(XprocOrder, XPROC_02_NeverRecordedItHoldsNobody) {
  EXPECT_TRUE(waiter().is_complete());
  waiter().wait();
  EXPECT_EQ(waiter().drain(), ACL_SUCCESS);
  EXPECT_EQ(waiter().synchronize(), ACL_SUCCESS);
}

TEST_P(XprocOrder, XPROC_02_RecordedAgainAndAgain) {
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE(round);
    recorder().hold();
    recorder().record();
    EXPECT_FALSE(waiter().is_complete());
    waiter().wait();
    EXPECT_TRUE(waiter().is_held());
    recorder().let_go();
    EXPECT_EQ(waiter().drain(), ACL_SUCCESS);
    EXPECT_TRUE(waiter().is_complete());
  }
}

TEST_P(XprocOrder, XPROC_02_ManyRecordsWithoutAPause) {
  for (int i = 0; i < 500; ++i) {
    recorder().record();
    waiter().wait();
  }
  EXPECT_EQ(waiter().drain(), ACL_SUCCESS);
  EXPECT_EQ(waiter().synchronize(), ACL_SUCCESS);
}

TEST_P(XprocOrder, XPROC_02_ASecondRecordReplacesTheFirst) {
  recorder().record();
  EXPECT_EQ(recorder().drain(), ACL_SUCCESS);
  EXPECT_TRUE(waiter().is_complete());
  waiter().wait();
  EXPECT_EQ(waiter().drain(), ACL_SUCCESS);
  recorder().hold();
  recorder().record();
  EXPECT_FALSE(waiter().is_complete());
  waiter().wait();
  EXPECT_TRUE(waiter().is_held());
  recorder().let_go();
  EXPECT_EQ(waiter().drain(), ACL_SUCCESS);
}

// A wait is for the record before it, not for those that come later.
TEST_P(XprocOrder, XPROC_02_AWaitKeepsToItsRecord) {
  recorder().record();
  EXPECT_EQ(recorder().drain(), ACL_SUCCESS);
  waiter().hold();
  waiter().wait();
  recorder().hold();
  recorder().record();
  waiter().let_go();
  EXPECT_EQ(waiter().drain(), ACL_SUCCESS) << "held by a record that came after the wait";
  EXPECT_FALSE(waiter().is_complete());
  recorder().let_go();
}

TEST_P(XprocOrder, XPROC_02_BothProcessesRecordInTurn) {
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE(round);
    EventSide& first = round % 2 == 0 ? recorder() : waiter();
    EventSide& second = round % 2 == 0 ? waiter() : recorder();
    first.hold();
    first.record();
    EXPECT_FALSE(second.is_complete());
    second.wait();
    EXPECT_TRUE(second.is_held());
    first.let_go();
    EXPECT_EQ(second.drain(), ACL_SUCCESS);
  }
}

TEST_P(XprocOrder, XPROC_02_DestroyNeverWaitsAndPendingWaitsComplete) {
  wait_for_a_record_behind_a_hold();
  EXPECT_EQ(recorder().destroy(), ACL_SUCCESS);
  EXPECT_TRUE(waiter().is_held());
  recorder().let_go();
  EXPECT_EQ(waiter().drain(), ACL_SUCCESS);
  EXPECT_EQ(waiter().destroy(), ACL_SUCCESS);
}

TEST_P(XprocOrder, XPROC_02_TheWaiterMayDestroyItWhileItWaits) {
  wait_for_a_record_behind_a_hold();
  EXPECT_EQ(waiter().destroy(), ACL_SUCCESS);
  EXPECT_TRUE(waiter().is_held());
  recorder().let_go();
  EXPECT_EQ(waiter().drain(), ACL_SUCCESS);
  EXPECT_EQ(recorder().synchronize(), ACL_SUCCESS);
}

// Success or a code, but an end: a dead process reaches no record.
TEST_P(XprocOrder, XPROC_02_NobodyWaitsForADeadProcess) {
  wait_for_a_record_behind_a_hold();
  EXPECT_TRUE(waiter().is_held());
  recorder().peer().kill();
  EXPECT_NE(waiter().drain(), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  EXPECT_NE(waiter().synchronize(), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
  EXPECT_EQ(waiter().destroy(), ACL_SUCCESS);
}

TEST_P(XprocOrder, XPROC_02_ACallThatWaitsForADeadProcessReturns) {
  recorder().hold();
  recorder().record();
  waiter().peer().send(StepRequest{.step = Step::kSynchronize});
  recorder().peer().kill();
  EXPECT_NE(waiter().peer().receive<StepAnswer>().code, ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
}

TEST_P(XprocOrder, XPROC_02_TheDeathOfAWaiterChangesNothing) {
  wait_for_a_record_behind_a_hold();
  EXPECT_TRUE(waiter().is_held());
  waiter().peer().kill();
  EXPECT_FALSE(recorder().is_complete());
  recorder().let_go();
  EXPECT_EQ(recorder().synchronize(), ACL_SUCCESS);
  EXPECT_TRUE(recorder().is_complete());
}

TEST(XprocEvent, XPROC_02_TheCreatorRecordsOnAfterTheDeathOfAnOpener) {
  EventSide creator(XprocOrderSide);
  const aclrtIpcEventHandle handle = creator.create();
  EventSide dead(XprocOrderSide);
  ASSERT_EQ(dead.open(handle), ACL_SUCCESS);
  dead.hold();
  dead.record();
  EXPECT_FALSE(creator.is_complete());
  dead.peer().kill();

  EventSide next(XprocOrderSide);
  ASSERT_EQ(next.open(handle), ACL_SUCCESS);
  creator.hold();
  creator.record();
  next.wait();
  EXPECT_TRUE(next.is_held());
  creator.let_go();
  EXPECT_EQ(next.drain(), ACL_SUCCESS);
  EXPECT_TRUE(creator.is_complete());
}

TEST(XprocEvent, XPROC_02_ManyProcessesWaitForOne) {
  EventSide creator(XprocOrderSide);
  const aclrtIpcEventHandle handle = creator.create();
  std::deque<EventSide> openers;
  for (int i = 0; i < 4; ++i) {
    openers.emplace_back(XprocOrderSide);
    ASSERT_EQ(openers.back().open(handle), ACL_SUCCESS);
  }
  creator.hold();
  creator.record();
  for (EventSide& opener : openers) opener.wait();
  for (EventSide& opener : openers) EXPECT_TRUE(opener.is_held());
  creator.let_go();
  for (EventSide& opener : openers) EXPECT_EQ(opener.drain(), ACL_SUCCESS);
}

using XprocEventMemory = HostMemoryTest;

// What it is for: the bytes of one process are there when the stream of the other goes on.
TEST_F(XprocEventMemory, XPROC_02_IPC_14_SharedBytesAreThereWhenTheWaitEnds) {
  EventSide other(XprocOrderSide);
  aclrtEvent event = nullptr;
  ASSERT_SUCCESS(aclrtIpcOpenEventHandle(other.create(), &event));
  const ipc::ExportedBlock shared(kMiB);
  const DeviceBlock seen(kMiB);
  const TestStream stream;
  shared.fill(1);
  other.hold();
  EXPECT_EQ(other.ask({.step = Step::kSetShared, .key = shared.key()}).code, ACL_SUCCESS);
  other.record();
  EXPECT_SUCCESS(aclrtStreamWaitEvent(stream.get(), event));
  EXPECT_SUCCESS(aclrtMemcpyAsync(seen.data(), kMiB, shared.data(), kMiB,
                                  ACL_MEMCPY_DEVICE_TO_DEVICE, stream.get()));
  expect_held(stream.get());
  EXPECT_TRUE(shared.has(1));
  other.let_go();
  EXPECT_SUCCESS(finish(stream.get()));
  EXPECT_TRUE(copy_out(seen.data(), kMiB) == std::vector<uint8_t>(kMiB, 0x5A));
  EXPECT_SUCCESS(aclrtDestroyEvent(event));
  other.peer().finish();
}

}  // namespace
}  // namespace understudy_test::xproc
