// SPDX-License-Identifier: Apache-2.0
#include "stream/run_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "platform/thread.h"
#include "stream/worker_helper_pool.h"
#include "stream/workers.h"
#include "unit/expect_result.h"
#include "unit/platform/planned_fault.h"
#include "unit/run_on_threads.h"
#include "unit/stream/stream_tools.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

void complete(Stream& stream) { stream.completed.store(stream.submitted.load()); }

// Does with each stream what the test says, and counts what else workers ask for.
struct ScriptedRunner {
  std::function<RunEnd(Stream&)> script = [](Stream& stream) {
    complete(stream);
    return RunEnd::kEmpty;
  };
  std::atomic<int> recycled{0};

  RunEnd run(Stream& stream, const RunLimits&) const { return script(stream); }
  bool release(Stream& stream) {
    if (!RunQueue::release(stream)) return false;
    if (stream.is_orphan.load()) recycled.fetch_add(1);
    return true;
  }
};
struct ScriptedAlarm {
  explicit ScriptedAlarm(RunQueue& queue) : run_queue(queue) {}
  void wake_due() {
    run_queue.set_alarm(kNever);
    wakes.fetch_add(1);
  }

  RunQueue& run_queue;
  std::atomic<int> wakes{0};
};

class RunQueueTest : public testing::Test {
 protected:
  ~RunQueueTest() override {
    for (Gate& gate : gates_) gate.open();
  }

  static unsigned most_workers() { return std::clamp(platform::usable_processors(), 2U, 16U); }

  void add_task(Stream& stream) {
    stream.submitted.fetch_add(1);
    run_queue_.offer_tasks(stream);
  }
  static void wait_until_done(const Stream& stream) {
    wait_for([&] {
      return stream.completed.load() == stream.submitted.load() &&
             stream.run_state.load() == RunState::kIdle;
    });
  }
  Stream& make_stream(uint32_t priority = 0) {
    Stream& stream = streams_.emplace_back();
    stream.priority.store(priority);
    return stream;
  }

  // What a blocked worker does when its gate opens, and around that.
  enum class Inside { kLibrary, kUserCode };
  // Keeps all workers busy, one at each gate; streams that come later follow the script.
  void block_all_workers(Inside inside = Inside::kLibrary) {
    block_workers(most_workers(), inside);
  }
  void block_workers(unsigned count, Inside inside = Inside::kLibrary) {
    const auto rest = runner_.script;
    runner_.script = [this, inside, rest](Stream& stream) {
      Gate* const gate = gate_of(stream);
      if (gate == nullptr) return rest(stream);
      if (inside == Inside::kUserCode) run_queue_.begin_user_code();
      gate->pass();
      if (inside == Inside::kUserCode) run_queue_.end_user_code();
      complete(stream);
      return RunEnd::kEmpty;
    };
    for (unsigned i = 0; i < count; ++i) make_stream();
    gates_ = std::deque<Gate>(count);
    blocked_ = count;
    for (unsigned i = 0; i < count; ++i) {
      add_task(streams_[i]);
      gates_[i].wait_until_entered();
    }
  }
  Gate* gate_of(const Stream& stream) {
    for (unsigned i = 0; i < blocked_; ++i) {
      if (&streams_[i] == &stream) return &gates_[i];
    }
    return nullptr;
  }

  // Notes which streams ran, in their order.
  void note_run(const Stream& stream) {
    const std::lock_guard lock(order_mutex_);
    order_.push_back(&stream);
  }
  std::vector<const Stream*> order() {
    const std::lock_guard lock(order_mutex_);
    return order_;
  }
  void note_all_runs() {
    runner_.script = [this](Stream& stream) {
      note_run(stream);
      complete(stream);
      return RunEnd::kEmpty;
    };
  }

