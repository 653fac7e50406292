// SPDX-License-Identifier: Apache-2.0
//
// Synchronisations with a time limit while streams are busy or held: they return with the right
// code, drop nothing, and what was queued completes later. How long anything takes is not looked
// at.
#include <atomic>
#include <cstdint>
#include <vector>

#include "rules/host_objects.h"
#include "stress/stream_fleet.h"
#include "stress/threads.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

const int kRounds = kSanitized ? 50 : 300;
constexpr aclError kStreamTimeOver = ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
constexpr aclError kEventTimeOver = ACL_ERROR_RT_EVENT_SYNC_TIMEOUT;

using Timeouts = DeviceTest;

// A word in device memory that holds streams until it is set.
class HoldingWord {
 public:
  HoldingWord() { set(0); }
  void hold(aclrtStream stream, uint64_t until) const {
    EXPECT_SUCCESS(aclrtValueWait(word_.data(), until, ACL_STREAM_WAIT_VALUE_GEQ, stream));
  }
  void set(uint64_t value) const {
    EXPECT_SUCCESS(
        aclrtMemcpy(word_.data(), sizeof value, &value, sizeof value, ACL_MEMCPY_HOST_TO_DEVICE));
  }

 private:
  MallocedMemory word_{sizeof(uint64_t)};
};

