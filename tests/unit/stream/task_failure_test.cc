// SPDX-License-Identifier: Apache-2.0
#include "stream/task_failure.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "unit/expect_result.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

Error fault(const char* text) { return Error::format(ErrorCode::kCopyFault, "%s", text); }

class TaskFailureTest : public testing::Test {
 protected:
  TaskFailureTest() { slot_.state.store(stream_.state); }

  Stream slot_;
  const StreamReference stream_{&slot_, 1};
};

TEST_F(TaskFailureTest, StreamWithoutOneHasNothingToTell) {
  EXPECT_TRUE(is_ok(take_failure(stream_)));
  EXPECT_TRUE(is_ok(lasting_failure(stream_)));
  forget_failure(stream_);
  EXPECT_TRUE(is_ok(take_failure(stream_)));
}

TEST_F(TaskFailureTest, IsTakenOnce) {
  note_failure(stream_, fault("first"), FailureLife::kUntilTaken);
  EXPECT_TRUE(is_ok(lasting_failure(stream_)));
  EXPECT_TRUE(fails_with(take_failure(stream_), ErrorCode::kCopyFault));
  EXPECT_TRUE(is_ok(take_failure(stream_)));
}

TEST_F(TaskFailureTest, FirstOneIsKept) {
  note_failure(stream_, fault("first"), FailureLife::kUntilTaken);
  note_failure(stream_, fault("second"), FailureLife::kUntilTaken);
  const Result<void> taken = take_failure(stream_);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(std::string(taken.error().text()), "first");
  EXPECT_TRUE(is_ok(take_failure(stream_)));
}

TEST_F(TaskFailureTest, AfterItWasTakenTheNextOneIsKept) {
  note_failure(stream_, fault("first"), FailureLife::kUntilTaken);
  EXPECT_FALSE(take_failure(stream_).ok());
  note_failure(stream_, fault("second"), FailureLife::kUntilTaken);
  const Result<void> taken = take_failure(stream_);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(std::string(taken.error().text()), "second");
}

TEST_F(TaskFailureTest, LastingOneStaysUntilItIsForgotten) {
  note_failure(stream_, fault("for good"), FailureLife::kStays);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(fails_with(take_failure(stream_), ErrorCode::kCopyFault));
    EXPECT_TRUE(fails_with(lasting_failure(stream_), ErrorCode::kCopyFault));
  }
  forget_failure(stream_);
  EXPECT_TRUE(is_ok(lasting_failure(stream_)));
  note_failure(stream_, fault("later"), FailureLife::kUntilTaken);
  EXPECT_TRUE(is_ok(lasting_failure(stream_)));
  EXPECT_FALSE(take_failure(stream_).ok());
  EXPECT_TRUE(is_ok(take_failure(stream_)));
}

TEST_F(TaskFailureTest, OneThatWasThereBeforeTheStreamStoppedIsTheOneToldFromThenOn) {
  note_failure(stream_, fault("first"), FailureLife::kUntilTaken);
  note_failure(stream_, fault("stop"), FailureLife::kStays);
  for (int i = 0; i < 2; ++i) {
    const Result<void> told = take_failure(stream_);
    ASSERT_FALSE(told.ok());
    EXPECT_EQ(std::string(told.error().text()), "first");
  }
}

TEST_F(TaskFailureTest, OfSeveralThreadsThatTakeItOneGetsIt) {
  for (int round = 0; round < 50; ++round) {
    note_failure(stream_, fault("once"), FailureLife::kUntilTaken);
    std::atomic<int> taken{0};
    run_on_threads(3, [&](int) {
      if (!take_failure(stream_).ok()) taken.fetch_add(1);
    });
    ASSERT_EQ(taken.load(), 1);
  }
}

TEST_F(TaskFailureTest, WhatTheOwnerNotesIsToldLikewise) {
  note_failure(slot_, fault("its own"), FailureLife::kStays);
  EXPECT_TRUE(fails_with(take_failure(stream_), ErrorCode::kCopyFault));
  EXPECT_TRUE(fails_with(lasting_failure(stream_), ErrorCode::kCopyFault));
}

TEST_F(TaskFailureTest, StaleReferenceNeitherSeesNorChangesTheNextStream) {
  slot_.state.store(3);
  note_failure(slot_, fault("of the next stream"), FailureLife::kStays);
  EXPECT_TRUE(is_ok(take_failure(stream_)));
  EXPECT_TRUE(is_ok(lasting_failure(stream_)));
  forget_failure(stream_);
  EXPECT_FALSE(take_failure({&slot_, 3}).ok());
  forget_failure({&slot_, 3});
  note_failure(stream_, fault("of the last stream"), FailureLife::kStays);
  EXPECT_TRUE(is_ok(take_failure({&slot_, 3})));
}

TEST(FailureObservers, HearInTheirOrderWhileTheyAreSet) {
  static std::string heard;
  heard.clear();
  const Error error = fault("of a task");
  const TaskFailure failure{0, 1, 2, 3, &error};
  EXPECT_FALSE(has_failure_observer());
  tell_failure_observers(failure);
  set_failure_observer(ObserverKind::kCallbacks, [](const TaskFailure&) { heard += "callbacks "; });
  set_failure_observer(ObserverKind::kErrorListener, [](const TaskFailure&) { heard += "old "; });
  set_failure_observer(ObserverKind::kErrorListener, [](const TaskFailure&) { heard += "new "; });
  EXPECT_TRUE(has_failure_observer());
  tell_failure_observers(failure);
  EXPECT_EQ(heard, "new callbacks ");
  set_failure_observer(ObserverKind::kErrorListener, nullptr);
  EXPECT_TRUE(has_failure_observer());
  set_failure_observer(ObserverKind::kCallbacks, nullptr);
  EXPECT_FALSE(has_failure_observer());
}

}  // namespace
}  // namespace understudy
