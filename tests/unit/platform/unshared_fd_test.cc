// SPDX-License-Identifier: Apache-2.0
#include "platform/unshared_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

#include "unit/other_process.h"

namespace understudy::platform {
namespace {

UniqueFd open_something() { return UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)); }
bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) != -1; }

// Whether a fork child would have it.
void expect_in_child(int descriptor, bool wanted) {
  OtherProcess child([&](const Line&) { EXPECT_EQ(is_open(descriptor), wanted); });
  EXPECT_TRUE(child.ended_well());
}

TEST(UnsharedFdTest, OwnsNothingAtFirst) {
  EXPECT_FALSE(UnsharedFd().valid());
  EXPECT_FALSE(UnsharedFd(UniqueFd()).valid());
}

TEST(UnsharedFdTest, IsOpenHereAndNotInForkChildren) {
  const UnsharedFd descriptor(open_something());
  ASSERT_TRUE(descriptor.valid());
  expect_in_child(descriptor.get(), false);
  EXPECT_TRUE(is_open(descriptor.get()));
}

TEST(UnsharedFdTest, NextFileOfTheSameNumberIsLeftToChildren) {
  int number = -1;
  {
    const UnsharedFd descriptor(open_something());
    number = descriptor.get();
  }
  EXPECT_FALSE(is_open(number));
  const UniqueFd next = open_something();
  ASSERT_EQ(next.get(), number);
  expect_in_child(number, true);
}

TEST(UnsharedFdTest, MovesWithWhatChildrenMustNotHave) {
  UnsharedFd first(open_something());
  const int number = first.get();
  UnsharedFd second(std::move(first));
  EXPECT_EQ(second.get(), number);
  expect_in_child(number, false);
  UnsharedFd third(open_something());
  const int closed = third.get();
  third = std::move(second);
  EXPECT_EQ(third.get(), number);
  EXPECT_FALSE(is_open(closed));
  expect_in_child(number, false);
  third = {};
  EXPECT_FALSE(third.valid());
  EXPECT_FALSE(is_open(number));
}

}  // namespace
}  // namespace understudy::platform
