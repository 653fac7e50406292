// SPDX-License-Identifier: Apache-2.0
//
// A device is reset, the library finalised, or the process ended or killed while queues are full
// and threads submit and wait. Nothing hangs or crashes, and nothing stays taken.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <ostream>
#include <thread>
#include <vector>

#include "stress/full_queue.h"
#include "stress/stream_fleet.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

const int kRepeats = kSanitized ? 3 : 25;
constexpr int kQueues = 4;

// What of device 0 can be taken.
struct Figures {
  StreamFigures streams;
  size_t free_memory = 0;
  friend bool operator==(const Figures&, const Figures&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Figures& figures) {
    return out << figures.streams << ", " << figures.free_memory << " bytes";
  }
};

Figures figures() { return {stream_figures(), free_bytes()}; }

// Full queues on streams that nobody destroys.
class FullQueues {
 public:
  FullQueues() {
    for (int i = 0; i < kQueues; ++i) {
      aclrtStream stream = nullptr;
      EXPECT_SUCCESS(aclrtCreateStream(&stream));
      streams_.push_back(stream);
      queues_.emplace_back(stream, i % 2 == 0 ? Holder::kValue : Holder::kEvent,
                           kFullQueue / kQueues);
    }
  }

  aclrtStream first() const { return streams_[0]; }
  void expect_ended_with_device() {
    for (FullQueue& queue : queues_) {
      EXPECT_EQ(queue.calls(), 0);
      queue.forget_device_memory();
    }
    for (const aclrtStream stream : streams_) {
      EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtSynchronizeStream(stream));
      EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtDestroyStreamForce(stream));
    }
  }

 private:
  std::vector<aclrtStream> streams_;
  std::deque<FullQueue> queues_;
};

// A thread that waits for a stream in the caller's context.
class WaitingThread {
 public:
  explicit WaitingThread(aclrtStream stream) {
    aclrtContext context = nullptr;
    EXPECT_SUCCESS(aclrtGetCurrentContext(&context));
    thread_ = std::thread([this, context, stream] {
      EXPECT_SUCCESS(aclrtSetCurrentContext(context));
      started_ = true;
      code_ = synchronize_within_limit(stream);
    });
    EXPECT_TRUE(comes_true([&] { return started_.load(); }));
  }
  // It may have come too late to wait.
  void expect_interrupted() {
    thread_.join();
    EXPECT_TRUE(code_ == ACL_ERROR_RT_STREAM_ABORT || code_ == ACL_ERROR_RT_INVALID_HANDLE ||
                code_ == ACL_ERROR_RT_CONTEXT_NULL)
        << code_;
  }

 private:
  std::atomic<bool> started_{false};
  aclError code_ = ACL_SUCCESS;
  std::thread thread_;
};

// ---- In this process ----

template <typename End>
void end_full_queues(End end) {
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    ASSERT_SUCCESS(aclrtSetDevice(0));
    const Figures before = figures();
    FullQueues queues;
    WaitingThread waiting(queues.first());
    end();
    waiting.expect_interrupted();
    ASSERT_SUCCESS(aclrtSetDevice(0));
    queues.expect_ended_with_device();
    EXPECT_EQ(figures(), before);
    EXPECT_SUCCESS(aclrtResetDeviceForce(0));
  }
}

TEST(StreamEnd, AForcedResetDropsFullQueues) {
  end_full_queues([] { EXPECT_SUCCESS(aclrtResetDeviceForce(0)); });
}

TEST(StreamEnd, FinalizeDropsFullQueues) {
  US_FRESH_PROCESS();
  end_full_queues([] {
    EXPECT_SUCCESS(aclInit(nullptr));
    EXPECT_SUCCESS(aclFinalize());
  });
}

bool is_expected_of_a_device_that_ends(aclError code) {
  return code == ACL_SUCCESS || code == ACL_ERROR_RT_INVALID_HANDLE ||
         code == ACL_ERROR_RT_CONTEXT_NULL || code == ACL_ERROR_RT_STREAM_CONTEXT ||
         code == ACL_ERROR_RT_STREAM_ABORT || code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT ||
         code == ACL_ERROR_RT_PARAM_INVALID || code == ACL_ERROR_RT_SYS_DMA;
}
#define EXPECT_ANSWER(call)                                                            \
  do {                                                                                 \
    const aclError code = (call);                                                      \
    EXPECT_TRUE(is_expected_of_a_device_that_ends(code)) << #call << " gave " << code; \
  } while (false)

