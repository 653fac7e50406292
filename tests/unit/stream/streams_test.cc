// SPDX-License-Identifier: Apache-2.0
#include "stream/streams.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "platform/thread.h"
#include "stream/task_failure.h"
#include "unit/run_on_threads.h"
#include "unit/stream/stream_test_base.h"

namespace understudy {
namespace {

constexpr uint64_t kCrowded = 16 * 1024;       // tasks of a stream that runs
constexpr uint64_t kMostQueued = 1024 * 1024;  // tasks of one that is parked

class StreamsTest : public StreamTestBase {};

// ---- Handles ----

TEST_F(StreamsTest, HandleFindsItsStreamUntilThatEnds) {
  const StreamReference stream = make_stream();
  const uint64_t handle = stream.handle();
  EXPECT_EQ(value_of(streams().find(handle)).stream, stream.stream);
  EXPECT_TRUE(stream.valid());
  ASSERT_TRUE(is_ok(streams().destroy(stream)));
  EXPECT_TRUE(fails_with(streams().find(handle), ErrorCode::kInvalidHandle));
  EXPECT_FALSE(stream.valid());
}

TEST_F(StreamsTest, InventedHandlesAreRefused) {
  const uint64_t handle = make_stream().handle();
  for (const uint64_t invented : {uint64_t{0}, UINT64_MAX, handle + 1, handle ^ uint64_t{1} << 32,
                                  handle ^ uint64_t{1} << 56, handle + 1000000}) {
    EXPECT_TRUE(fails_with(streams().find(invented), ErrorCode::kInvalidHandle)) << invented;
  }
}

TEST_F(StreamsTest, StaleHandleDoesNotFindTheNextStreamOfItsSlot) {
  const StreamReference first = make_stream();
  ASSERT_TRUE(is_ok(streams().destroy(first)));
  const StreamReference second = make_stream();
  ASSERT_EQ(second.stream, first.stream);
  EXPECT_NE(first.handle(), second.handle());
  EXPECT_TRUE(fails_with(streams().find(first.handle()), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(fails_with(streams().destroy(first), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(fails_with(streams().destroy_at_once(first), ErrorCode::kInvalidHandle));
  EXPECT_TRUE(second.valid());
}

TEST_F(StreamsTest, LimitIsThatOfTheDeviceAndDefaultStreamsCount) {
  const unsigned limit = rig_.memory.settings.product.most_streams;
  EXPECT_EQ(streams().registry().available(0), limit);
  std::vector<StreamReference> made;
  for (unsigned i = 0; i < limit; ++i) made.push_back(make_stream());
  EXPECT_EQ(streams().registry().available(0), 0u);
  EXPECT_TRUE(fails_with(streams().create({}), ErrorCode::kOutOfStreams));
  EXPECT_TRUE(fails_with(streams().create({.is_default = true}), ErrorCode::kOutOfStreams));
  EXPECT_TRUE(is_ok(streams().create({.device = 1})));
  ASSERT_TRUE(is_ok(streams().destroy(made.back())));
  EXPECT_EQ(streams().registry().available(0), 1u);
  EXPECT_TRUE(is_ok(streams().create({})));
}

TEST_F(StreamsTest, DefaultStreamsEndWithTheirOwnerAlone) {
  const StreamReference stream = make_stream({.owner = kOwner, .is_default = true});
  EXPECT_TRUE(fails_with(streams().destroy(stream), ErrorCode::kInvalidParam));
  EXPECT_TRUE(fails_with(streams().destroy_at_once(stream), ErrorCode::kInvalidParam));
  streams().end_owner(kOwner + 1);
  EXPECT_TRUE(stream.valid());
  streams().end_owner(kOwner);
  EXPECT_FALSE(stream.valid());
}

TEST_F(StreamsTest, PriorityBeyondTheLowestIsTheLowest) {
  EXPECT_EQ(make_stream({.priority = 1000}).stream->priority.load(), kPriorities - 1);
}

TEST_F(StreamsTest, SlotThatIsUsedAgainGoesOnCountingAndStartsAfresh) {
  const StreamReference first = make_stream();
  const uint64_t position = submit(first, setting(memory_, 1));
  streams().registry().change_settings(first,
                                       [](StreamSettings& settings) { settings.custom_tag = 7; });
  EXPECT_EQ(streams().registry().settings_of(first).custom_tag, 7u);
  submit(first, setting(fault_, 1));
  // Then this thread gives the slot back, and gets it again.
  wait_for([&] {
    return streams().is_complete(first) && first.stream->run_state.load() == RunState::kIdle;
  });
  ASSERT_TRUE(is_ok(streams().destroy(first)));
  const StreamReference second = make_stream();
  ASSERT_EQ(second.stream, first.stream);
  EXPECT_TRUE(streams().is_complete(second));
  EXPECT_EQ(streams().registry().settings_of(second).custom_tag, 0u);
  expect_synchronized(second);
  EXPECT_EQ(submit(second, setting(memory_, 2)), position + 2);
  expect_synchronized(second);
}

// ---- Tasks ----

TEST_F(StreamsTest, TasksRunInOrder) {
  const StreamReference stream = make_stream();
  for (unsigned i = 0; i < 1000; ++i) submit(stream, setting(memory_, static_cast<uint8_t>(i)));
  expect_synchronized(stream);
  EXPECT_EQ(byte_at(0), 999 % 256);
  EXPECT_TRUE(streams().is_complete(stream));
}

TEST_F(StreamsTest, PositionsOfManyThreadsAreDistinctAndEachIsToldItsLast) {
  constexpr int kThreads = 4;
  constexpr int kTasks = 500;
  const StreamReference stream = make_stream();
  std::vector<std::set<uint64_t>> positions(kThreads);
  run_on_threads(kThreads, [&](int index) {
    auto& mine = positions[static_cast<size_t>(index)];
    for (int i = 0; i < kTasks; ++i) mine.insert(submit(stream, setting(memory_, 1)));
    EXPECT_EQ(last_task_of_thread(), static_cast<uint32_t>(*mine.rbegin()));
  });
  std::set<uint64_t> all;
  for (const auto& some : positions) all.insert(some.begin(), some.end());
  EXPECT_EQ(all.size(), static_cast<size_t>(kThreads * kTasks));
  expect_synchronized(stream);
}

TEST_F(StreamsTest, TaskForADestroyedStreamIsRefusedAndItsPayloadFreed) {
  const StreamReference stream = make_stream();
  ASSERT_TRUE(is_ok(streams().destroy(stream)));
  const Task task = listed_copy(memory_, memory_ + 64);
  EXPECT_TRUE(fails_with(streams().submit(stream, task), ErrorCode::kInvalidHandle));
}

TEST_F(StreamsTest, TaskIsRefusedAndItsPayloadFreedWhereNoWorkerCanBeStarted) {
  const StreamReference stream = make_stream();
  const platform::PlannedFault fault(platform::SystemCall::kStartThread, 1, EAGAIN);
  EXPECT_TRUE(fails_with(streams().submit(stream, listed_copy(memory_, memory_ + 64)),
                         ErrorCode::kOutOfResources));
  EXPECT_TRUE(streams().is_complete(stream));
}

TEST_F(StreamsTest, PayloadsAreFreedWhetherTasksRunFailOrAreDropped) {
  const StreamReference stream = make_stream();
  submit(stream, setting(memory_ + 64, 9));
  submit(stream, listed_copy(memory_, memory_ + 64));
  submit(stream, listed_copy(fault_, memory_));
  EXPECT_TRUE(fails_with(streams().synchronize(stream), ErrorCode::kCopyFault));
  EXPECT_EQ(byte_at(0), 9);
  park(stream, make_event());
  submit(stream, listed_copy(memory_, memory_ + 64));
  streams().abort(stream);
}

// ---- Waiting ----

TEST_F(StreamsTest, WaitingThreadRunsTheTasksItselfWhereNobodyElseDoes) {
  block_only_worker(make_stream());
  const StreamReference stream = make_stream();
  submit_unserved(stream, setting(memory_, 5));
  submit(stream, setting(memory_ + 1, 6));
  expect_synchronized(stream);
  EXPECT_EQ(byte_at(0), 5);
  EXPECT_EQ(byte_at(1), 6);
}

TEST_F(StreamsTest, WaitingThreadRunsTheStreamThatItsOwnWaitsFor) {
  block_only_worker(make_stream());
  const StreamReference first = make_stream();
  const StreamReference second = make_stream();
  submit_unserved(first, setting(memory_, 5));
  const EventReference event = make_event();
  ASSERT_TRUE(is_ok(events().record(event, first)));
  {
    const platform::PlannedFault fault(platform::SystemCall::kStartThread, 1, EAGAIN);
    ASSERT_TRUE(is_ok(events().let_wait(second, event, 0)));
    ASSERT_TRUE(fault.happened());
  }
  expect_synchronized(second);
  EXPECT_TRUE(streams().is_complete(first));
}

struct ThreadNote {
  std::atomic<uint32_t> thread{0};
  static void take(void* note) {
    static_cast<ThreadNote*>(note)->thread.store(platform::kernel_thread_id());
  }
};

TEST_F(StreamsTest, WaitingThreadLeavesHostFunctionsToWorkers) {
  const StreamReference stream = make_stream();
  for (int round = 0; round < 200; ++round) {
    ThreadNote note;
    submit(stream, setting(memory_, 1));
    submit(stream, host_function(ThreadNote::take, &note));
    submit(stream, setting(memory_, 2));
    expect_synchronized(stream);
    ASSERT_NE(note.thread.load(), 0u);
    ASSERT_NE(note.thread.load(), platform::kernel_thread_id());
  }
}

TEST_F(StreamsTest, WaitingThreadRunsWhatIsInFrontOfAHostFunctionAndCallsAWorkerForThat) {
  block_only_worker(make_stream());
  const StreamReference stream = make_stream();
  submit_unserved(stream, setting(memory_, 5));
  const uint64_t position = submit(stream, counting(calls_));
  EXPECT_TRUE(streams().wait_until(*stream.stream, position, kNever));
  EXPECT_EQ(calls_.load(), 1);
}

TEST_F(StreamsTest, WaitEndsAtItsDeadlineAndTheTasksGoOn) {
  const StreamReference stream = make_stream();
  block(stream);
  submit(stream, setting(memory_, 3));
  EXPECT_TRUE(fails_with(streams().synchronize(stream, Clock::now()), ErrorCode::kStreamTimeout));
  EXPECT_TRUE(
      fails_with(streams().synchronize_owner(kOwner, Clock::now()), ErrorCode::kStreamTimeout));
  EXPECT_FALSE(streams().wait_until(*stream.stream, 1, Clock::now()));
  EXPECT_FALSE(streams().is_complete(stream));
  gate_.open();
  expect_synchronized(stream);
  EXPECT_EQ(byte_at(0), 3);
}

TEST_F(StreamsTest, NobodyWaitsForAnUnattendedStreamButWhoDrainsIt) {
  const StreamReference stream = make_stream({.owner = kOwner, .is_unattended = true});
  block(stream);
  EXPECT_TRUE(streams().is_complete(stream));
  expect_synchronized(stream);
  EXPECT_TRUE(is_ok(streams().synchronize_owner(kOwner)));
  EXPECT_FALSE(stream.stream->is_done(1));
  gate_.open();
  EXPECT_TRUE(is_ok(streams().drain(stream)));
  EXPECT_TRUE(stream.stream->is_done(1));
}

TEST_F(StreamsTest, TasksOfAStreamThatHoldsThemAreLetGo) {
  const StreamReference stream = make_stream({.owner = kOwner, .holds_tasks = true});
  submit(stream, setting(memory_, 9));
  EXPECT_EQ(stream.stream->submitted.load(), 0u);
  const EventReference event = make_event();
  ASSERT_TRUE(is_ok(events().record(event, stream)));
  EXPECT_EQ(value_of(events().status(event)), std::nullopt) << "the event knows nothing of it";
  ASSERT_TRUE(is_ok(events().let_wait(stream, event, 0)));
  EXPECT_TRUE(value_of(events().waits_are_over(event)));
  EXPECT_TRUE(is_ok(streams().drain(stream)));
  EXPECT_EQ(byte_at(0), 0);
  ASSERT_TRUE(is_ok(streams().destroy(stream)));
  EXPECT_TRUE(fails_with(streams().submit(stream, setting(memory_, 9)), ErrorCode::kInvalidHandle));
}

TEST_F(StreamsTest, OwnerIsSynchronizedWithAllItsStreamsAndNoOther) {
  const StreamReference other = make_stream({.owner = kOwner + 1});
  block(other);
  for (int i = 0; i < 5; ++i) submit(make_stream(), counting(calls_));
  EXPECT_TRUE(is_ok(streams().synchronize_owner(kOwner)));
  EXPECT_EQ(calls_.load(), 5);
  EXPECT_FALSE(streams().is_complete(other));
}

// ---- Very many tasks ----

TEST_F(StreamsTest, WhoAddsToAStreamWithVeryManyTasksWaitsAndHelps) {
  block_only_worker(make_stream());
  const StreamReference stream = make_stream();
  submit_unserved(stream, setting(memory_, 1));
  for (uint64_t i = 1; i < kCrowded; ++i) submit(stream, setting(memory_, 1));
  EXPECT_EQ(stream.stream->completed.load(), 0u);
  submit(stream, setting(memory_, 2));
  EXPECT_GE(stream.stream->completed.load(), kCrowded / 2);
  expect_synchronized(stream);
  EXPECT_EQ(byte_at(0), 2);
}

TEST_F(StreamsTest, StreamInUserCodeMakesNobodyWaitSinceItMayWaitForThem) {
  const StreamReference stream = make_stream();
  block(stream);
  for (uint64_t i = 0; i < kCrowded + 10; ++i) submit(stream, setting(memory_, 1));
  EXPECT_EQ(stream.stream->completed.load(), 0u);
  gate_.open();
  expect_synchronized(stream);
}

TEST_F(StreamsTest, ManyThreadsFillAStreamThatRunsAndNoneIsRefused) {
  constexpr uint64_t kTasks = 60000;
  constexpr int kThreads = 6;
  const StreamReference stream = make_stream();
  run_on_threads(kThreads, [&](int) {
    Result<uint64_t> added = uint64_t{0};
    for (uint64_t i = 0; i < kTasks && added.ok(); ++i) {
      added = streams().submit(stream, setting(memory_, 1));
    }
    EXPECT_TRUE(is_ok(added));
  });
  expect_synchronized(stream);
}

TEST_F(StreamsTest, ParkedStreamTakesAMillionTasksAndThenIsFull) {
  const StreamReference stream = make_stream();
  park(stream, make_event());
  while (stream.stream->submitted.load() < kMostQueued) submit(stream, setting(memory_, 1));
  EXPECT_TRUE(fails_with(streams().submit(stream, setting(memory_, 1)), ErrorCode::kQueueFull));
  EXPECT_TRUE(fails_with(streams().submit(stream, listed_copy(memory_, memory_ + 64)),
                         ErrorCode::kQueueFull));
  EXPECT_EQ(stream.stream->submitted.load(), kMostQueued);
  streams().abort(stream);
  submit(stream, counting(calls_));
  expect_synchronized(stream);
  EXPECT_EQ(calls_.load(), 1);
}

// ---- Dropping ----

TEST_F(StreamsTest, AbortOfAnIdleStreamDoesNothing) {
  const StreamReference stream = make_stream();
  streams().abort(stream);
  submit(stream, counting(calls_));
  expect_synchronized(stream);
  EXPECT_EQ(calls_.load(), 1);
}

TEST_F(StreamsTest, AbortOfAParkedStreamDropsAllItsTasks) {
  const StreamReference stream = make_stream();
  park(stream, make_event());
  submit(stream, counting(calls_));
  streams().abort(stream);
  EXPECT_TRUE(streams().is_complete(stream));
  expect_synchronized(stream);
  EXPECT_EQ(calls_.load(), 0);
}

TEST_F(StreamsTest, AbortOfAReadyStreamDropsAllItsTasks) {
  block_only_worker(make_stream());
  const StreamReference stream = make_stream();
  submit_unserved(stream, counting(calls_));
  submit(stream, setting(memory_, 7));
  streams().abort(stream);
  EXPECT_TRUE(streams().is_complete(stream));
  EXPECT_EQ(calls_.load(), 0);
  EXPECT_EQ(byte_at(0), 0);
}

TEST_F(StreamsTest, AbortDoesNotWaitForAFunctionOfTheProgram) {
  const StreamReference stream = make_stream();
  block(stream);
  submit(stream, counting(calls_));
  streams().abort(stream);
  EXPECT_FALSE(streams().is_complete(stream));
  const uint64_t position = submit(stream, setting(memory_, 4));
  gate_.open();
  EXPECT_TRUE(streams().wait_until(*stream.stream, position, kNever));
  EXPECT_EQ(calls_.load(), 0);
  EXPECT_EQ(byte_at(0), 4);
}

TEST_F(StreamsTest, AbortOfARunningStreamEndsWithEveryTaskDoneOrDropped) {
  const StreamReference stream = make_stream();
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 50; ++i) submit(stream, setting(memory_, 1, kNormalPage));
    streams().abort(stream);
    ASSERT_TRUE(streams().is_complete(stream));
  }
  expect_synchronized(stream);
}

TEST_F(StreamsTest, ThreadsThatWaitHearOfTheAbort) {
  const StreamReference stream = make_stream();
  park(stream, make_event());
  std::thread waiter(
      [&] { EXPECT_TRUE(fails_with(streams().synchronize(stream), ErrorCode::kStreamAborted)); });
  wait_for([&] { return stream.stream->wanted.load() != kNoPosition; });
  streams().abort(stream);
  waiter.join();
  expect_synchronized(stream);
}

TEST_F(StreamsTest, AbortOfADeviceDropsTheTasksOfAllItsStreamsAlsoIfTheyWaitForEachOther) {
  const StreamReference first = make_stream();
  const StreamReference second = make_stream();
  const StreamReference elsewhere = make_stream({.device = 1});
  park(first, make_event());
  const EventReference event = make_event();
  ASSERT_TRUE(is_ok(events().record(event, first)));
  park(second, event);
  const EventReference later = make_event();
  park(elsewhere, later);
  std::thread waiter(
      [&] { EXPECT_TRUE(fails_with(streams().synchronize(second), ErrorCode::kDeviceAborted)); });
  wait_for([&] { return second.stream->wanted.load() != kNoPosition; });
  EXPECT_TRUE(is_ok(streams().abort_device(0, kNever)));
  waiter.join();
  EXPECT_TRUE(streams().is_complete(first));
  EXPECT_TRUE(streams().is_complete(second));
  EXPECT_FALSE(streams().is_complete(elsewhere));
  ASSERT_TRUE(is_ok(events().destroy(later)));
  expect_synchronized(elsewhere);
}

TEST_F(StreamsTest, AbortForgetsFailures) {
  const StreamReference stream = make_stream();
  submit(stream, setting(fault_, 1));
  wait_for([&] { return streams().is_complete(stream); });
  streams().abort(stream);
  expect_synchronized(stream);
}

TEST_F(StreamsTest, StopEndsTheTaskThatWaitsAndTheRestRuns) {
  const StreamReference stream = make_stream();
  park(stream, make_event());
  submit(stream, counting(calls_));
  streams().stop_front(stream);
  expect_synchronized(stream);
  EXPECT_EQ(calls_.load(), 1);
}

TEST_F(StreamsTest, StopWithNothingInFrontDoesNotEndTheNextTask) {
  const StreamReference stream = make_stream();
  streams().stop_front(stream);
  const EventReference event = make_event();
  park(stream, event);
  EXPECT_TRUE(stays([&] { return !streams().is_complete(stream); }));
  ASSERT_TRUE(is_ok(events().destroy(event)));
  expect_synchronized(stream);
}

TEST_F(StreamsTest, StopEndsAWaitForMemory) {
  const StreamReference stream = make_stream();
  Task wait(TaskKind::kWaitForValue, 0);
  wait.value = {.address = memory_, .value = 1, .condition = ValueCondition::kEqual, .looks = 0};
  submit(stream, wait);
  wait_until_parked(stream);
  streams().stop_front(stream);
  expect_synchronized(stream);
}

// ---- Ending ----

TEST_F(StreamsTest, DestroyWaitsForTheTasks) {
  const StreamReference stream = make_stream();
  for (int i = 0; i < 100; ++i) submit(stream, counting(calls_));
  ASSERT_TRUE(is_ok(streams().destroy(stream)));
  EXPECT_EQ(calls_.load(), 100);
}

TEST_F(StreamsTest, DestroyAtOnceDropsTheTasksOfAParkedStream) {
  const StreamReference stream = make_stream();
  park(stream, make_event());
  submit(stream, counting(calls_));
  ASSERT_TRUE(is_ok(streams().destroy_at_once(stream)));
  EXPECT_FALSE(stream.valid());
  EXPECT_EQ(calls_.load(), 0);
}

TEST_F(StreamsTest, DestroyAtOnceDropsTheTasksOfAReadyStream) {
  block_only_worker(make_stream());
  const StreamReference stream = make_stream();
  submit_unserved(stream, counting(calls_));
  ASSERT_TRUE(is_ok(streams().destroy_at_once(stream)));
  EXPECT_EQ(calls_.load(), 0);
  EXPECT_EQ(make_stream().stream, stream.stream);
}

TEST_F(StreamsTest, DestroyAtOnceOfAStreamInUserCodeLeavesTheSlotToItsOwner) {
  const StreamReference stream = make_stream();
  block(stream);
  submit(stream, counting(calls_));
  ASSERT_TRUE(is_ok(streams().destroy_at_once(stream)));
  EXPECT_FALSE(stream.valid());
  EXPECT_NE(make_stream().stream, stream.stream);
  gate_.open();
  wait_for([&] { return !stream.stream->is_orphan.load(); });
  EXPECT_EQ(calls_.load(), 0);
}

TEST_F(StreamsTest, ThreadsThatWaitHearThatTheStreamWasDestroyedAtOnce) {
  const StreamReference stream = make_stream();
  park(stream, make_event());
  std::thread waiter(
      [&] { EXPECT_TRUE(fails_with(streams().synchronize(stream), ErrorCode::kStreamAborted)); });
  wait_for([&] { return stream.stream->wanted.load() != kNoPosition; });
  ASSERT_TRUE(is_ok(streams().destroy_at_once(stream)));
  waiter.join();
}

TEST_F(StreamsTest, EndOfAnOwnerEndsItsStreamsAlsoIfTheyWaitForEachOther) {
  const StreamReference first = make_stream();
  const StreamReference second = make_stream();
  const StreamReference other = make_stream({.owner = kOwner + 1});
  const EventReference event = make_event();
  park(first, make_event());
  ASSERT_TRUE(is_ok(events().record(event, first)));
  park(second, event);
  const unsigned available = streams().registry().available(0);
  streams().end_owner(kOwner);
  EXPECT_FALSE(first.valid());
  EXPECT_FALSE(second.valid());
  EXPECT_TRUE(other.valid());
  EXPECT_EQ(streams().registry().available(0), available + 2);
}

TEST_F(StreamsTest, OfSeveralThreadsThatDestroyAStreamOneDoes) {
  for (int round = 0; round < 50; ++round) {
    const StreamReference stream = make_stream();
    submit(stream, setting(memory_, 1));
    std::atomic<int> destroyed{0};
    run_on_threads(3, [&](int index) {
      const Result<void> result =
          index == 0 ? streams().destroy_at_once(stream) : streams().destroy(stream);
      if (result.ok()) destroyed.fetch_add(1);
    });
    ASSERT_EQ(destroyed.load(), 1);
    ASSERT_EQ(streams().registry().available(0), rig_.memory.settings.product.most_streams);
  }
}

// ---- Failures ----

TEST_F(StreamsTest, FailureStaysUntilOneSynchronizationHasToldIt) {
  const StreamReference stream = make_stream();
  submit(stream, setting(fault_, 1));
  submit(stream, setting(memory_, 8));
  EXPECT_TRUE(fails_with(streams().synchronize(stream), ErrorCode::kCopyFault));
  EXPECT_EQ(byte_at(0), 8);
  expect_synchronized(stream);
}

TEST_F(StreamsTest, FailureOfOneStreamIsToldToWhoeverWaitsForItsOwner) {
  const StreamReference healthy = make_stream();
  const StreamReference failing = make_stream();
  submit(healthy, setting(memory_, 1));
  submit(failing, setting(fault_, 1));
  EXPECT_TRUE(fails_with(streams().synchronize_owner(kOwner), ErrorCode::kCopyFault));
  EXPECT_TRUE(is_ok(streams().synchronize_owner(kOwner)));
}

TEST_F(StreamsTest, FunctionThatThrowsIsAFailureOfItsStream) {
  const StreamReference stream = make_stream();
  submit(stream, host_function([](void*) { throw std::runtime_error("no luck"); }, nullptr));
  const Result<void> failed = streams().synchronize(stream);
  ASSERT_TRUE(fails_with(failed, ErrorCode::kInternal));
  EXPECT_NE(std::string(failed.error().text()).find("no luck"), std::string::npos);
  submit(stream, host_function([](void*) { throw 7; }, nullptr));
  EXPECT_TRUE(fails_with(streams().synchronize(stream), ErrorCode::kInternal));
  submit(stream, counting(calls_));
  expect_synchronized(stream);
  EXPECT_EQ(calls_.load(), 1);
}

TEST_F(StreamsTest, ContextThatStopsOnFailuresRefusesTasksOfAllItsStreams) {
  const StreamReference failing = make_stream();
  const StreamReference sibling = make_stream();
  const StreamReference stranger = make_stream({.owner = kOwner + 1});
  ASSERT_TRUE(is_ok(streams().registry().set_failure_mode(sibling, FailureMode::kStop)));
  park(sibling, make_event());
  submit(sibling, counting(calls_));
  block(failing);
  submit(failing, setting(fault_, 1));
  submit(failing, counting(calls_));
  gate_.open();
  for (const StreamReference& stream : {failing, sibling, failing, sibling}) {
    EXPECT_TRUE(fails_with(streams().synchronize(stream), ErrorCode::kCopyFault));
    EXPECT_TRUE(fails_with(streams().submit(stream, listed_copy(memory_, memory_ + 64)),
                           ErrorCode::kCopyFault));
  }
  submit(stranger, setting(memory_, 1));
  expect_synchronized(stranger);
  EXPECT_EQ(calls_.load(), 0);
}

TEST_F(StreamsTest, AbortLetsAStoppedStreamGoOnAndItAlone) {
  const StreamReference failing = make_stream();
  const StreamReference sibling = make_stream();
  ASSERT_TRUE(is_ok(streams().registry().set_failure_mode(failing, FailureMode::kStop)));
  submit(failing, setting(fault_, 1));
  EXPECT_FALSE(streams().synchronize(failing).ok());
  wait_for([&] { return !lasting_failure(sibling).ok(); });
  streams().abort(failing);
  submit(failing, setting(memory_, 1));
  expect_synchronized(failing);
  EXPECT_FALSE(streams().synchronize(sibling).ok());
}

TEST_F(StreamsTest, ThreadsThatWaitHearOfTheFailureThatStoppedTheirContext) {
  const StreamReference failing = make_stream();
  const StreamReference waiting = make_stream();
  ASSERT_TRUE(is_ok(streams().registry().set_failure_mode(failing, FailureMode::kStop)));
  park(waiting, make_event());
  std::thread waiter(
      [&] { EXPECT_TRUE(fails_with(streams().synchronize(waiting), ErrorCode::kCopyFault)); });
  wait_for([&] { return waiting.stream->wanted.load() != kNoPosition; });
  submit(failing, setting(fault_, 1));
  waiter.join();
}

TEST_F(StreamsTest, ContextThatStopsOnFailuresStaysSo) {
  const StreamReference stream = make_stream();
  EXPECT_TRUE(is_ok(streams().registry().set_failure_mode(stream, FailureMode::kContinue)));
  EXPECT_TRUE(is_ok(streams().registry().set_failure_mode(stream, FailureMode::kStop)));
  EXPECT_TRUE(is_ok(streams().registry().set_failure_mode(stream, FailureMode::kStop)));
  EXPECT_TRUE(fails_with(streams().registry().set_failure_mode(stream, FailureMode::kContinue),
                         ErrorCode::kNotSupported));
  EXPECT_TRUE(make_stream().stream->stops_on_failure.load());
  EXPECT_FALSE(make_stream({.owner = kOwner + 1}).stream->stops_on_failure.load());
  streams().end_owner(kOwner);
  EXPECT_FALSE(make_stream().stream->stops_on_failure.load());
}

// ---- Observers ----

class FailureObserverTest : public StreamsTest {
 protected:
  FailureObserverTest() {
    current = this;
    set_failure_observer(ObserverKind::kCallbacks, [](const TaskFailure& failure) {
      FailureObserverTest& test = *current;
      test.stream_.store(failure.stream);
      test.task_.store(failure.task);
      test.submitter_.store(failure.thread);
      test.observer_thread_.store(platform::kernel_thread_id());
      test.code_.store(failure.error->code());
      test.observed_.fetch_add(1);
    });
  }
  ~FailureObserverTest() override { set_failure_observer(ObserverKind::kCallbacks, nullptr); }

  static inline FailureObserverTest* current = nullptr;
  std::atomic<uint32_t> stream_{0};
  std::atomic<uint32_t> task_{0};
  std::atomic<uint32_t> submitter_{0};
  std::atomic<uint32_t> observer_thread_{0};
  std::atomic<ErrorCode> code_{ErrorCode::kInternal};
  std::atomic<int> observed_{0};
};

TEST_F(FailureObserverTest, HearsOfATaskBeforeTheSynchronizationReturnsAndNotOnItsThread) {
  for (int round = 1; round <= 50; ++round) {
    const StreamReference stream = make_stream();
    const uint64_t position = submit(stream, setting(fault_, 1));
    EXPECT_TRUE(fails_with(streams().synchronize(stream), ErrorCode::kCopyFault));
    ASSERT_EQ(observed_.load(), round);
    EXPECT_EQ(stream_.load(), stream.stream->index);
    EXPECT_EQ(task_.load(), static_cast<uint32_t>(position));
    EXPECT_EQ(submitter_.load(), platform::kernel_thread_id());
    EXPECT_NE(observer_thread_.load(), platform::kernel_thread_id());
    EXPECT_EQ(code_.load(), ErrorCode::kCopyFault);
  }
}

TEST_F(FailureObserverTest, HearsOnceOfATaskThatStopsItsContext) {
  const StreamReference stream = make_stream();
  ASSERT_TRUE(is_ok(streams().registry().set_failure_mode(stream, FailureMode::kStop)));
  submit(stream, setting(fault_, 1));
  wait_for([&] { return streams().is_complete(stream); });
  EXPECT_FALSE(streams().synchronize(stream).ok());
  EXPECT_EQ(observed_.load(), 1);
}

}  // namespace
}  // namespace understudy
