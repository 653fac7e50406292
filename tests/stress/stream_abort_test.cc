// SPDX-License-Identifier: Apache-2.0
//
// Full queues come to a sudden end: by abort, forced destruction, device abort, reset, and calls
// that race with all of these. Nothing hangs, nothing dropped runs, nothing stays taken.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <thread>
#include <vector>

#include "rules/host_objects.h"
#include "stress/full_queue.h"
#include "stress/stream_fleet.h"
#include "stress/threads.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

const int kRepeats = kSanitized ? 2 : 10;
const int kRaces = kSanitized ? 4'000 : 150'000;

// Expects that streams, events and memory of the device end as they began.
class StreamAbort : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    streams_before_ = stream_figures();
    memory_before_ = memory_figures();
  }
  void TearDown() override {
    EXPECT_EQ(stream_figures(), streams_before_);
    EXPECT_EQ(memory_figures(), memory_before_);
    DeviceTest::TearDown();
  }

  StreamFigures streams_before_;
  MemoryFigures memory_before_;
};

// Threads that synchronise a stream until something interrupts them, and what they were told.
class Synchronizers {
 public:
  Synchronizers(aclrtStream stream, size_t count) : codes_(count, ACL_SUCCESS) {
    aclrtContext context = nullptr;
    EXPECT_SUCCESS(aclrtGetCurrentContext(&context));
    for (aclError& code : codes_) {
      threads_.emplace_back([this, context, stream, &code] {
        EXPECT_SUCCESS(aclrtSetCurrentContext(context));
        ++started_;
        code = synchronize_within_limit(stream);
      });
    }
    EXPECT_TRUE(comes_true([&] { return started_ == static_cast<int>(codes_.size()); }));
  }

  // A thread that came after the end found the stream empty, or gone.
  void expect_codes(std::initializer_list<aclError> allowed) {
    for (std::thread& thread : threads_) thread.join();
    for (const aclError code : codes_) {
      EXPECT_NE(std::find(allowed.begin(), allowed.end(), code), allowed.end()) << code;
    }
  }

 private:
  std::vector<aclError> codes_;
  std::atomic<int> started_{0};
  std::vector<std::thread> threads_;
};

// Both ways to hold a queue.
constexpr Holder kHolders[] = {Holder::kValue, Holder::kEvent};

TEST_F(StreamAbort, AnAbortedStreamIsEmptyAndUsable) {
  for (const Holder holder : kHolders) {
    const TestStream stream;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      FullQueue queue(stream.get(), holder);
      Synchronizers waiting(stream.get(), 3);
      EXPECT_SUCCESS(aclrtStreamAbort(stream.get()));
      waiting.expect_codes({ACL_SUCCESS, ACL_ERROR_RT_STREAM_ABORT});
      EXPECT_EQ(stream_status(stream.get()), ACL_STREAM_STATUS_COMPLETE);
      EXPECT_EQ(queue.calls(), 0);
      queue.expect_untouched();
      queue.expect_next_task_runs();
    }
  }
}

TEST_F(StreamAbort, AForciblyDestroyedStreamLeavesNothing) {
  for (const Holder holder : kHolders) {
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      TestStream stream;
      FullQueue queue(stream.get(), holder);
      Synchronizers waiting(stream.get(), 3);
      EXPECT_SUCCESS(aclrtDestroyStreamForce(stream.get()));
      waiting.expect_codes({ACL_SUCCESS, ACL_ERROR_RT_STREAM_ABORT, ACL_ERROR_RT_INVALID_HANDLE});
      EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtSynchronizeStream(stream.release()));
      EXPECT_EQ(queue.calls(), 0);
      queue.expect_untouched();
    }
  }
}

