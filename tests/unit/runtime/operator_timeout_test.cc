// SPDX-License-Identifier: Apache-2.0
#include "runtime/operator_timeout.h"

#include <gtest/gtest.h>

namespace understudy {
namespace {

TEST(OperatorTimeout, UntilItIsSetTheProductDecides) {
  const OperatorTimeout timeout({.step = 100'000, .unset = 68});
  EXPECT_EQ(timeout.value(), 68'000'000u);
}

TEST(OperatorTimeout, WishesAreRoundedUpToStepsAndCapped) {
  OperatorTimeout timeout({.step = 100'000, .unset = 68});
  EXPECT_EQ(timeout.set(1), 100'000u);
  EXPECT_EQ(timeout.set(100'000), 100'000u);
  EXPECT_EQ(timeout.set(100'001), 200'000u);
  EXPECT_EQ(timeout.set(UINT64_MAX), 25'400'000u);
  EXPECT_EQ(timeout.set(0), 25'400'000u) << "as long as possible";
  EXPECT_EQ(timeout.value(), 25'400'000u);
}

TEST(OperatorTimeout, WithShortStepsThereMayBeNoLimit) {
  OperatorTimeout timeout({.step = 99'999, .unset = 68});
  EXPECT_EQ(timeout.set(0), OperatorTimeout::kNoLimit);
  EXPECT_EQ(timeout.set(UINT64_MAX), 254u * 99'999);
}

}  // namespace
}  // namespace understudy
