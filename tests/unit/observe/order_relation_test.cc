// SPDX-License-Identifier: Apache-2.0
#include "observe/order_relation.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

namespace understudy {
namespace {

constexpr VirtualRange kBytes{0x1000, 64};
constexpr MemoryUse kRead{kBytes, AccessUse::kRead};
constexpr MemoryUse kWrite{kBytes, AccessUse::kWrite};
constexpr MemoryUse kEnd{kBytes, AccessUse::kEnd};

// Queues tasks and runs them at once, or later.
class OrderRelationTest : public testing::Test {
 protected:
  StreamTask queue(uint32_t stream, const std::vector<MemoryUse>& uses, QueuedGate gate = {}) {
    QueuedTask task;
    task.position = ++last_[stream];
    task.uses = uses;
    task.gate = gate;
    relation_.add_task(stream, task);
    return {stream, task.position};
  }
  StreamTask queue_change(uint32_t stream, uint32_t notify) {
    QueuedTask task;
    task.position = ++last_[stream];
    task.changed_notify = notify;
    relation_.add_task(stream, task);
    return {stream, task.position};
  }
  // How many conflicts the task has with earlier ones.
  size_t run(StreamTask task) {
    std::vector<TaskDisorder> found;
    const std::optional<QueuedTask> queued = relation_.end_task(task);
    EXPECT_TRUE(queued);
    if (queued) relation_.use(task, queued->uses, queued->place, found);
    return found.size();
  }
  // How many conflicts the end has, if it comes at once.
  size_t end_behind(StreamTask last) {
    QueuedTask end;
    end.position = last.position;
    end.uses = {kEnd};
    std::vector<TaskDisorder> found;
    relation_.add_end(last.stream, end, found);
    return found.size();
  }
  size_t queue_and_run(uint32_t stream, const MemoryUse& use) { return run(queue(stream, {use})); }
  StreamTask record(uint32_t stream) {
    const StreamTask task = queue(stream, {});
    relation_.record(task);
    run(task);
    return task;
  }

