// SPDX-License-Identifier: Apache-2.0
#include "runtime/call_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "platform/asymmetric_fence.h"
#include "platform/fault_plan.h"

namespace understudy {
namespace {

const Deadline kSoon{};  // it has passed: one look

TEST(CallGate, CallsPassWhileItIsOpen) {
  const GatePass outer;
  const GatePass inner;
  EXPECT_EQ(CallGate::held(), 0u);
}

TEST(CallGate, HoldsCallsUntilItOpens) {
  ASSERT_TRUE(CallGate::close(kSoon).ok());
  std::atomic<bool> passed{false};
  std::thread caller([&] {
    const GatePass pass;
    passed.store(true);
  });
  while (CallGate::held() == 0) std::this_thread::yield();
  EXPECT_FALSE(passed.load());
  CallGate::open();
  caller.join();
  EXPECT_TRUE(passed.load());
  EXPECT_EQ(CallGate::held(), 0u);
}

TEST(CallGate, DoesNotCloseWhileACallOfAnotherThreadIsUnderWay) {
  std::atomic<bool> is_under_way{false};
  std::atomic<bool> may_end{false};
  std::thread caller([&] {
    const GatePass pass;
    is_under_way.store(true);
    while (!may_end.load()) {
      const GatePass inner;  // part of the call: never held by a gate that closes
      std::this_thread::yield();
    }
  });
  while (!is_under_way.load()) std::this_thread::yield();
  const Result<void> refused = CallGate::close(kSoon);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kLockTimeout);
  may_end.store(true);
  caller.join();
  ASSERT_TRUE(CallGate::close(kSoon).ok());
  CallGate::open();
}

TEST(CallGate, ClosesInsideACallOfTheSameThread) {
  const GatePass pass;
  ASSERT_TRUE(CallGate::close(kSoon).ok());
  CallGate::open();
}

TEST(CallGate, AFenceThatFailsLeavesItOpen) {
  if (!platform::has_heavy_fence()) GTEST_SKIP() << "the kernel offers no such fence";
  platform::plan_fault(platform::SystemCall::kFence, 1, EPERM);
  const Result<void> refused = CallGate::close(kSoon);
  platform::clear_fault_plan();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::kLockRefused);
  const GatePass pass;
}

// Between a close and the next open no call is under way, whatever the threads do.
TEST(CallGate, NoCallIsUnderWayWhileItIsClosed) {
  std::atomic<int> under_way{0};
  std::atomic<bool> ends{false};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      while (!ends.load(std::memory_order_relaxed)) {
        const GatePass pass;
        under_way.fetch_add(1, std::memory_order_relaxed);
        under_way.fetch_sub(1, std::memory_order_relaxed);
      }
    });
  }
  for (int round = 0; round < 500; ++round) {
    ASSERT_TRUE(CallGate::close(kNever).ok());
    EXPECT_EQ(under_way.load(), 0);
    CallGate::open();
  }
  ends.store(true);
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace understudy