TEST_F(StreamAbort, ADeviceAbortEmptiesAllStreams) {
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const StreamFleet streams(4);
    std::deque<FullQueue> queues;
    for (size_t i = 0; i < streams.size(); ++i) {
      queues.emplace_back(streams[i], kHolders[i % 2], kFullQueue / 4);
    }
    Synchronizers waiting(streams[0], 3);
    EXPECT_SUCCESS(aclrtDeviceTaskAbort(0, 0));
    waiting.expect_codes({ACL_SUCCESS, ACL_ERROR_RT_DEVICE_TASK_ABORT});
    for (FullQueue& queue : queues) {
      EXPECT_EQ(queue.calls(), 0);
      queue.expect_untouched();
      queue.expect_next_task_runs();
    }
  }
}

// Streams that wait for each other in a long chain, all of them full.
TEST_F(StreamAbort, AChainOfFullStreamsEndsFromEitherSide) {
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    StreamFleet streams(16);
    EventFleet events(16);
    std::deque<FullQueue> queues;
    for (size_t i = 0; i < streams.size(); ++i) {
      if (i > 0) {
        EXPECT_SUCCESS(aclrtStreamWaitEvent(streams[i], events[i - 1]));
      }
      queues.emplace_back(streams[i], i == 0 ? Holder::kValue : Holder::kNobody, kFullQueue / 16);
      EXPECT_SUCCESS(aclrtRecordEvent(events[i], streams[i]));
    }
    // The one in the middle is dropped and does not release those behind it early: they go on
    // because its record is past.
    EXPECT_SUCCESS(aclrtStreamAbort(streams[8]));
    EXPECT_SUCCESS(synchronize_within_limit(streams[15]));
    EXPECT_EQ(stream_status(streams[7]), ACL_STREAM_STATUS_NOT_READY);
    EXPECT_EQ(queues[7].calls(), 0);
    EXPECT_EQ(queues[9].calls(), queues[9].queued_calls());
    EXPECT_SUCCESS(aclrtStreamAbort(streams[0]));
    streams.synchronize_all();
    EXPECT_EQ(queues[7].calls(), queues[7].queued_calls());
  }
}

// ---- Races ----

// One stream that comes and goes while others use it by its handle of the moment.
class SharedStream {
 public:
  SharedStream() { create(); }
  ~SharedStream() { EXPECT_SUCCESS(aclrtDestroyStreamForce(stream_)); }

  aclrtStream get() const { return stream_; }
  void replace(aclError (*destroy)(aclrtStream)) {
    const aclrtStream old = stream_;
    create();
    EXPECT_SUCCESS(destroy(old));
  }

 private:
  void create() {
    aclrtStream stream = nullptr;
    EXPECT_SUCCESS(aclrtCreateStream(&stream));
    stream_ = stream;
  }
  std::atomic<aclrtStream> stream_{nullptr};
};

// Runs the bodies on a thread each, over and over, until each has had its rounds.
void race(const std::vector<std::function<void()>>& bodies) {
  const int threads = static_cast<int>(bodies.size());
  std::atomic<int> ready{0};
  run_on_threads(threads, [&](int me) {
    for (int round = 1; ready < threads; ++round) {
      bodies[static_cast<size_t>(me)]();
      if (round == kRaces) ++ready;
    }
  });
}

void expect_one_of(std::initializer_list<aclError> allowed, aclError code, const char* call) {
  EXPECT_NE(std::find(allowed.begin(), allowed.end(), code), allowed.end())
      << call << ": " << code << ", " << recent_error();
}
#define EXPECT_ANSWER(call, ...) expect_one_of({ACL_SUCCESS, __VA_ARGS__}, call, #call)

constexpr aclError kGone = ACL_ERROR_RT_INVALID_HANDLE;
constexpr aclError kTimeOver = ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;

// What racing threads queue, and the memory for it.
class Work {
 public:
  enum class Holds : bool { kNo, kYes };