// Streams of all priorities that are kept busy with copies and host functions by a thread each,
// while the body runs.
template <typename Body>
void under_load(Body body) {
  constexpr int kLoaders = 2;
  constexpr size_t kBytes = 256 * kKiB;
  std::atomic<bool> ended{false};
  run_on_threads(kLoaders + 1, [&](int me) {
    if (me == 0) {
      body();
      ended = true;
      return;
    }
    const StreamFleet streams(4);
    const MallocedMemory memory(2 * kBytes);
    for (size_t i = 0; !ended; ++i) {
      const aclrtStream stream = streams[i % streams.size()];
      EXPECT_SUCCESS(aclrtMemcpyAsync(memory.data(), kBytes, memory.at(kBytes), kBytes,
                                      ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
      EXPECT_SUCCESS(aclrtLaunchHostFunc(
          stream, [](void*) {}, nullptr));
      if (i % 16 != 15) continue;
      EXPECT_SUCCESS(synchronize_within_limit(stream));
    }
    streams.synchronize_all();
  });
}

void count_up(void* counter) { ++*static_cast<std::atomic<int>*>(counter); }

// A held stream with an event behind some tasks that count.
class HeldStream {
 public:
  HeldStream(const HoldingWord& word, uint64_t until) {
    word.hold(get(), until);
    for (int i = 0; i < kTasks; ++i) {
      EXPECT_SUCCESS(aclrtLaunchHostFunc(get(), count_up, &count_));
    }
    EXPECT_SUCCESS(aclrtRecordEvent(event_.get(), get()));
  }
  aclrtStream get() const { return stream_.get(); }
  aclrtEvent event() const { return event_.get(); }

  void expect_held() const {
    EXPECT_EQ(count_, 0);
    EXPECT_EQ(stream_status(get()), ACL_STREAM_STATUS_NOT_READY);
    EXPECT_EQ(event_status(event()), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  }
  void expect_complete() const {
    EXPECT_EQ(count_, kTasks);
    EXPECT_EQ(stream_status(get()), ACL_STREAM_STATUS_COMPLETE);
    EXPECT_EQ(event_status(event()), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  }

 private:
  static constexpr int kTasks = 20;
  TestStream stream_;
  TestEvent event_;
  std::atomic<int> count_{0};
};

TEST_F(Timeouts, AHeldStreamStaysQueuedUnderLoad) {
  under_load([] {
    const HoldingWord word;
    for (int round = 1; round <= kRounds / 3; ++round) {
      const HeldStream held(word, static_cast<uint64_t>(round));
      EXPECT_FAILS(kStreamTimeOver, aclrtSynchronizeStreamWithTimeout(held.get(), 1));
      EXPECT_FAILS(kEventTimeOver, aclrtSynchronizeEventWithTimeout(held.event(), 1));
      EXPECT_FAILS(kStreamTimeOver, aclrtSynchronizeDeviceWithTimeout(1));
      held.expect_held();
      word.set(static_cast<uint64_t>(round));
      EXPECT_SUCCESS(aclrtSynchronizeEventWithTimeout(held.event(), kHangMilliseconds));
      EXPECT_SUCCESS(synchronize_within_limit(held.get()));
      held.expect_complete();
    }
  });
}

// Many threads wait with different limits for one stream; no one's end disturbs the others.
TEST_F(Timeouts, ThreadsWithDifferentLimitsWaitForOneStream) {
  const HoldingWord word;
  constexpr int kWaiting = 8;
  for (int round = 1; round <= kRounds / 10; ++round) {
    const HeldStream held(word, static_cast<uint64_t>(round));
    std::atomic<int> over{0};
    run_on_threads(kWaiting, [&](int me) {
      if (me % 2 == 0) {
        EXPECT_SUCCESS(synchronize_within_limit(held.get()));
        return;
      }
      EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(held.get(), me), kStreamTimeOver);
      EXPECT_EQ(aclrtSynchronizeEventWithTimeout(held.event(), me), kEventTimeOver);
      // The last one to give up lets the patient ones go.
      if (++over == kWaiting / 2) word.set(static_cast<uint64_t>(round));
    });
    held.expect_complete();
  }
}

// The word is written at about the moment the limit ends.
TEST_F(Timeouts, TheEndOfTheLimitRacesWithCompletion) {
  const HoldingWord word;
  StartLine line(2);
  for (int round = 1; round <= kRounds; ++round) {
    const HeldStream held(word, static_cast<uint64_t>(round));
    run_on_threads(2, [&](int me) {
      line.wait();
      if (me == 0) {
        for (int i = 0; i < 1000 * (round % 40); ++i) (void)stream_status(held.get());
        word.set(static_cast<uint64_t>(round));
        return;
      }
      const aclError stream = aclrtSynchronizeStreamWithTimeout(held.get(), 1);
      EXPECT_TRUE(stream == ACL_SUCCESS || stream == kStreamTimeOver) << stream;
      if (stream == ACL_SUCCESS) held.expect_complete();
      const aclError event = aclrtSynchronizeEventWithTimeout(held.event(), 1);
      EXPECT_TRUE(event == ACL_SUCCESS || event == kEventTimeOver) << event;
    });
    EXPECT_SUCCESS(synchronize_within_limit(held.get()));
    held.expect_complete();
  }
}

// A thread with a limit may meet copies that take longer than that, and must not lose any.
TEST_F(Timeouts, LongCopiesCompleteInTheEnd) {
  constexpr size_t kBytes = 16 * kMiB;
  const TestStream stream;
  const MallocedMemory source(kBytes);
  const MallocedMemory target(kBytes);
  for (int round = 1; round <= kRounds / 30; ++round) {
    EXPECT_SUCCESS(aclrtMemset(source.data(), kBytes, round, kBytes));
    for (int i = 0; i < 8; ++i) {
      EXPECT_SUCCESS(aclrtMemsetAsync(target.data(), kBytes, 0, kBytes, stream.get()));
      EXPECT_SUCCESS(aclrtMemcpyAsync(target.data(), kBytes, source.data(), kBytes,
                                      ACL_MEMCPY_DEVICE_TO_DEVICE, stream.get()));
    }
    EXPECT_TRUE(comes_true([&] {
      const aclError code = aclrtSynchronizeStreamWithTimeout(stream.get(), 1);
      EXPECT_TRUE(code == ACL_SUCCESS || code == kStreamTimeOver) << code;
      return code != kStreamTimeOver;
    }));
    EXPECT_TRUE(copy_out(target.data(), kBytes) ==
                std::vector<uint8_t>(kBytes, static_cast<uint8_t>(round)));
  }
}

// Streams that wait for each other: the limit of one who waits for the last holds, too.
TEST_F(Timeouts, AChainOfStreamsStaysQueued) {
  const HoldingWord word;
  const StreamFleet streams(32);
  const EventFleet events(32);
  for (int round = 1; round <= kRounds / 3; ++round) {
    std::atomic<int> count{0};
    word.hold(streams[0], static_cast<uint64_t>(round));
    for (size_t i = 0; i < streams.size(); ++i) {
      if (i > 0) {
        EXPECT_SUCCESS(aclrtStreamWaitEvent(streams[i], events[i - 1]));
      }
      EXPECT_SUCCESS(aclrtLaunchHostFunc(streams[i], count_up, &count));
      EXPECT_SUCCESS(aclrtRecordEvent(events[i], streams[i]));
    }
    EXPECT_FAILS(kStreamTimeOver, aclrtSynchronizeStreamWithTimeout(streams[31], 1));
    EXPECT_FAILS(kEventTimeOver, aclrtSynchronizeEventWithTimeout(events[31], 1));
    EXPECT_EQ(count, 0);
    word.set(static_cast<uint64_t>(round));
    EXPECT_SUCCESS(synchronize_within_limit(streams[31]));
    EXPECT_EQ(count, 32);
  }
}

}  // namespace
}  // namespace understudy_test
