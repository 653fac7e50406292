// SPDX-License-Identifier: Apache-2.0
#include "runtime/named_callbacks.h"

#include <gtest/gtest.h>

#include <vector>

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
  std::vector<int> order;
  callbacks.for_each([&](const Callbacks::Callback& callback) {
    order.push_back(callback.function());
    EXPECT_EQ(callback.arguments, order.back() == 1 ? &arguments : nullptr);
    EXPECT_EQ(callbacks.name_of(callback), order.back() == 1 ? "a" : "z");
  });
  EXPECT_EQ(order, (std::vector<int>{2, 1}));
}

TEST(NamedCallbacks, MayBeAddedAndRemovedWhileTheyAreCalled) {
  Callbacks callbacks;
  EXPECT_TRUE(is_ok(callbacks.add("first", one, nullptr)));
  EXPECT_TRUE(is_ok(callbacks.add("gone", one, nullptr)));
  std::vector<int> order;
  callbacks.for_each([&](const Callbacks::Callback& callback) {
    order.push_back(callback.function());
    if (order.size() > 1) return;
    EXPECT_TRUE(is_ok(callbacks.remove("gone")));
    EXPECT_TRUE(is_ok(callbacks.remove("first")));
    EXPECT_EQ(callbacks.name_of(callback), "");
    EXPECT_TRUE(is_ok(callbacks.add("last", two, nullptr)));
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(NamedCallbacks, NameIsTakenUntilItIsRemoved) {
  Callbacks callbacks;
  EXPECT_TRUE(is_ok(callbacks.add("name", one, nullptr)));
  EXPECT_TRUE(fails_with(callbacks.add("name", two, nullptr), ErrorCode::kInvalidParam));
  EXPECT_EQ(callbacks.next_after(0)->function(), 1);
  EXPECT_TRUE(is_ok(callbacks.remove("name")));
  EXPECT_TRUE(fails_with(callbacks.remove("name"), ErrorCode::kInvalidParam));
  EXPECT_TRUE(is_ok(callbacks.add("name", two, nullptr)));
}

}  // namespace
}  // namespace understudy
