// SPDX-License-Identifier: Apache-2.0
//
// Millions of tiny tasks: none is lost, none runs twice or out of order, and nobody who waits is
// forgotten.
#include <cstdint>
#include <vector>

#include "stress/small_tasks.h"
#include "stress/stream_fleet.h"
#include "stress/threads.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

constexpr uint64_t kStreams = 64;
const uint64_t kTasksPerStream = kSanitized ? 4'000 : 160'000;  // ten million in all
constexpr uint64_t kSlots = 512;

using ManyTasks = DeviceTest;

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

const uint64_t kRounds = kSanitized ? 8'000 : 150'000;

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

}  // namespace
}  // namespace understudy_test
