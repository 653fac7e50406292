// SPDX-License-Identifier: Apache-2.0
//
// Configuration is read once per process, so a test that wants another product or switch runs its
// body in a process of its own:
//
//   TEST(Reserve, RESVN_02_OnlyA3KnowsIt) {
//     US_FRESH_PROCESS({"UNDERSTUDY_PRODUCT", "a2"});
//     ... body, executed in a child with that variable set ...
//   }
//
// The child is this very binary with a filter for this very test; its failures are the test's.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

namespace understudy_test {

using Variable = std::pair<std::string, std::string>;

// True in the parent, after the child has run and its outcome was recorded; false in the child.
bool ran_in_fresh_process(std::initializer_list<Variable> environment);
// Whether this process is such a child.
bool is_fresh_process();

}  // namespace understudy_test

#define US_FRESH_PROCESS(...) \
  if (::understudy_test::ran_in_fresh_process({__VA_ARGS__})) return
