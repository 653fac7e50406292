// SPDX-License-Identifier: Apache-2.0
#include "stream/scheduler.h"

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
#include "unit/expect_result.h"
#include "unit/platform/planned_fault.h"
#include "unit/run_on_threads.h"
#include "unit/stream/stream_tools.h"

namespace understudy {
namespace {

using platform::PlannedFault;
using platform::SystemCall;

void complete(Stream& stream) { stream.completed.store(stream.submitted.load()); }

// Does with each stream what the test says.
class ScriptedClient final : public WorkerClient {
 public:
  std::function<RunEnd(Stream&)> script = [](Stream& stream) {
    complete(stream);
    return RunEnd::kEmpty;
  };
  std::atomic<int> recycled{0};
  std::atomic<int> wakes{0};
  std::atomic<bool> wants_waking{false};

  RunEnd run(Stream& stream) override { return script(stream); }
  void recycle(Stream&) override { recycled.fetch_add(1); }
  Deadline next_wake() const override { return wants_waking.load() ? Deadline() : kNever; }
  void wake_due() override {
    wants_waking.store(false);
    wakes.fetch_add(1);
  }
};

class SchedulerTest : public testing::Test {
 protected:
  ~SchedulerTest() override {
    for (Gate& gate : gates_) gate.open();
  }

  static unsigned most_workers() { return std::clamp(platform::usable_processors(), 2U, 16U); }

