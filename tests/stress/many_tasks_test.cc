// SPDX-License-Identifier: Apache-2.0
//
// Millions of tiny tasks: none is lost, none runs twice or out of order, and nobody who waits is
// forgotten, however often streams and workers fall asleep and wake up.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <vector>

#include "rules/host_objects.h"
#include "stress/process_status.h"
#include "stress/stream_fleet.h"
#include "stress/threads.h"
#include "support/rule_test.h"

namespace understudy_test {
namespace {

constexpr uint64_t kStreams = 64;
constexpr uint64_t kTasksPerStream = kSanitized ? 2'000 : 160'000;  // ten million in all
constexpr uint64_t kSlots = 512;

using ManyTasks = DeviceTest;

// Words in device memory, all zero.
class DeviceWords {
 public:
  explicit DeviceWords(size_t count) : memory_(count * sizeof(uint64_t)) { clear(); }

  void clear() { EXPECT_SUCCESS(aclrtMemset(memory_.data(), memory_.size(), 0, memory_.size())); }
  void* at(size_t index) const { return memory_.at(index * sizeof(uint64_t)); }
  uint64_t value(size_t index) const { return values(index, 1)[0]; }
  std::vector<uint64_t> values(size_t first, size_t count) const {
    std::vector<uint64_t> words(count);
    const size_t bytes = count * sizeof(uint64_t);
    EXPECT_SUCCESS(aclrtMemcpy(words.data(), bytes, at(first), bytes, ACL_MEMCPY_DEVICE_TO_HOST));
    return words;
  }
  // By the host, without a stream.
  void set(size_t index, uint64_t value) const {
    EXPECT_SUCCESS(
        aclrtMemcpy(at(index), sizeof value, &value, sizeof value, ACL_MEMCPY_HOST_TO_DEVICE));
  }