  // Workers look at streams for a moment after their last task: streams end behind the run queue.
  std::deque<Stream> streams_;
  std::deque<Gate> gates_;
  unsigned blocked_ = 0;
  std::mutex order_mutex_;
  std::vector<const Stream*> order_;
  using ScriptedWorkers = BasicWorkers<ScriptedRunner, ScriptedAlarm>;
  ScriptedRunner runner_;
  ScriptedAlarm alarm_{run_queue_};
  ScriptedWorkers workers_{run_queue_, alarm_, runner_};
  RunQueue run_queue_{{ScriptedWorkers::work, &workers_}};
};

TEST_F(RunQueueTest, StreamWithTasksIsRunByAWorker) {
  std::atomic<uint32_t> thread{0};
  runner_.script = [&](Stream& stream) {
    EXPECT_EQ(stream.run_state.load(), RunState::kRunning);
    thread.store(platform::kernel_thread_id());
    complete(stream);
    return RunEnd::kEmpty;
  };
  Stream& stream = make_stream();
  add_task(stream);
  wait_until_done(stream);
  EXPECT_NE(thread.load(), platform::kernel_thread_id());
}

TEST_F(RunQueueTest, EveryTaskOfManyThreadsIsSeen) {
  constexpr int kTasks = 2000;
  for (int i = 0; i < 4; ++i) make_stream();
  run_on_threads(4, [&](int index) {
    for (int i = 0; i < kTasks; ++i) add_task(streams_[static_cast<size_t>(index + i) % 4]);
  });
  uint64_t done = 0;
  for (const Stream& stream : streams_) {
    wait_until_done(stream);
    done += stream.completed.load();
  }
  EXPECT_EQ(done, 4u * kTasks);
}

TEST_F(RunQueueTest, HigherPrioritiesAreTakenFirstAndEqualOnesInOrder) {
  note_all_runs();
  block_all_workers();
  Stream& low = make_stream(kPriorities - 1);
  Stream& middle = make_stream(3);
  Stream& other_middle = make_stream(3);
  Stream& high = make_stream(0);
  for (Stream* const stream : {&low, &middle, &other_middle, &high}) add_task(*stream);
  EXPECT_TRUE(order().empty());
  gates_[0].open();
  wait_until_done(low);
  EXPECT_EQ(order(), (std::vector<const Stream*>{&high, &middle, &other_middle, &low}));
}

TEST_F(RunQueueTest, StreamWhoseTurnIsOverGoesBehindTheOthers) {
  Stream* second = nullptr;
  runner_.script = [&](Stream& stream) {
    note_run(stream);
    if (&stream != second && second->submitted.load() == 0) {
      add_task(*second);
      return RunEnd::kTurnOver;
    }
    complete(stream);
    return RunEnd::kEmpty;
  };
  block_all_workers();
  Stream& first = make_stream();
  second = &make_stream();
  add_task(first);
  gates_[0].open();
  wait_until_done(first);
  EXPECT_EQ(order(), (std::vector<const Stream*>{&first, second, &first}));
}

TEST_F(RunQueueTest, StreamWhoseTurnIsOverGoesOnWhereNobodyElseIsReady) {
  std::atomic<int> turns{0};
  runner_.script = [&](Stream& stream) {
    EXPECT_EQ(stream.run_state.load(), RunState::kRunning);
    if (turns.fetch_add(1) < 3) return RunEnd::kTurnOver;
    complete(stream);
    return RunEnd::kEmpty;
  };
  Stream& stream = make_stream();
  add_task(stream);
  wait_until_done(stream);
  EXPECT_EQ(turns.load(), 4);
}

TEST_F(RunQueueTest, ParkedStreamIsLeftAloneUntilItIsResumed) {
  std::atomic<int> runs{0};
  runner_.script = [&](Stream& stream) {
    if (runs.fetch_add(1) == 0) {
      stream.run_state.store(RunState::kParked);
      return RunEnd::kParked;
    }
    complete(stream);
    return RunEnd::kEmpty;
  };
  Stream& stream = make_stream();
  add_task(stream);
  wait_for([&] { return stream.run_state.load() == RunState::kParked; });
  add_task(stream);
  EXPECT_EQ(stream.run_state.load(), RunState::kParked);
  run_queue_.hand_over(stream, RunQueue::Successor::kAnyone);
  wait_until_done(stream);
  EXPECT_EQ(runs.load(), 2);
}

