// SPDX-License-Identifier: Apache-2.0
//
// The end of contexts and devices once dropped the tasks of streams that synchronisations do not
// wait for, and forgot streams and events that were created meanwhile: they counted against the
// device for ever.
#include <atomic>
#include <thread>
#include <vector>

#include "rules/stream_tasks.h"
#include "stress/stream_fleet.h"
#include "support/sanitizers.h"

namespace understudy_test {
namespace {

using StreamEndRegress = DeviceTest;

// ---- Tasks ----

// Calls `end` while the stream stands in front of a task, which must have run when `end` returns.
// The stream ends with it.
template <typename End>
void expect_end_runs_tasks(aclrtStream stream, End end) {
  TaskCounter counter;
  Gate gate(stream);
  gate.wait_until_reached();
  counter.queue_on(stream);
  std::atomic<int> runs_at_end = -1;
  WaitingCall ending([&] {
    const aclError code = end();
    runs_at_end = counter.runs();
    return code;
  });
  EXPECT_TRUE(ending.waits()) << "it does not wait for the stream";
  gate.open();
  EXPECT_EQ(ending.code(), ACL_SUCCESS) << ending.text();
  EXPECT_EQ(runs_at_end, 1);
}

void expect_ended(aclrtStream stream) {
  EXPECT_FAILS(ACL_ERROR_RT_INVALID_HANDLE, aclrtSynchronizeStream(stream));
}

constexpr uint32_t kFlags[] = {0, ACL_STREAM_CPU_SCHEDULE};

TEST_F(StreamEndRegress, DestroyingAContextRunsTheTasksOfEveryStream) {
  const aclrtContext before = runtime::current_context();
  for (const uint32_t flags : kFlags) {
    SCOPED_TRACE(flags);
    const aclrtContext context = runtime::create_context();
    const aclrtStream stream = TestStream(0, flags).release();
    expect_end_runs_tasks(stream, [&] { return aclrtDestroyContext(context); });
    EXPECT_SUCCESS(aclrtSetCurrentContext(before));
    expect_ended(stream);
  }
}

TEST_F(StreamEndRegress, TheLastResetOfADeviceRunsTheTasksOfEveryStream) {
  for (const uint32_t flags : kFlags) {
    SCOPED_TRACE(flags);
    const aclrtStream stream = TestStream(0, flags).release();
    expect_end_runs_tasks(stream, [] { return aclrtResetDevice(0); });
    ASSERT_SUCCESS(aclrtSetDevice(0));
    expect_ended(stream);
  }
}

// ---- Numbers ----

const int kRounds = kSanitized ? 30 : 100;

aclError create_stream() {
  aclrtStream stream = nullptr;
  return aclrtCreateStream(&stream);
}
aclError create_event() {
  aclrtEvent event = nullptr;
  return aclrtCreateEvent(&event);
}

// Calls `end` while another thread creates in the context, until it is refused.
template <typename End>
void end_while_creating(aclError (*create)(), aclrtContext context, End end) {
  std::atomic<bool> is_creating{false};
  std::thread creator([&] {
    EXPECT_SUCCESS(aclrtSetCurrentContext(context));
    is_creating = true;
    while (create() == ACL_SUCCESS) {
    }
  });
  EXPECT_TRUE(comes_true([&] { return is_creating.load(); }));
  EXPECT_SUCCESS(end());
  creator.join();
}

TEST_F(StreamEndRegress, StreamsCreatedWhileTheirContextEndsAreGivenBack) {
  const StreamFigures before = stream_figures();
  const aclrtContext own = runtime::current_context();
  for (int round = 0; round < kRounds; ++round) {
    const aclrtContext context = runtime::create_context();
    end_while_creating(create_stream, context, [&] { return aclrtDestroyContext(context); });
    ASSERT_SUCCESS(aclrtSetCurrentContext(own));
  }
  EXPECT_EQ(stream_figures(), before);
}

TEST_F(StreamEndRegress, StreamsAndEventsCreatedWhileTheirDeviceEndsAreGivenBack) {
  for (aclError (*const create)() : {create_stream, create_event}) {
    SCOPED_TRACE(create == create_stream ? "streams" : "events");
    const StreamFigures before = stream_figures();
    for (int round = 0; round < kRounds; ++round) {
      end_while_creating(create, runtime::current_context(),
                         [] { return aclrtResetDeviceForce(0); });
      ASSERT_SUCCESS(aclrtSetDevice(0));
    }
    EXPECT_EQ(stream_figures(), before);
  }
}

// Here the device comes back meanwhile, and the next reset finds streams of several contexts.
TEST_F(StreamEndRegress, StreamsCreatedWhileTheirDeviceEndsAndBeginsAreGivenBack) {
  const int wanted = 2 * kRounds;
  const StreamFigures before = stream_figures();
  std::atomic<bool> is_over{false};
  std::vector<std::thread> creators;
  for (int i = 0; i < 2; ++i) {
    creators.emplace_back([&] {
      while (!is_over) {
        EXPECT_SUCCESS(aclrtSetDevice(0));
        for (int n = 0; n < 4; ++n) (void)create_stream();  // refused if the device has just ended
      }
    });
  }
  // Only resets of a device that was there count.
  int resets = 0;
  EXPECT_TRUE(comes_true([&] {
    if (aclrtResetDeviceForce(0) == ACL_SUCCESS) ++resets;
    return resets >= wanted;
  }));
  is_over = true;
  for (std::thread& creator : creators) creator.join();
  // With what was created after the last reset.
  (void)aclrtResetDeviceForce(0);
  ASSERT_SUCCESS(aclrtSetDevice(0));
  EXPECT_EQ(stream_figures(), before);
}

}  // namespace
}  // namespace understudy_test
