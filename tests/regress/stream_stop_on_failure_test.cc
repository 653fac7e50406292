// SPDX-License-Identifier: Apache-2.0
//
// Failures in the mode STOP once were told too early, before the exception callback had run and
// while other streams of the context still took work; and a copy that was stopped counted as one.
#include <deque>
#include <vector>

#include "rules/async_objects.h"
#include "rules/callback_objects.h"
#include "rules/stream_tasks.h"
#include "rules/vmm_objects.h"
#include "stress/stream_fleet.h"

namespace understudy_test {
namespace {

using StopOnFailure = DeviceTest;

void set_mode(aclrtStream stream, uint64_t mode) {
  EXPECT_SUCCESS(aclrtSetStreamFailureMode(stream, mode));
}

// ---- What the failure's synchronisation comes after ----

// An exception callback that stands still until it is let go. Callbacks have no argument of their
// own, so there is one at a time.
class StandingCallback {
 public:
  StandingCallback() {
    current_ = &pause_;
    EXPECT_SUCCESS(aclrtExceptionInfoCallbackRegister(stand));
  }
  ~StandingCallback() { EXPECT_SUCCESS(aclrtExceptionInfoCallbackUnregister(stand)); }
  StandingCallback(const StandingCallback&) = delete;
  StandingCallback& operator=(const StandingCallback&) = delete;

  bool is_reached() { return pause_.is_reached(); }
  void let_go() { pause_.release(); }

 private:
  static void stand(aclrtExceptionInfo*) { current_->stand(); }

  static inline callbacks::Pause* current_ = nullptr;
  callbacks::Pause pause_;
};

TEST_F(StopOnFailure, TheExceptionCallbackHasRunWhenSynchroniseReturns) {
  for (const uint64_t mode : {ACL_STOP_ON_FAILURE, ACL_CONTINUE_ON_FAILURE}) {
    SCOPED_TRACE(mode == ACL_STOP_ON_FAILURE ? "stop" : "continue");
    const ContextScope context;
    const TestStream stream;
    set_mode(stream.get(), mode);
    FailingTask task;
    StandingCallback callback;
    Gate gate(stream.get());
    task.queue_on(stream.get());
    WaitingCall synchronize(
        [&] { return aclrtSynchronizeStreamWithTimeout(stream.get(), kLongLimit); });
    EXPECT_TRUE(synchronize.waits());
    gate.open();
    EXPECT_TRUE(callback.is_reached());
    EXPECT_TRUE(synchronize.waits()) << "it returned while the callback was running";
    callback.let_go();
    EXPECT_EQ(synchronize.code(), ACL_ERROR_RT_SYS_DMA) << synchronize.text();
  }
}

TEST_F(StopOnFailure, SiblingsRefuseWorkAsSoonAsSynchroniseHasReturnedTheFailure) {
  constexpr int kRounds = 50;
  // Many, so that the last is told of the failure as late as can be.
  constexpr size_t kSiblings = 40;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE(round);
    const ContextScope context;
    const TestStream failing;
    std::deque<TestStream> siblings(kSiblings);
    set_mode(failing.get(), ACL_STOP_ON_FAILURE);
    FailingTask task;
    TaskCounter counter;
    {
      Gate gate(failing.get());
      task.queue_on(failing.get());
      WaitingCall synchronize([&] {
        EXPECT_EQ(finish(failing.get()), ACL_ERROR_RT_SYS_DMA);
        return aclrtLaunchHostFunc(siblings.back().get(), TaskCounter::run, &counter);
      });
      EXPECT_TRUE(synchronize.waits());
      gate.open();
      EXPECT_EQ(synchronize.code(), ACL_ERROR_RT_SYS_DMA) << synchronize.text();
    }
    EXPECT_EQ(finish(siblings.back().get()), ACL_ERROR_RT_SYS_DMA);
    EXPECT_EQ(counter.runs(), 0);
  }
}

// ---- Stopping is no failure ----

// A range that takes long to copy and little memory: one block mapped many times, but for its end.
class LongRange {
 public:
  static constexpr size_t kSize = 512 * kMiB;

  explicit LongRange(uint8_t value) {
    const std::vector<uint8_t> bytes(kGranule, value);
    for (size_t offset = 0; offset < kSize; offset += kGranule) {
      const bool is_end = offset + kGranule == kSize;
      mappings_.emplace_back(range_.byte(offset), is_end ? end_ : body_);
    }
    copy_in(range_.start(), bytes);
    copy_in(end(), bytes);
  }

  void* start() const { return range_.start(); }
  void* end() const { return range_.byte(kSize - kGranule); }
  bool ends_with(uint8_t value) const {
    return copy_out(end(), kGranule) == std::vector<uint8_t>(kGranule, value);
  }

 private:
  vmm::Block body_;
  vmm::Block end_;
  vmm::Range range_{kSize};
  std::deque<vmm::Mapping> mappings_;
};

// Stops the stream until the task behind the copy runs: nothing tells when the copy has begun, and
// only what runs can be stopped.
void stop_until_run(aclrtStream stream, const TaskCounter& behind) {
  EXPECT_TRUE(comes_true([&] {
    EXPECT_SUCCESS(aclrtStreamStop(stream));
    return behind.runs() > 0;
  }));
}

TEST_F(StopOnFailure, ACopyThatIsStoppedDoesNotStopTheContext) {
  constexpr uint8_t kBefore = 1;
  constexpr uint8_t kCopied = 2;
  const LongRange from(kCopied);
  const LongRange to(kBefore);
  const ContextScope context;
  const TestStream stopped;
  const TestStream sibling;
  set_mode(stopped.get(), ACL_STOP_ON_FAILURE);
  // A copy that was through before the stop came shows nothing: then once more.
  EXPECT_TRUE(comes_true([&] {
    TaskCounter behind;
    TaskCounter on_sibling;
    copy_in(to.end(), std::vector<uint8_t>(kGranule, kBefore));
    EXPECT_SUCCESS(aclrtMemcpyAsync(to.start(), LongRange::kSize, from.start(), LongRange::kSize,
                                    ACL_MEMCPY_DEVICE_TO_DEVICE, stopped.get()));
    behind.queue_on(stopped.get());
    stop_until_run(stopped.get(), behind);
    // The stop is told by it; no more than that.
    EXPECT_NE(finish(stopped.get()), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    on_sibling.queue_on(sibling.get());
    EXPECT_SUCCESS(finish(sibling.get()));
    EXPECT_EQ(on_sibling.runs(), 1);
    return HasFailure() || to.ends_with(kBefore);
  }));
}

}  // namespace
}  // namespace understudy_test