TEST_F(RunQueueTest, OnlyAReadyStreamCanBeClaimedAndOnce) {
  block_all_workers();
  Stream& stream = make_stream();
  EXPECT_FALSE(run_queue_.try_claim(stream));
  add_task(stream);
  EXPECT_TRUE(run_queue_.try_claim(stream));
  EXPECT_EQ(stream.run_state.load(), RunState::kRunning);
  EXPECT_FALSE(run_queue_.try_claim(stream));
  stream.run_state.store(RunState::kParked);
  EXPECT_FALSE(run_queue_.try_claim(stream));
}

TEST_F(RunQueueTest, ClaimFromTheMiddleLeavesTheOthersInOrder) {
  note_all_runs();
  block_all_workers();
  std::array<Stream*, 4> ready{};
  for (Stream*& stream : ready) {
    stream = &make_stream();
    add_task(*stream);
  }
  ASSERT_TRUE(run_queue_.try_claim(*ready[1]));
  ASSERT_TRUE(run_queue_.try_claim(*ready[3]));
  gates_[0].open();
  wait_until_done(*ready[2]);
  EXPECT_EQ(order(), (std::vector<const Stream*>{ready[0], ready[2]}));
}

TEST_F(RunQueueTest, StreamForAWorkerCannotBeClaimedByAWaitingThread) {
  block_all_workers();
  Stream& stream = make_stream();
  add_task(stream);
  ASSERT_TRUE(run_queue_.try_claim(stream));
  run_queue_.hand_over(stream, RunQueue::Successor::kWorker);
  EXPECT_EQ(stream.run_state.load(), RunState::kReady);
  EXPECT_FALSE(run_queue_.try_claim(stream));
  gates_[0].open();
  wait_until_done(stream);
}

TEST_F(RunQueueTest, WishForAWorkerEndsWithTheTaskItWasFor) {
  block_all_workers();
  Stream& stream = make_stream();
  ASSERT_TRUE(run_queue_.try_own(stream));
  run_queue_.hand_over(stream, RunQueue::Successor::kWorker);
  ASSERT_TRUE(run_queue_.try_own(stream));
  run_queue_.hand_over(stream, RunQueue::Successor::kAnyone);
  EXPECT_TRUE(run_queue_.try_claim(stream));
}

TEST_F(RunQueueTest, IdleAndReadyStreamsCanBeOwnedAndOthersNot) {
  block_all_workers();
  Stream& stream = make_stream();
  EXPECT_TRUE(run_queue_.try_own(stream));
  EXPECT_FALSE(run_queue_.try_own(stream));
  EXPECT_TRUE(runner_.release(stream));
  add_task(stream);
  EXPECT_TRUE(run_queue_.try_own(stream));
  stream.run_state.store(RunState::kParked);
  EXPECT_FALSE(run_queue_.try_own(stream));
}

TEST_F(RunQueueTest, OwnerStaysOwnerIfATaskCameInBetween) {
  Stream& stream = make_stream();
  ASSERT_TRUE(run_queue_.try_own(stream));
  add_task(stream);
  EXPECT_FALSE(runner_.release(stream));
  EXPECT_EQ(stream.run_state.load(), RunState::kRunning);
  complete(stream);
  EXPECT_TRUE(runner_.release(stream));
  EXPECT_EQ(stream.run_state.load(), RunState::kIdle);
  EXPECT_EQ(runner_.recycled.load(), 0);
}

TEST_F(RunQueueTest, LastOwnerOfADestroyedStreamGivesItBack) {
  Stream& stream = make_stream();
  ASSERT_TRUE(run_queue_.try_own(stream));
  stream.is_orphan.store(true);
  EXPECT_TRUE(runner_.release(stream));
  EXPECT_EQ(runner_.recycled.load(), 1);
}