  OrderRelation relation_;
  std::map<uint32_t, uint64_t> last_;
};

TEST_F(OrderRelationTest, TasksOfOneStreamAreInOrder) {
  EXPECT_EQ(queue_and_run(1, kWrite), 0U);
  EXPECT_EQ(queue_and_run(1, kWrite), 0U);
}

TEST_F(OrderRelationTest, TasksOfTwoStreamsAreNot) {
  EXPECT_EQ(queue_and_run(1, kWrite), 0U);
  EXPECT_EQ(queue_and_run(2, kRead), 1U);
}

TEST_F(OrderRelationTest, WaitForARecordComesBehindWhatWasBeforeIt) {
  queue_and_run(1, kWrite);
  const StreamTask recorded = record(1);
  relation_.wait(2, recorded);
  EXPECT_EQ(queue_and_run(2, kRead), 0U);
}

TEST_F(OrderRelationTest, RecordDoesNotReachWhatComesBehindIt) {
  const StreamTask recorded = record(1);
  queue_and_run(1, kWrite);
  relation_.wait(2, recorded);
  EXPECT_EQ(queue_and_run(2, kRead), 1U);
}

TEST_F(OrderRelationTest, WhatTheProgramKnowsComesBeforeWhatItQueuesNext) {
  queue_and_run(1, kWrite);
  const StreamTask early = queue(2, {kRead});
  relation_.know({1, 1});
  EXPECT_EQ(run(early), 1U) << "it was queued before the program knew";
  EXPECT_EQ(queue_and_run(3, kRead), 0U);
}

TEST_F(OrderRelationTest, NotifyCarriesTheClockOfWhatChangedIt) {
  queue_and_run(1, kWrite);
  const StreamTask change = queue(1, {});
  relation_.change_notify(change, 9);
  run(change);
  relation_.wait_for_notify(2, 9);
  EXPECT_EQ(queue_and_run(2, kRead), 0U);
  relation_.wait_for_notify(3, 8);
  EXPECT_EQ(queue_and_run(3, kWrite), 1U);
}

TEST_F(OrderRelationTest, CallConflictsWithWhatIsQueuedAndWhatIsDone) {
  const StreamTask task = queue(1, {kWrite});
  EXPECT_TRUE(relation_.find_conflict(kRead));
  run(task);
  EXPECT_TRUE(relation_.find_conflict(kRead));
  relation_.know(task);
  EXPECT_FALSE(relation_.find_conflict(kRead));
}

TEST_F(OrderRelationTest, CallMayPrepareWhatAWaitingTaskUses) {
  queue(1, {}, {QueuedGate::Kind::kOpen, {}});
  queue(1, {kRead});
  EXPECT_FALSE(relation_.find_conflict(kWrite));
  EXPECT_TRUE(relation_.find_conflict(kEnd)) << "but not end the memory";
}

TEST_F(OrderRelationTest, TaskThatWaitsForARecordRunsByItself) {
  const StreamTask recorded = queue(2, {});
  queue(1, {}, {QueuedGate::Kind::kRecord, recorded});
  queue(1, {kRead});
  EXPECT_TRUE(relation_.find_conflict(kWrite));
}

// Each step of a pipeline waits for the one before: as many ways lead back as there are rounds, at
// each step.
TEST_F(OrderRelationTest, LongPipelineIsLookedAtOnce) {
  for (int round = 0; round < 300; ++round) {
    StreamTask recorded = queue(1, {});
    for (uint32_t stream = 2; stream <= 9; ++stream) {
      queue(stream, {}, {QueuedGate::Kind::kRecord, recorded});
      recorded = queue(stream, {});
    }
  }
  queue(9, {kWrite});
  EXPECT_TRUE(relation_.find_conflict(kRead));
}

TEST_F(OrderRelationTest, FunctionOfTheProgramComesBehindItsStream) {
  queue_and_run(1, kWrite);
  const StreamTask function = queue(1, {});
  relation_.begin_function(function);
  EXPECT_FALSE(relation_.find_conflict(kRead));
  relation_.end_function();
  relation_.go_on(1);
}

TEST_F(OrderRelationTest, UseBehindTheEndOfTheMemoryOnAnotherStreamIsInNoOrder) {
  EXPECT_EQ(queue_and_run(2, kEnd), 0U);
  EXPECT_EQ(queue_and_run(1, kWrite), 1U);
}

TEST_F(OrderRelationTest, EndBehindATaskComesWhenTheTaskIsDone) {
  const StreamTask waiting = queue(1, {});
  EXPECT_EQ(end_behind(waiting), 0U);
  EXPECT_EQ(queue_and_run(2, kWrite), 0U) << "the memory has yet to end";
  run(waiting);
  std::vector<TaskDisorder> found;
  relation_.make_ends(waiting, found);
  EXPECT_EQ(found.size(), 1U);
}

TEST_F(OrderRelationTest, EndBehindATaskThatIsDoneComesAtOnce) {
  queue_and_run(2, kWrite);
  const StreamTask done = queue(1, {});
  run(done);
  EXPECT_EQ(end_behind(done), 1U);
  EXPECT_EQ(end_behind({3, 0}), 1U) << "also where the stream had no task";
}

TEST_F(OrderRelationTest, EndThatOvertakesAQueuedTaskIsToldOnce) {
  const StreamTask early = queue(2, {kWrite});
  EXPECT_EQ(end_behind({1, 0}), 1U);
  EXPECT_EQ(run(early), 0U);
}

TEST_F(OrderRelationTest, EndDoesNotOvertakeWhatIsQueuedInTheNextLifeOfTheMemory) {
  const StreamTask waiting = queue(1, {});
  EXPECT_EQ(end_behind(waiting), 0U);
  relation_.forget(kBytes);
  queue(2, {kWrite});
  run(waiting);
  std::vector<TaskDisorder> found;
  relation_.make_ends(waiting, found);
  EXPECT_TRUE(found.empty());
}

TEST_F(OrderRelationTest, EndComesBehindWhatTheProgramKnew) {
  queue_and_run(2, kWrite);
  const StreamTask waiting = queue(1, {});
  relation_.know({2, 1});
  EXPECT_EQ(end_behind(waiting), 0U);
  run(waiting);
  std::vector<TaskDisorder> found;
  relation_.make_ends(waiting, found);
  EXPECT_TRUE(found.empty());
}

TEST_F(OrderRelationTest, TaskThatEndsMemoryLeavesNothingToConflictWith) {
  std::vector<TaskDisorder> found;
  const StreamTask end = queue(1, {kEnd});
  relation_.end_memory(end, found);
  EXPECT_TRUE(found.empty()) << "not even itself";
  EXPECT_EQ(queue_and_run(2, kWrite), 0U) << "others may have the memory before the task is done";
  EXPECT_EQ(run(end), 0U);
  EXPECT_EQ(queue_and_run(2, kWrite), 0U);
}

TEST_F(OrderRelationTest, TaskThatWillNeverRunConflictsWithNothing) {
  const StreamTask dropped = queue(1, {kWrite});
  relation_.know(dropped);
  EXPECT_FALSE(relation_.find_conflict(kEnd));
}

TEST_F(OrderRelationTest, WaitForAnythingComesBehindATaskThatHasBegun) {
  const StreamTask begun = queue(1, {kWrite});
  relation_.wait_for_others(2);
  run(begun);
  EXPECT_EQ(queue_and_run(2, kRead), 0U);
}

TEST_F(OrderRelationTest, NextTaskComesBehindAllThatIsDone) {
  queue_and_run(1, kWrite);
  relation_.put_behind_all(2, 0);
  EXPECT_EQ(queue_and_run(2, kRead), 0U);
}

TEST_F(OrderRelationTest, ProgramKnowsWhatAStreamHasToldIt) {
  queue_and_run(1, kWrite);
  const StreamTask value = queue(1, {});
  relation_.tell(value);
  EXPECT_FALSE(relation_.find_conflict(kRead));
}

TEST_F(OrderRelationTest, MemoryThatEndsOnTwoStreamsEndsOnce) {
  const StreamTask first = queue(1, {kEnd});
  const StreamTask second = queue(2, {kEnd});
  std::vector<TaskDisorder> found;
  relation_.end_memory(second, found);
  EXPECT_EQ(found.size(), 1U);
  relation_.end_memory(first, found);
  EXPECT_EQ(found.size(), 1U);
}

TEST_F(OrderRelationTest, MemoryThatBeginsAgainHasNoPast) {
  queue_and_run(1, kWrite);
  relation_.forget(kBytes);
  EXPECT_EQ(queue_and_run(2, kWrite), 0U);
}

// ---- Waits that cannot end ----

constexpr uint32_t kFlag = 4;
constexpr QueuedGate kFlagGate{QueuedGate::Kind::kNotify, {}, kFlag};

TEST_F(OrderRelationTest, WaitForANotifyThatNothingSetsIsEndless) {
  const StreamTask wait = queue(1, {}, kFlagGate);
  const StreamTask behind = queue(1, {kWrite});
  const auto found = relation_.find_endless_wait(behind);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->notify, kFlag);
  EXPECT_EQ(found->task.position, wait.position);
}

TEST_F(OrderRelationTest, WaitForANotifyThatAQueuedTaskSetsEnds) {
  const StreamTask wait = queue(1, {}, kFlagGate);
  queue_change(2, kFlag);
  EXPECT_FALSE(relation_.find_endless_wait(wait));
}

TEST_F(OrderRelationTest, WaitForANotifyThatWasSetEnds) {
  const StreamTask wait = queue(1, {}, kFlagGate);
  const StreamTask change = queue_change(2, kFlag);
  relation_.change_notify(change, kFlag);
  run(change);
  EXPECT_FALSE(relation_.find_endless_wait(wait));
  relation_.wait_for_notify(1, kFlag);
  EXPECT_FALSE(relation_.find_endless_wait(wait)) << "it has passed";
}

TEST_F(OrderRelationTest, StreamsThatWaitForEachOtherWaitForEver) {
  const StreamTask wait = queue(1, {}, kFlagGate);
  queue_change(1, kFlag + 1);
  queue(2, {}, {QueuedGate::Kind::kNotify, {}, kFlag + 1});
  queue_change(2, kFlag);
  EXPECT_TRUE(relation_.find_endless_wait(wait));
}

TEST_F(OrderRelationTest, WaitBehindARecordThatCannotComeIsEndless) {
  queue(2, {}, kFlagGate);
  const StreamTask recorded = queue(2, {});
  const StreamTask wait = queue(1, {}, {QueuedGate::Kind::kRecord, recorded});
  const auto found = relation_.find_endless_wait(wait);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->task.stream, 2U);
}

TEST_F(OrderRelationTest, InDoubtAWaitEnds) {
  const StreamTask wait = queue(1, {}, kFlagGate);
  const StreamTask open = queue(2, {}, {QueuedGate::Kind::kOpen, {}});
  EXPECT_FALSE(relation_.find_endless_wait(wait)) << "a function may set it";
  run(open);
  EXPECT_TRUE(relation_.find_endless_wait(wait));
  relation_.share_notify(kFlag);
  EXPECT_FALSE(relation_.find_endless_wait(wait)) << "another process may set it";
}

TEST_F(OrderRelationTest, RangesThatAreNoneAreLeftOut) {
  EXPECT_EQ(queue_and_run(1, {{0x1000, 0}, AccessUse::kWrite}), 0U);
  EXPECT_EQ(queue_and_run(2, {{~uint64_t{0} - 10, 100}, AccessUse::kWrite}), 0U);
  EXPECT_FALSE(relation_.find_conflict({{~uint64_t{0} - 10, 100}, AccessUse::kWrite}));
}

}  // namespace
}  // namespace understudy
