// SPDX-License-Identifier: Apache-2.0
//
// A stream is destroyed at once, or aborted, while a worker sends its callback to the thread that
// serves it. A callback that was dropped never runs, whatever else the thread serves.
#include <chrono>
#include <cstdint>

#include "rules/callback_objects.h"
#include "support/rule_test.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

const int kRounds = kSanitized ? 100 : 1000;

using CallbackDrop = DeviceTest;

void count_call(void* calls) { ++*static_cast<int*>(calls); }

// Long enough that now and then the worker is at the callback.
void wait_a_little(int round) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(round % 100);
  while (std::chrono::steady_clock::now() < end) {
  }
}

template <typename Drop>
void expect_none_runs(Drop drop) {
  const auto self = static_cast<uint64_t>(pthread_self());
  aclrtStream other = nullptr;  // so that the thread is known when the first one is gone
  ASSERT_SUCCESS(aclrtCreateStream(&other));
  ASSERT_SUCCESS(aclrtSubscribeReport(self, other));
  int calls = 0;
  for (int round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
    aclrtStream stream = nullptr;
    ASSERT_SUCCESS(aclrtCreateStream(&stream));
    ASSERT_SUCCESS(aclrtSubscribeReport(self, stream));
    ASSERT_SUCCESS(aclrtLaunchCallback(count_call, &calls, ACL_CALLBACK_NO_BLOCK, stream));
    wait_a_little(round);
    drop(stream);
    EXPECT_EQ(aclrtProcessReport(1), ACL_ERROR_RT_REPORT_TIMEOUT) << "in round " << round;
    EXPECT_EQ(calls, 0);
  }
  EXPECT_SUCCESS(aclrtDestroyStreamForce(other));
}

TEST_F(CallbackDrop, DestroyAtOnce) {
  expect_none_runs([](aclrtStream stream) { EXPECT_SUCCESS(aclrtDestroyStreamForce(stream)); });
}

TEST_F(CallbackDrop, Abort) {
  expect_none_runs([](aclrtStream stream) {
    EXPECT_SUCCESS(aclrtStreamAbort(stream));
    EXPECT_SUCCESS(aclrtDestroyStreamForce(stream));
  });
}

}  // namespace
}  // namespace understudy_test