 private:
  MallocedMemory memory_;
};

void count_up(void* counter) { ++*static_cast<uint64_t*>(counter); }

// Adds one to a counter in page-locked memory: a worker must do it.
void queue_count(aclrtStream stream, uint64_t* counter) {
  EXPECT_SUCCESS(aclrtLaunchHostFunc(stream, count_up, counter));
}

void queue_write(aclrtStream stream, void* word, uint64_t value) {
  EXPECT_SUCCESS(aclrtValueWrite(word, value, 0, stream));
}

// ---- Ten million ----

// What each stream has: its row of words, its event and its counter of host functions.
struct Fleet {
  StreamFleet streams{kStreams};
  EventFleet events{kStreams};
  DeviceWords words{kStreams * kSlots};
  std::vector<uint64_t> counts = std::vector<uint64_t>(kStreams, 0);
};

constexpr uint64_t kTasksPerCount = 1000;
constexpr uint64_t kTasksPerMeeting = 16;

// The n-th task of a stream, from 1: it writes its number to one of the stream's words, or is a
// record, a wait for the stream before, or a host function.
void queue_task(Fleet& fleet, uint64_t stream, uint64_t n) {
  const aclrtStream handle = fleet.streams[stream];
  if (n % kTasksPerCount == 0) return queue_count(handle, &fleet.counts[stream]);
  if (n % kTasksPerMeeting == 5) {
    EXPECT_SUCCESS(aclrtRecordEvent(fleet.events[stream], handle));
  } else if (n % kTasksPerMeeting == 6) {
    const uint64_t other = (stream + kStreams - 1) % kStreams;
    EXPECT_SUCCESS(aclrtStreamWaitEvent(handle, fleet.events[other]));
  } else {
    queue_write(handle, fleet.words.at(stream * kSlots + n % kSlots), n);
  }
}

bool is_write(uint64_t n) {
  return n % kTasksPerCount != 0 && n % kTasksPerMeeting != 5 && n % kTasksPerMeeting != 6;
}

// The words of a stream after all of its tasks.
std::vector<uint64_t> expected_words() {
  std::vector<uint64_t> words(kSlots, 0);
  for (uint64_t n = 1; n <= kTasksPerStream; ++n) {
    if (is_write(n)) words[n % kSlots] = n;
  }
  return words;
}

void expect_all_ran(const Fleet& fleet) {
  const std::vector<uint64_t> expected = expected_words();
  for (uint64_t stream = 0; stream < kStreams; ++stream) {
    EXPECT_TRUE(fleet.words.values(stream * kSlots, kSlots) == expected) << "stream " << stream;
    EXPECT_EQ(fleet.counts[stream], kTasksPerStream / kTasksPerCount) << "stream " << stream;
  }
}

// Each thread serves its share of the streams, a few tasks here and a few there.
void queue_all_tasks(Fleet& fleet, uint64_t thread, uint64_t threads) {
  constexpr uint64_t kVisit = 8;
  for (uint64_t n = 1; n <= kTasksPerStream; n += kVisit) {
    for (uint64_t stream = thread; stream < kStreams; stream += threads) {
      for (uint64_t i = 0; i < kVisit; ++i) queue_task(fleet, stream, n + i);
    }
  }
}

TEST_F(ManyTasks, TenMillionOver64Streams) {
  Fleet fleet;
  queue_all_tasks(fleet, 0, 1);
  fleet.streams.synchronize_all();
  expect_all_ran(fleet);
}

TEST_F(ManyTasks, TenMillionFromTwoThreadsThatNobodyHelps) {
  Fleet fleet;
  run_on_threads(2, [&](int thread) { queue_all_tasks(fleet, static_cast<uint64_t>(thread), 2); });
  for (uint64_t i = 0; i < kStreams; ++i) EXPECT_TRUE(completes_unaided(fleet.streams[i]));
  expect_all_ran(fleet);
}

// ---- Synchronised all the time ----

constexpr uint64_t kRounds = kSanitized ? 3'000 : 400'000;

TEST_F(ManyTasks, ThreadsSynchroniseTheirOwnStreamsAfterEveryTask) {
  constexpr int kThreads = 4;
  const StreamFleet streams(kThreads);
  const DeviceWords words(kThreads);
  run_on_threads(kThreads, [&](int me) {
    const auto index = static_cast<size_t>(me);
    for (uint64_t round = 1; round <= kRounds; ++round) {
      queue_write(streams[index], words.at(index), round);
      EXPECT_SUCCESS(synchronize_within_limit(streams[index]));
      if (round % 16 != 0) continue;
      EXPECT_EQ(words.value(index), round);
    }
  });
}

TEST_F(ManyTasks, ThreadsSynchroniseOneStreamAfterEveryTwoTasks) {
  constexpr int kThreads = 4;
  const TestStream stream;
  const DeviceWords words(2 * kThreads);
  run_on_threads(kThreads, [&](int me) {
    const size_t first = 2 * static_cast<size_t>(me);
    for (uint64_t round = 1; round <= kRounds / 2; ++round) {
      for (const size_t word : {first, first + 1}) queue_write(stream.get(), words.at(word), round);
      EXPECT_SUCCESS(synchronize_within_limit(stream.get()));
      if (round % 16 != 0) continue;
      EXPECT_EQ(words.values(first, 2), std::vector<uint64_t>(2, round));
    }
  });
}

// A ball goes from stream to stream. It is thrown when all of them wait.
TEST_F(ManyTasks, EventsPassThroughAllStreams) {
  const StreamFleet streams(kStreams);
  const EventFleet events(kStreams);
  const TestStream thrower;
  uint64_t count = 0;
  for (uint64_t lap = 1; lap <= kRounds / kStreams; ++lap) {
    const TestEvent start(EventFamily::kClassic);
    EXPECT_SUCCESS(aclrtStreamWaitEvent(streams[0], start.get()));
    for (uint64_t i = 0; i < kStreams; ++i) {
      if (i > 0) {
        EXPECT_SUCCESS(aclrtStreamWaitEvent(streams[i], events[i - 1]));
      }
      queue_count(streams[i], &count);
      EXPECT_SUCCESS(aclrtRecordEvent(events[i], streams[i]));
    }
    EXPECT_SUCCESS(aclrtRecordEvent(start.get(), thrower.get()));
    ASSERT_SUCCESS(synchronize_within_limit(streams[kStreams - 1]));
    EXPECT_EQ(count, lap * kStreams);
  }
}

// ---- Workers fall asleep ----

constexpr uint64_t kNaps = kSanitized ? 1'000 : 24'000;

// Some work of the program's own; afterwards workers may sleep, or be about to.
void work_for_a_while(uint64_t round) {
  static std::atomic<uint64_t> sink{0};
  for (uint64_t i = 0; i < 400 * (round % 200); ++i) sink.store(i, std::memory_order_relaxed);
}

TEST_F(ManyTasks, SleepingWorkersWakeUpForASingleTask) {
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
TEST_F(ManyTasks, SleepingWorkersWakeUpForAStreamThatWaited) {
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
TEST_F(ManyTasks, SleepingWorkersLookAtMemoryThatTheHostWrites) {
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

struct Meeting {
  explicit Meeting(int streams) : line(streams) {}
  static void attend(void* meeting) { static_cast<Meeting*>(meeting)->line.wait(); }
  StartLine line;
};

// Host functions that need each other take a worker each; afterwards these are too many and end,
// while streams begin to wait for memory.
TEST_F(ManyTasks, HostFunctionsThatMeetLeaveEnoughWorkersBehind) {
  constexpr int kGuests = 12;
  const StreamFleet guests(kGuests);
  const StreamFleet others(2);
  const DeviceWords words(1);
  Meeting meeting(kGuests);
  for (uint64_t round = 1; round <= kNaps / 16; ++round) {
    for (int i = 0; i < kGuests; ++i) {
      const aclrtStream guest = guests[static_cast<size_t>(i)];
      EXPECT_SUCCESS(aclrtLaunchHostFunc(guest, Meeting::attend, &meeting));
    }
    for (const size_t i : {0U, 1U}) {
      EXPECT_SUCCESS(aclrtValueWait(words.at(0), round, ACL_STREAM_WAIT_VALUE_EQ, others[i]));
    }
    work_for_a_while(round);
    words.set(0, round);
    for (const size_t i : {0U, 1U}) ASSERT_TRUE(completes_unaided(others[i])) << "round " << round;
    for (size_t i = 0; i < kGuests; ++i) ASSERT_TRUE(completes_unaided(guests[i]));
  }
}

}  // namespace
}  // namespace understudy_test