  // A few tasks of each kind; with kYes the last one waits until it is dropped.
  void queue(aclrtStream stream, Holds holds) {
    EXPECT_ANSWER(aclrtMemsetAsync(memory_.data(), 64, 1, 64, stream), kGone);
    EXPECT_ANSWER(aclrtRecordEvent(event_.get(), stream), kGone);
    EXPECT_ANSWER(aclrtLaunchHostFunc(stream, count_call, this), kGone);
    EXPECT_ANSWER(
        aclrtMemcpyAsync(memory_.data(), 64, bytes_, 64, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE, stream),
        kGone);
    if (holds == Holds::kNo) return;
    EXPECT_ANSWER(aclrtValueWait(memory_.at(64), 1, ACL_STREAM_WAIT_VALUE_EQ, stream), kGone);
  }
  aclrtEvent event() const { return event_.get(); }

 private:
  static void count_call(void* self) { ++static_cast<Work*>(self)->calls_; }

  const uint8_t bytes_[64] = {};
  const MallocedMemory memory_{128};
  TestEvent event_;
  std::atomic<int> calls_{0};
};

TEST_F(StreamAbort, AbortSubmitSynchroniseAndForcedDestructionRace) {
  Work work;
  SharedStream stream;
  race({[&] { stream.replace(aclrtDestroyStreamForce); },
        [&] { work.queue(stream.get(), Work::Holds::kYes); },
        [&] { EXPECT_ANSWER(aclrtStreamAbort(stream.get()), kGone); },
        [&] {
          EXPECT_ANSWER(aclrtSynchronizeStreamWithTimeout(stream.get(), 2), kGone, kTimeOver,
                        ACL_ERROR_RT_STREAM_ABORT);
        }});
}

TEST_F(StreamAbort, AbortSubmitSynchroniseAndPatientDestructionRace) {
  Work work;
  SharedStream stream;
  race({[&] { stream.replace(aclrtDestroyStream); },
        [&] { work.queue(stream.get(), Work::Holds::kNo); },
        [&] { EXPECT_ANSWER(aclrtStreamAbort(stream.get()), kGone); },
        [&] {
          EXPECT_ANSWER(synchronize_within_limit(stream.get()), kGone, ACL_ERROR_RT_STREAM_ABORT);
        }});
}

TEST_F(StreamAbort, DeviceAbortSubmitSynchroniseAndDestructionRace) {
  Work work;
  SharedStream stream;
  race({[&] { EXPECT_SUCCESS(aclrtDeviceTaskAbort(0, 0)); },
        [&] { work.queue(stream.get(), Work::Holds::kYes); },
        [&] { stream.replace(aclrtDestroyStreamForce); },
        [&] {
          EXPECT_ANSWER(aclrtSynchronizeDeviceWithTimeout(2), kTimeOver,
                        ACL_ERROR_RT_DEVICE_TASK_ABORT, ACL_ERROR_RT_STREAM_ABORT);
          EXPECT_ANSWER(aclrtSynchronizeEventWithTimeout(work.event(), 2),
                        ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
        }});
}

// Two threads end the same stream: one of them does it.
TEST_F(StreamAbort, AStreamIsDestroyedOnce) {
  StartLine line(3);
  Work work;
  aclrtStream stream = nullptr;
  std::atomic<int> destroyed{0};
  run_on_threads(3, [&](int me) {
    for (int round = 0; round < kRaces / 20; ++round) {
      if (me == 0) {
        EXPECT_SUCCESS(aclrtCreateStream(&stream));
        work.queue(stream, Work::Holds::kNo);
        destroyed = 0;
      }
      line.wait();
      const aclError code = me == 1 ? aclrtDestroyStreamForce(stream) : aclrtDestroyStream(stream);
      expect_one_of({ACL_SUCCESS, kGone}, code, "aclrtDestroyStream");
      if (code == ACL_SUCCESS) ++destroyed;
      line.wait();
      if (me != 0) continue;
      EXPECT_EQ(destroyed, 1);
    }
  });
}

}  // namespace
}  // namespace understudy_test