  void add_task(Stream& stream) {
    stream.submitted.fetch_add(1);
    scheduler_.offer_tasks(stream);
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
    const auto rest = client_.script;
    client_.script = [this, inside, rest](Stream& stream) {
      Gate* const gate = gate_of(stream);
      if (gate == nullptr) return rest(stream);
      if (inside == Inside::kUserCode) scheduler_.begin_user_code();
      gate->pass();
      if (inside == Inside::kUserCode) scheduler_.end_user_code();
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
    client_.script = [this](Stream& stream) {
      note_run(stream);
      complete(stream);
      return RunEnd::kEmpty;
    };
  }

  // Workers look at streams for a moment after their last task: streams end behind the scheduler.
  std::deque<Stream> streams_;
  std::deque<Gate> gates_;
  unsigned blocked_ = 0;
  std::mutex order_mutex_;
  std::vector<const Stream*> order_;
  ScriptedClient client_;
  Scheduler scheduler_{client_};
};

TEST_F(SchedulerTest, StreamWithTasksIsRunByAWorker) {
  std::atomic<uint32_t> thread{0};
  client_.script = [&](Stream& stream) {
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

TEST_F(SchedulerTest, EveryTaskOfManyThreadsIsSeen) {
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

TEST_F(SchedulerTest, HigherPrioritiesAreTakenFirstAndEqualOnesInOrder) {
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

TEST_F(SchedulerTest, StreamWhoseTurnIsOverGoesBehindTheOthers) {
  Stream* second = nullptr;
  client_.script = [&](Stream& stream) {
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

TEST_F(SchedulerTest, StreamWhoseTurnIsOverGoesOnWhereNobodyElseIsReady) {
  std::atomic<int> turns{0};
  client_.script = [&](Stream& stream) {
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

TEST_F(SchedulerTest, ParkedStreamIsLeftAloneUntilItIsResumed) {
  std::atomic<int> runs{0};
  client_.script = [&](Stream& stream) {
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
  scheduler_.resume(stream);
  wait_until_done(stream);
  EXPECT_EQ(runs.load(), 2);
}

TEST_F(SchedulerTest, OnlyAReadyStreamCanBeClaimedAndOnce) {
  block_all_workers();
  Stream& stream = make_stream();
  EXPECT_FALSE(scheduler_.try_claim(stream));
  add_task(stream);
  EXPECT_TRUE(scheduler_.try_claim(stream));
  EXPECT_EQ(stream.run_state.load(), RunState::kRunning);
  EXPECT_FALSE(scheduler_.try_claim(stream));
  stream.run_state.store(RunState::kParked);
  EXPECT_FALSE(scheduler_.try_claim(stream));
}

TEST_F(SchedulerTest, ClaimFromTheMiddleLeavesTheOthersInOrder) {
  note_all_runs();
  block_all_workers();
  std::array<Stream*, 4> ready{};
  for (Stream*& stream : ready) {
    stream = &make_stream();
    add_task(*stream);
  }
  ASSERT_TRUE(scheduler_.try_claim(*ready[1]));
  ASSERT_TRUE(scheduler_.try_claim(*ready[3]));
  gates_[0].open();
  wait_until_done(*ready[2]);
  EXPECT_EQ(order(), (std::vector<const Stream*>{ready[0], ready[2]}));
}

TEST_F(SchedulerTest, StreamForAWorkerCannotBeClaimedByAWaitingThread) {
  block_all_workers();
  Stream& stream = make_stream();
  add_task(stream);
  ASSERT_TRUE(scheduler_.try_claim(stream));
  scheduler_.hand_over(stream, Scheduler::Successor::kWorker);
  EXPECT_EQ(stream.run_state.load(), RunState::kReady);
  EXPECT_FALSE(scheduler_.try_claim(stream));
  gates_[0].open();
  wait_until_done(stream);
}

TEST_F(SchedulerTest, WishForAWorkerEndsWithTheTaskItWasFor) {
  block_all_workers();
  Stream& stream = make_stream();
  ASSERT_TRUE(scheduler_.try_own(stream));
  scheduler_.hand_over(stream, Scheduler::Successor::kWorker);
  ASSERT_TRUE(scheduler_.try_own(stream));
  scheduler_.hand_over(stream, Scheduler::Successor::kAnyone);
  EXPECT_TRUE(scheduler_.try_claim(stream));
}

TEST_F(SchedulerTest, IdleAndReadyStreamsCanBeOwnedAndOthersNot) {
  block_all_workers();
  Stream& stream = make_stream();
  EXPECT_TRUE(scheduler_.try_own(stream));
  EXPECT_FALSE(scheduler_.try_own(stream));
  EXPECT_TRUE(scheduler_.release(stream));
  add_task(stream);
  EXPECT_TRUE(scheduler_.try_own(stream));
  stream.run_state.store(RunState::kParked);
  EXPECT_FALSE(scheduler_.try_own(stream));
}

TEST_F(SchedulerTest, OwnerStaysOwnerIfATaskCameInBetween) {
  Stream& stream = make_stream();
  ASSERT_TRUE(scheduler_.try_own(stream));
  add_task(stream);
  EXPECT_FALSE(scheduler_.release(stream));
  EXPECT_EQ(stream.run_state.load(), RunState::kRunning);
  complete(stream);
  EXPECT_TRUE(scheduler_.release(stream));
  EXPECT_EQ(stream.run_state.load(), RunState::kIdle);
  EXPECT_EQ(client_.recycled.load(), 0);
}

TEST_F(SchedulerTest, LastOwnerOfADestroyedStreamGivesItBack) {
  Stream& stream = make_stream();
  ASSERT_TRUE(scheduler_.try_own(stream));
  stream.is_orphan.store(true);
  EXPECT_TRUE(scheduler_.release(stream));
  EXPECT_EQ(client_.recycled.load(), 1);
}

TEST_F(SchedulerTest, WorkersInUserCodeMakeRoomForOthers) {
  block_all_workers(Inside::kUserCode);
  Stream& stream = make_stream();
  add_task(stream);
  wait_until_done(stream);
}

TEST_F(SchedulerTest, WorkerThatEntersUserCodeCallsAnotherForWhatIsReady) {
  block_all_workers();
  Stream& stream = make_stream();
  add_task(stream);
  EXPECT_TRUE(stays([&] { return stream.run_state.load() == RunState::kReady; }));
  scheduler_.begin_user_code();
  wait_until_done(stream);
  scheduler_.end_user_code();
}

TEST_F(SchedulerTest, FirstWorkerThatCannotBeStartedIsAnErrorAndTriedAgain) {
  {
    const PlannedFault fault(SystemCall::kStartThread, 1, EAGAIN);
    EXPECT_TRUE(fails_with(scheduler_.start(), ErrorCode::kOutOfResources));
  }
  EXPECT_TRUE(is_ok(scheduler_.start()));
  EXPECT_TRUE(is_ok(scheduler_.start()));
}

TEST_F(SchedulerTest, WhereNoFurtherWorkerCanBeStartedTheOthersDoTheWork) {
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

TEST_F(SchedulerTest, WorkerWakesStreamsWhoseTimeHasCome) {
  ASSERT_TRUE(is_ok(scheduler_.start()));
  client_.wants_waking.store(true);
  scheduler_.poke();
  wait_for([&] { return client_.wakes.load() > 0; });
}

TEST_F(SchedulerTest, WakesAreNotForgottenWhileAStreamHasManyTurns) {
  client_.script = [&](Stream& stream) {
    client_.wants_waking.store(true);
    if (client_.wakes.load() < 3) return RunEnd::kTurnOver;
    client_.wants_waking.store(false);
    complete(stream);
    return RunEnd::kEmpty;
  };
  Stream& stream = make_stream();
  add_task(stream);
  wait_until_done(stream);
}

// A worker that looks out for tasks of its own stream keeps others from being called. If it finds
// one, it must not be the only one to know of the stream that became ready meanwhile.
TEST_F(SchedulerTest, StreamThatBecomesReadyBesideABusyOneIsTakenByAnotherWorker) {
  if (scheduler_.patience() == Clock::duration::zero()) GTEST_SKIP() << "nobody looks out";
  Stream& busy = make_stream();
  Stream& other = make_stream();
  std::atomic<bool> waits{false};
  std::atomic<int> late{0};
  client_.script = [&](Stream& stream) {
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

// ---- Errands ----

class ErrandTest : public SchedulerTest {
 protected:
  std::vector<Errand> make_errands(size_t count, void (*work)(void*), void* argument) {
    return std::vector<Errand>(count, Errand{work, argument});
  }
  std::atomic<int> done_{0};
};

TEST_F(ErrandTest, AreDoneByWorkers) {
  std::vector<Errand> errands = make_errands(3, count_call, &done_);
  scheduler_.offer(errands);
  wait_for([&] { return done_.load() == 3; });
  scheduler_.withdraw(errands);
  EXPECT_EQ(done_.load(), 3);
}

TEST_F(ErrandTest, MoreThanThereAreWorkersAreAllDone) {
  const size_t count = 3 * most_workers() + 1;
  std::vector<Errand> errands = make_errands(count, count_call, &done_);
  scheduler_.offer(errands);
  wait_for([&] { return done_.load() == static_cast<int>(count); });
  scheduler_.withdraw(errands);
}

TEST_F(ErrandTest, WhatNobodyTookIsWithdrawnAndNeverDone) {
  block_all_workers();
  std::vector<Errand> errands = make_errands(3, count_call, &done_);
  std::vector<Errand> others = make_errands(2, count_call, &done_);
  scheduler_.offer(errands);
  scheduler_.offer(others);
  scheduler_.withdraw(errands);  // from behind the others
  gates_[0].open();
  wait_for([&] { return done_.load() == 2; });
  scheduler_.withdraw(others);
  EXPECT_EQ(done_.load(), 2);
}

TEST_F(ErrandTest, StreamsComeFirst) {
  std::atomic<int> seen{-1};
  client_.script = [&](Stream& stream) {
    seen.store(done_.load());
    complete(stream);
    return RunEnd::kEmpty;
  };
  block_all_workers();
  std::vector<Errand> errands = make_errands(1, count_call, &done_);
  scheduler_.offer(errands);
  Stream& stream = make_stream();
  add_task(stream);
  gates_[0].open();
  wait_for([&] { return done_.load() == 1; });
  EXPECT_EQ(seen.load(), 0);
  scheduler_.withdraw(errands);
}

TEST_F(ErrandTest, WithdrawingWaitsForOneThatHasBegun) {
  Gate gate;
  std::vector<Errand> errands = make_errands(1, Gate::pass, &gate);
  scheduler_.offer(errands);
  gate.wait_until_entered();
  std::atomic<bool> withdrawn{false};
  std::thread owner([&] {
    scheduler_.withdraw(errands);
    withdrawn.store(true);
  });
  EXPECT_TRUE(stays([&] { return !withdrawn.load(); }));
  gate.open();
  owner.join();
}

TEST_F(ErrandTest, CanBeOfferedAgain) {
  std::vector<Errand> errands = make_errands(2, count_call, &done_);
  for (int round = 1; round <= 50; ++round) {
    scheduler_.offer(errands);
    wait_for([&] { return done_.load() == 2 * round; });
    scheduler_.withdraw(errands);
  }
}

TEST_F(ErrandTest, OfManyOwnersAreDoneAtMostOnce) {
  constexpr int kRounds = 200;
  run_on_threads(4, [&](int) {
    for (int round = 0; round < kRounds; ++round) {
      std::atomic<int> mine{0};
      std::vector<Errand> errands = make_errands(3, count_call, &mine);
      scheduler_.offer(errands);
      scheduler_.withdraw(errands);
      EXPECT_LE(mine.load(), 3);
    }
  });
}

TEST_F(ErrandTest, AreOfferedToNoMoreThanTheProcessorsBesideTheCaller) {
  EXPECT_LE(scheduler_.most_helpers(), CopyHelpers::kMostHelpers);
  EXPECT_LT(scheduler_.most_helpers(), platform::usable_processors());
}

}  // namespace
}  // namespace understudy
