// SPDX-License-Identifier: Apache-2.0
#include "base/scope_exit.h"

#include <gtest/gtest.h>

#include <string>

namespace understudy {
namespace {

TEST(ScopeExit, RunsWhenTheScopeIsLeftLastOneFirst) {
  std::string order;
  {
    ScopeExit first([&] { order += "1"; });
    ScopeExit second([&] { order += "2"; });
    EXPECT_EQ(order, "");
  }
  EXPECT_EQ(order, "21");
}

TEST(ScopeExit, DoesNotRunOnceDismissed) {
  bool ran = false;
  {
    ScopeExit undo([&] { ran = true; });
    undo.dismiss();
  }
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace understudy
