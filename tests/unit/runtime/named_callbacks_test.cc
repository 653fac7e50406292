// SPDX-License-Identifier: Apache-2.0
#include "runtime/named_callbacks.h"

#include <gtest/gtest.h>

#include "unit/expect_result.h"

namespace understudy {
namespace {

using Callbacks = NamedCallbacks<int (*)()>;

int one() { return 1; }
int two() { return 2; }

TEST(NamedCallbacks, AreKeptInTheOrderOfTheirRegistration) {
  Callbacks callbacks;
  int arguments = 0;
  EXPECT_TRUE(is_ok(callbacks.add("z", two, nullptr)));
  EXPECT_TRUE(is_ok(callbacks.add("a", one, &arguments)));
  const auto all = callbacks.all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "z");
  EXPECT_EQ(all[0].function(), 2);
  EXPECT_EQ(all[1].function(), 1);
  EXPECT_EQ(all[1].arguments, &arguments);
}

TEST(NamedCallbacks, NameIsTakenUntilItIsRemoved) {
  Callbacks callbacks;
  EXPECT_TRUE(is_ok(callbacks.add("name", one, nullptr)));
  EXPECT_TRUE(fails_with(callbacks.add("name", two, nullptr), ErrorCode::kRefused));
  EXPECT_EQ(callbacks.all().front().function(), 1);
  EXPECT_TRUE(is_ok(callbacks.remove("name")));
  EXPECT_TRUE(fails_with(callbacks.remove("name"), ErrorCode::kRefused));
  EXPECT_TRUE(is_ok(callbacks.add("name", two, nullptr)));
}

}  // namespace
}  // namespace understudy
