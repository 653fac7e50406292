// SPDX-License-Identifier: Apache-2.0
#include "runtime/failure_callbacks.h"

#include <gtest/gtest.h>

#include <vector>

namespace understudy {
namespace {

void one() {}
void two() {}
void tell(const TaskFailure&) {}

using Functions = std::vector<AnyFunction>;

TEST(FailureCallbacks, AreCalledInTheOrderOfTheirRegistrationAndTheSingleOneLast) {
  FailureCallbacks callbacks;
  callbacks.set_single(two, tell);
  callbacks.add(one, tell);
  callbacks.add(two, tell);
  callbacks.add(one, tell);  // once more
  EXPECT_EQ(callbacks.all(), (Functions{one, two, two}));
  callbacks.remove(one, tell);
  callbacks.remove(one, tell);
  EXPECT_EQ(callbacks.all(), (Functions{two, two}));
  callbacks.remove(two, tell);
  EXPECT_EQ(callbacks.all(), Functions{two});
  callbacks.set_single(nullptr, tell);
}

TEST(FailureCallbacks, StreamsAreObservedOnlyWhileThereIsOne) {
  FailureCallbacks callbacks;
  EXPECT_FALSE(has_failure_observer());
  callbacks.add(one, tell);
  EXPECT_TRUE(has_failure_observer());
  callbacks.set_single(two, tell);
  callbacks.remove(one, tell);
  EXPECT_TRUE(has_failure_observer());
  callbacks.set_single(nullptr, tell);
  EXPECT_FALSE(has_failure_observer());
}

}  // namespace
}  // namespace understudy
