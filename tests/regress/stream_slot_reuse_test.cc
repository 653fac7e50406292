// SPDX-License-Identifier: Apache-2.0
//
// Streams take the places of ones that were destroyed. What went through all places once met the
// new stream of another device or context there: it dropped its tasks, or took its failure.
#include <atomic>
#include <deque>
#include <thread>

#include "rules/async_objects.h"
#include "rules/stream_tasks.h"
#include "stress/stream_fleet.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

using StreamSlotReuse = DeviceTest;

// Aborts the tasks of device 0 all the time until the end of its scope.
class Aborter {
 public:
  ~Aborter() {
    is_over_ = true;
    thread_.join();
  }

  // A host function: returns when an abort that began after its start is over.
  static void let_pass(void* self) {
    const std::atomic<int>& aborts = static_cast<Aborter*>(self)->aborts_;
    const int begun = aborts + 1;
    EXPECT_TRUE(comes_true([&] { return aborts > begun; }));
  }

 private:
  std::atomic<bool> is_over_{false};
  std::atomic<int> aborts_{0};
  std::thread thread_{[this] {
    for (; !is_over_; ++aborts_) EXPECT_SUCCESS(aclrtDeviceTaskAbort(0, 0));
  }};
};

TEST_F(StreamSlotReuse, AbortingADeviceLeavesAnotherDevicesNewStreamsAlone) {
  const int kRounds = kSanitized ? 100 : 600;
  // Many, so that an abort is on its way for long.
  const std::deque<TestStream> others(1500);
  const ContextScope elsewhere(1);
  Aborter aborter;
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    SCOPED_TRACE(round);
    elsewhere.leave();
    { const TestStream freed; }
    elsewhere.enter();
    const TestStream stream;  // in the place of the one that was freed
    TaskCounter counter;
    EXPECT_SUCCESS(aclrtLaunchHostFunc(stream.get(), Aborter::let_pass, &aborter));
    counter.queue_on(stream.get());
    EXPECT_SUCCESS(finish(stream.get()));
    EXPECT_EQ(counter.runs(), 1);
  }
}

TEST_F(StreamSlotReuse, SynchronisingAContextLeavesFailuresToTheNewStreamsOfAnother) {
  const ContextScope other;
  other.leave();
  // One on either side of the held one: the synchronisation comes to one of them after it.
  TestStream freed_before;
  const TestStream held;
  TestStream freed_after;
  FailingTask task;
  Gate gate(held.get());
  WaitingCall synchronize([] { return aclrtSynchronizeDeviceWithTimeout(kLongLimit); });
  EXPECT_TRUE(synchronize.waits());
  freed_before.destroy();
  freed_after.destroy();
  other.enter();
  {
    const std::deque<TestStream> failing(2);
    for (const TestStream& stream : failing) {
      // Tells that the task has failed, and leaves the failure to be told.
      const TestEvent behind;
      task.queue_on(stream.get());
      EXPECT_SUCCESS(aclrtRecordEvent(behind.get(), stream.get()));
      EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(behind.get(), kLongLimit));
    }
    gate.open();
    EXPECT_EQ(synchronize.code(), ACL_SUCCESS) << synchronize.text();
    for (const TestStream& stream : failing) expect_task_failed(stream.get());
  }
  other.leave();
}

}  // namespace
}  // namespace understudy_test
