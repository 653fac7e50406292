// SPDX-License-Identifier: Apache-2.0
//
// A stream that waits for the next record of an event once took a later record for it, and with one
// of its own waited for ever; others went on although the event had been reset.
#include <optional>

#include "rules/async_objects.h"
#include "rules/stream_tasks.h"

namespace understudy_test {
namespace {

// They need the device.
struct Objects {
  TestStream waiting;
  TestStream other;
  TestEvent event{EventFamily::kClassic};
};

class EventNextRecord : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    objects_.emplace();
  }
  void TearDown() override {
    objects_.reset();
    DeviceTest::TearDown();
  }

  aclrtStream waiting() const { return objects_->waiting.get(); }
  aclrtStream other() const { return objects_->other.get(); }
  aclrtEvent event() const { return objects_->event.get(); }

  void record_on(aclrtStream stream) { EXPECT_SUCCESS(aclrtRecordEvent(event(), stream)); }
  void reset_on(aclrtStream stream) { EXPECT_SUCCESS(aclrtResetEvent(event(), stream)); }
  void let_wait() { EXPECT_SUCCESS(aclrtStreamWaitEvent(waiting(), event())); }
  // Records and waits for it: what follows finds the event reached.
  void reach_on(aclrtStream stream) {
    record_on(stream);
    EXPECT_SUCCESS(finish(stream));
  }
  void expect_goes_on() {
    EXPECT_SUCCESS(finish(waiting()));
    EXPECT_SUCCESS(finish(other()));
  }

 private:
  std::optional<Objects> objects_;
};

// ---- Of several records the first counts ----

TEST_F(EventNextRecord, AWaitLookedAtLateGoesOnWithTheFirstRecordNotWithItsOwn) {
  // Busy, so that both records are there when the wait begins.
  Gate gate(waiting());
  gate.wait_until_reached();
  let_wait();
  reach_on(other());
  record_on(waiting());
  gate.open();
  expect_goes_on();
}

TEST_F(EventNextRecord, AWaitThatHasBegunGoesOnWithTheFirstRecordNotWithItsOwn) {
  let_wait();
  expect_held(waiting());
  Gate gate(other());
  record_on(other());
  record_on(waiting());
  expect_held(waiting());
  gate.open();
  expect_goes_on();
}

TEST_F(EventNextRecord, AWaitThatRacesWithBothRecordsGoesOn) {
  constexpr int kRounds = 20'000;
  const TestStream own;
  const TestStream others;
  for (int round = 0; round < kRounds; ++round) {
    // A new one each time: waits for the next record are for events never recorded.
    const TestEvent fresh(EventFamily::kClassic);
    EXPECT_SUCCESS(aclrtStreamWaitEvent(own.get(), fresh.get()));
    EXPECT_SUCCESS(aclrtRecordEvent(fresh.get(), others.get()));
    EXPECT_SUCCESS(aclrtRecordEvent(fresh.get(), own.get()));
    ASSERT_SUCCESS(finish(own.get())) << "round " << round;
  }
  EXPECT_SUCCESS(finish(others.get()));
}

// ---- Resets ----

TEST_F(EventNextRecord, AWaitQueuedBehindAResetHoldsUntilTheNextRecord) {
  TaskCounter behind;
  reach_on(other());
  Gate gate(waiting());
  gate.wait_until_reached();
  reset_on(waiting());  // has not run when the wait is queued
  let_wait();
  behind.queue_on(waiting());
  gate.open();
  expect_held(waiting());
  EXPECT_EQ(behind.runs(), 0);
  record_on(other());
  expect_goes_on();
  EXPECT_EQ(behind.runs(), 1);
}

TEST_F(EventNextRecord, AWaitQueuedWhileTheResetMayRunHoldsToo) {
  constexpr int kRounds = 50;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    reach_on(other());
    reset_on(waiting());
    let_wait();
    expect_held(waiting());
    record_on(other());
    expect_goes_on();
  }
}

TEST_F(EventNextRecord, AResetByAnotherStreamDoesNotEndTheWaitForAPendingRecord) {
  const TestStream resetting;
  Gate held_back(waiting());
  Gate before_the_record(other());
  held_back.wait_until_reached();
  before_the_record.wait_until_reached();
  let_wait();
  record_on(other());
  reset_on(resetting.get());
  EXPECT_SUCCESS(finish(resetting.get()));
  held_back.open();
  expect_held(waiting());
  before_the_record.open();
  expect_goes_on();
}

}  // namespace
}  // namespace understudy_test
