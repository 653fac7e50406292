// SPDX-License-Identifier: Apache-2.0
//
// The library's threads sleep, wake up, come and go, and no stream is forgotten meanwhile. Nobody
// helps them here: a thread that synchronises could do the work itself.
#include <atomic>
#include <cstdint>

#include "stress/small_tasks.h"
#include "stress/stream_fleet.h"
#include "stress/threads.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

using SleepingWorkers = DeviceTest;

const uint64_t kNaps = kSanitized ? 1'500 : 10'000;

// Some work of the program's own; afterwards workers may sleep, or be about to.
void work_for_a_while(uint64_t round) {
  static std::atomic<uint64_t> sink{0};
  for (uint64_t i = 0; i < 400 * (round % 200); ++i) sink.store(i, std::memory_order_relaxed);
}

TEST_F(SleepingWorkers, TheyWakeUpForASingleTask) {
  const StreamFleet streams(3);
  const DeviceWords words(1);
  uint64_t count = 0;
  for (uint64_t round = 1; round <= kNaps; ++round) {
    work_for_a_while(round);
    const aclrtStream stream = streams[round % 3];
    if (round % 2 == 0) {
      queue_count(stream, &count);
    } else {
      queue_write(stream, words.at(0), round);
    }
    ASSERT_TRUE(completes_unaided(stream)) << "round " << round;
    EXPECT_EQ(count, round / 2);
  }
}

// Two streams that wait for each other in turn, each time after a while.
TEST_F(SleepingWorkers, TheyWakeUpForAStreamThatWaited) {
  const StreamFleet streams(2);
  const TestEvent event(EventFamily::kClassic);
  uint64_t count = 0;
  for (uint64_t round = 1; round <= kNaps; ++round) {
    const aclrtStream waiting = streams[round % 2];
    EXPECT_SUCCESS(aclrtResetEvent(event.get(), waiting));
    ASSERT_TRUE(completes_unaided(waiting)) << "round " << round;
    EXPECT_SUCCESS(aclrtStreamWaitEvent(waiting, event.get()));
    queue_count(waiting, &count);
    work_for_a_while(round);
    EXPECT_EQ(stream_status(waiting), ACL_STREAM_STATUS_NOT_READY);
    EXPECT_SUCCESS(aclrtRecordEvent(event.get(), streams[1 - round % 2]));
    ASSERT_TRUE(completes_unaided(waiting)) << "round " << round;
    EXPECT_EQ(count, round);
  }
}

// Nobody tells a worker that the host wrote to memory: it has to look by itself.
TEST_F(SleepingWorkers, TheyLookAtMemoryThatTheHostWrites) {
  const StreamFleet streams(4);
  const DeviceWords words(4);
  for (uint64_t round = 1; round <= kNaps / 4; ++round) {
    for (size_t i = 0; i < streams.size(); ++i) {
      EXPECT_SUCCESS(aclrtValueWait(words.at(i), round, ACL_STREAM_WAIT_VALUE_GEQ, streams[i]));
    }
    work_for_a_while(round);
    for (size_t i = 0; i < streams.size(); ++i) words.set(i, round);
    for (size_t i = 0; i < streams.size(); ++i) {
      ASSERT_TRUE(completes_unaided(streams[i])) << "round " << round;
    }
  }
}

// ---- Workers come and go ----

// Host functions that return when all of them are there: each takes a worker of its own.
class Meeting {
 public:
  explicit Meeting(int guests) : line_(guests) {}
  void invite(aclrtStream stream) { EXPECT_SUCCESS(aclrtLaunchHostFunc(stream, attend, this)); }

 private:
  static void attend(void* self) { static_cast<Meeting*>(self)->line_.wait(); }
  StartLine line_;
};

TEST_F(SleepingWorkers, HostFunctionsThatMeetGetAWorkerEach) {
  constexpr int kGuests = 12;
  const StreamFleet guests(kGuests);
  const StreamFleet others(2);
  const DeviceWords words(1);
  Meeting meeting(kGuests);
  for (uint64_t round = 1; round <= kNaps / 16; ++round) {
    for (size_t i = 0; i < kGuests; ++i) meeting.invite(guests[i]);
    for (const size_t i : {0U, 1U}) {
      EXPECT_SUCCESS(aclrtValueWait(words.at(0), round, ACL_STREAM_WAIT_VALUE_EQ, others[i]));
    }
    work_for_a_while(round);
    words.set(0, round);
    for (const size_t i : {0U, 1U}) ASSERT_TRUE(completes_unaided(others[i])) << "round " << round;
    for (size_t i = 0; i < kGuests; ++i) ASSERT_TRUE(completes_unaided(guests[i]));
  }
}

// Lets the calling thread sleep in the library: it waits in vain for a stream that is held.
class Bed {
 public:
  Bed() { EXPECT_SUCCESS(aclrtStreamWaitEvent(stream_.get(), never_.get())); }
  ~Bed() { EXPECT_SUCCESS(aclrtStreamAbort(stream_.get())); }
  void rest() const {
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream_.get(), 1),
              ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  }

 private:
  TestStream stream_;
  TestEvent never_{EventFamily::kClassic};
};

// Two workers sleep, and two others leave host functions together; then there are too many. The
// last task is one that somebody has to look after: if all who are awake end, nobody does.
TEST_F(SleepingWorkers, WorkersThatEndLeaveNoStreamBehind) {
  const StreamFleet late(2);
  const StreamFleet early(2);
  const DeviceWords words(1);
  const Bed bed;
  Meeting early_meeting(2);
  Meeting late_meeting(3);
  const TestStream third;
  for (uint64_t round = 1; round <= kNaps / 40; ++round) {
    for (const size_t i : {0U, 1U}) late_meeting.invite(late[i]);
    EXPECT_SUCCESS(aclrtValueWait(words.at(0), round, ACL_STREAM_WAIT_VALUE_GEQ, late[0]));
    for (const size_t i : {0U, 1U}) early_meeting.invite(early[i]);
    for (const size_t i : {0U, 1U}) ASSERT_TRUE(completes_unaided(early[i]));
    bed.rest();
    late_meeting.invite(third.get());
    bed.rest();
    words.set(0, round);
    ASSERT_TRUE(completes_unaided(late[0])) << "round " << round;
    ASSERT_TRUE(completes_unaided(late[1])) << "round " << round;
  }
}

}  // namespace
}  // namespace understudy_test