// One round of a thread: a stream with work that the reset may end at any moment.
void use_streams(int round) {
  EXPECT_ANSWER(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  aclrtEvent event = nullptr;
  void* memory = nullptr;
  EXPECT_ANSWER(aclrtCreateStream(&stream));
  EXPECT_ANSWER(aclrtCreateEvent(&event));
  EXPECT_ANSWER(aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
  if (stream == nullptr || event == nullptr || memory == nullptr) return;
  for (int i = 0; i < 8; ++i) {
    EXPECT_ANSWER(aclrtMemsetAsync(memory, 4096, i, 4096, stream));
    EXPECT_ANSWER(aclrtLaunchHostFunc(
        stream, [](void*) {}, nullptr));
    EXPECT_ANSWER(aclrtRecordEvent(event, stream));
    EXPECT_ANSWER(aclrtStreamWaitEvent(nullptr, event));
  }
  if (round % 2 == 0) {
    EXPECT_ANSWER(aclrtValueWait(memory, 0, ACL_STREAM_WAIT_VALUE_EQ, stream));
  }
  EXPECT_ANSWER(aclrtSynchronizeStreamWithTimeout(stream, 1));
  if (round % 3 == 0) EXPECT_ANSWER(aclrtDestroyStreamForce(stream));
}

TEST(StreamEnd, ResetsRaceWithThreadsThatUseStreams) {
  ASSERT_SUCCESS(aclrtSetDevice(0));
  const Figures before = figures();
  std::atomic<bool> ended{false};
  std::atomic<int> rounds{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      while (!ended) use_streams(rounds++);
    });
  }
  for (int reset = 0; reset < 100 * kRepeats; ++reset) {
    const int seen = rounds;
    const aclError code = aclrtResetDeviceForce(0);
    EXPECT_TRUE(code == ACL_SUCCESS || code == ACL_ERROR_RT_CONTEXT_RELEASE_ERROR) << code;
    EXPECT_TRUE(comes_true([&] { return rounds > seen + 2; }));
  }
  ended = true;
  for (std::thread& thread : threads) thread.join();
  (void)aclrtResetDeviceForce(0);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(figures(), before);
  EXPECT_SUCCESS(aclrtResetDeviceForce(0));
}

// ---- In processes that end ----

// Forks; the caller must not have used the library yet. The child runs the body and leaves.
class Child {
 public:
  template <typename Body>
  explicit Child(Body body) {
    EXPECT_EQ(pipe(ends_), 0);
    fflush(nullptr);
    process_ = fork();
    if (process_ != 0) return;
    body(*this);
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  }

  // The child tells its figures.
  void tell(const Figures& told) { EXPECT_GT(write(ends_[1], &told, sizeof told), 0); }
  Figures heard() {
    Figures told;
    EXPECT_GT(read(ends_[0], &told, sizeof told), 0);
    return told;
  }
  void kill_now() { EXPECT_EQ(kill(process_, SIGKILL), 0); }
  // How it ended, as waitpid says.
  int wait_status() {
    int status = 0;
    const bool ended = comes_true([&] { return waitpid(process_, &status, WNOHANG) != 0; });
    EXPECT_TRUE(ended) << "the child hangs";
    if (!ended) kill_now();
    close(ends_[0]);
    close(ends_[1]);
    return status;
  }

 private:
  int ends_[2] = {-1, -1};
  pid_t process_ = -1;
};

void expect_left_in_order(Child& child) {
  const int status = child.wait_status();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
}

// The only ones of their process, never destroyed.
FullQueues& lasting_full_queues() {
  static FullQueues& queues = *new FullQueues;
  return queues;
}

TEST(StreamEnd, AProcessExitsWithFullQueues) {
  US_FRESH_PROCESS();
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    Child child([](Child&) {
      EXPECT_SUCCESS(aclrtSetDevice(0));
      lasting_full_queues();
    });
    expect_left_in_order(child);
  }
}

// Threads of the program are in the middle of everything when main returns.
TEST(StreamEnd, AProcessExitsWhileThreadsSubmitAndWait) {
  US_FRESH_PROCESS();
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    Child child([](Child&) {
      EXPECT_SUCCESS(aclrtSetDevice(0));
      const aclrtStream held = lasting_full_queues().first();
      static std::atomic<int> running{0};
      const auto start = [](auto body) {
        std::thread([body] {
          (void)aclrtSetDevice(0);
          for (++running;;) body();
        }).detach();
      };
      start([held] { (void)aclrtSynchronizeStreamWithTimeout(held, 1); });
      start([] {
        (void)aclrtLaunchHostFunc(
            nullptr, [](void*) {}, nullptr);
      });
      start([] { (void)aclrtSynchronizeStream(nullptr); });
      EXPECT_TRUE(comes_true([] { return running == 3; }));
    });
    expect_left_in_order(child);
  }
}

TEST(StreamEnd, AKilledProcessLeavesNothingTaken) {
  US_FRESH_PROCESS();
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const auto fill_and_wait = [](Child& self) {
      EXPECT_SUCCESS(aclrtSetDevice(0));
      const Figures before = figures();
      const FullQueues& queues = lasting_full_queues();
      self.tell(before);
      (void)aclrtSynchronizeStream(queues.first());
    };
    Child killed(fill_and_wait);
    const Figures before = killed.heard();
    killed.kill_now();
    EXPECT_TRUE(WIFSIGNALED(killed.wait_status()));

    Child next(fill_and_wait);
    EXPECT_EQ(next.heard(), before);
    next.kill_now();
    EXPECT_TRUE(WIFSIGNALED(next.wait_status()));
  }
}

}  // namespace
}  // namespace understudy_test