TEST_F(RunQueueTest, WorkersInUserCodeMakeRoomForOthers) {
  block_all_workers(Inside::kUserCode);
  Stream& stream = make_stream();
  add_task(stream);
  wait_until_done(stream);
}

TEST_F(RunQueueTest, WorkerThatEntersUserCodeCallsAnotherForWhatIsReady) {
  block_all_workers();
  Stream& stream = make_stream();
  add_task(stream);
  EXPECT_TRUE(stays([&] { return stream.run_state.load() == RunState::kReady; }));
  run_queue_.begin_user_code();
  wait_until_done(stream);
  run_queue_.end_user_code();
}

TEST_F(RunQueueTest, FirstWorkerThatCannotBeStartedIsAnErrorAndTriedAgain) {
  const Stream& stream = make_stream();
  {
    const PlannedFault fault(SystemCall::kStartThread, 1, EAGAIN);
    EXPECT_TRUE(fails_with(run_queue_.start(stream), ErrorCode::kOutOfResources));
  }
  EXPECT_TRUE(is_ok(run_queue_.start(stream)));
  EXPECT_TRUE(is_ok(run_queue_.start(stream)));
}

TEST_F(RunQueueTest, WhereNoFurtherWorkerCanBeStartedTheOthersDoTheWork) {
  const PlannedFault second(SystemCall::kStartThread, 2, EAGAIN);
  block_workers(1);
  Stream& stream = make_stream();
  {
    const PlannedFault third(SystemCall::kStartThread, 1, EAGAIN);
    add_task(stream);
    EXPECT_TRUE(third.happened());
  }
  EXPECT_TRUE(stays([&] { return stream.run_state.load() == RunState::kReady; }));
  gates_[0].open();
  wait_until_done(stream);
}

TEST_F(RunQueueTest, WorkerWakesStreamsWhoseTimeHasCome) {
  ASSERT_TRUE(is_ok(run_queue_.start(make_stream())));
  run_queue_.advance_alarm(Deadline());
  wait_for([&] { return alarm_.wakes.load() > 0; });
}

TEST_F(RunQueueTest, WakesAreNotForgottenWhileAStreamHasManyTurns) {
  runner_.script = [&](Stream& stream) {
    run_queue_.set_alarm(Deadline());
    if (alarm_.wakes.load() < 3) return RunEnd::kTurnOver;
    run_queue_.set_alarm(kNever);
    complete(stream);
    return RunEnd::kEmpty;
  };
  Stream& stream = make_stream();
  add_task(stream);
  wait_until_done(stream);
}

// A worker that looks out for tasks of its own stream keeps others from being called. If it finds
// one, it must not be the only one to know of the stream that became ready meanwhile.
TEST_F(RunQueueTest, StreamThatBecomesReadyBesideABusyOneIsTakenByAnotherWorker) {
  if (run_queue_.patience() == Clock::duration::zero()) GTEST_SKIP() << "nobody looks out";
  Stream& busy = make_stream();
  Stream& other = make_stream();
  std::atomic<bool> waits{false};
  std::atomic<int> late{0};
  runner_.script = [&](Stream& stream) {
    if (&stream == &busy && waits.load()) {
      // Like a very long copy: the other stream must not have to wait for its end.
      constexpr int kEnough = 3'000'000;
      int looks = 0;
      while (other.completed.load() != other.submitted.load() && looks < kEnough) {
        ++looks;
        std::this_thread::yield();
      }
      if (looks == kEnough) late.fetch_add(1);
    }
    complete(stream);
    return RunEnd::kEmpty;
  };
  for (int round = 0; round < 300 && late.load() == 0; ++round) {
    waits.store(false);
    add_task(busy);
    wait_for([&] { return busy.completed.load() == busy.submitted.load(); });
    waits.store(true);
    add_task(other);
    add_task(busy);
    wait_until_done(busy);
    wait_until_done(other);
  }
  EXPECT_EQ(late.load(), 0);
}

// ---- Work items ----

class WorkItemTest : public RunQueueTest {
 protected:
  std::vector<WorkItem> make_items(size_t count, void (*work)(void*), void* argument) {
    return std::vector<WorkItem>(count, WorkItem{work, argument});
  }
  std::atomic<int> done_{0};
  WorkerHelperPool helpers_{run_queue_};
};

TEST_F(WorkItemTest, AreDoneByWorkers) {
  std::vector<WorkItem> items = make_items(3, count_call, &done_);
  helpers_.offer(items);
  wait_for([&] { return done_.load() == 3; });
  helpers_.withdraw(items);
  EXPECT_EQ(done_.load(), 3);
}

TEST_F(WorkItemTest, MoreThanThereAreWorkersAreAllDone) {
  const size_t count = 3 * most_workers() + 1;
  std::vector<WorkItem> items = make_items(count, count_call, &done_);
  helpers_.offer(items);
  wait_for([&] { return done_.load() == static_cast<int>(count); });
  helpers_.withdraw(items);
}

TEST_F(WorkItemTest, WhatNobodyTookIsWithdrawnAndNeverDone) {
  block_all_workers();
  std::vector<WorkItem> items = make_items(3, count_call, &done_);
  std::vector<WorkItem> others = make_items(2, count_call, &done_);
  helpers_.offer(items);
  helpers_.offer(others);
  helpers_.withdraw(items);  // from behind the others
  gates_[0].open();
  wait_for([&] { return done_.load() == 2; });
  helpers_.withdraw(others);
  EXPECT_EQ(done_.load(), 2);
}

TEST_F(WorkItemTest, StreamsComeFirst) {
  std::atomic<int> seen{-1};
  runner_.script = [&](Stream& stream) {
    seen.store(done_.load());
    complete(stream);
    return RunEnd::kEmpty;
  };
  block_all_workers();
  std::vector<WorkItem> items = make_items(1, count_call, &done_);
  helpers_.offer(items);
  Stream& stream = make_stream();
  add_task(stream);
  gates_[0].open();
  wait_for([&] { return done_.load() == 1; });
  EXPECT_EQ(seen.load(), 0);
  helpers_.withdraw(items);
}

TEST_F(WorkItemTest, WithdrawingWaitsForOneThatHasBegun) {
  Gate gate;
  std::vector<WorkItem> items = make_items(1, Gate::pass, &gate);
  helpers_.offer(items);
  gate.wait_until_entered();
  std::atomic<bool> withdrawn{false};
  std::thread owner([&] {
    helpers_.withdraw(items);
    withdrawn.store(true);
  });
  EXPECT_TRUE(stays([&] { return !withdrawn.load(); }));
  gate.open();
  owner.join();
}

TEST_F(WorkItemTest, CanBeOfferedAgain) {
  std::vector<WorkItem> items = make_items(2, count_call, &done_);
  for (int round = 1; round <= 50; ++round) {
    helpers_.offer(items);
    wait_for([&] { return done_.load() == 2 * round; });
    helpers_.withdraw(items);
  }
}

TEST_F(WorkItemTest, OfManyOwnersAreDoneAtMostOnce) {
  constexpr int kRounds = 200;
  run_on_threads(4, [&](int) {
    for (int round = 0; round < kRounds; ++round) {
      std::atomic<int> mine{0};
      std::vector<WorkItem> items = make_items(3, count_call, &mine);
      helpers_.offer(items);
      helpers_.withdraw(items);
      EXPECT_LE(mine.load(), 3);
    }
  });
}

TEST_F(WorkItemTest, AreOfferedToNoMoreThanTheProcessorsBesideTheCaller) {
  EXPECT_LE(helpers_.most_helpers(), HelperPool::kMostHelpers);
  EXPECT_LT(helpers_.most_helpers(), platform::usable_processors());
}

}  // namespace
}  // namespace understudy
