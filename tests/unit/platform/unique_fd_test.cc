// SPDX-License-Identifier: Apache-2.0
#include "platform/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

namespace understudy::platform {
namespace {

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) != -1; }

TEST(UniqueFd, ClosesAtItsEnd) {
  const int number = open("/dev/null", O_RDONLY);
  { const UniqueFd owner(number); }
  EXPECT_FALSE(is_open(number));
}

TEST(UniqueFd, MovedFromOwnsNothing) {
  UniqueFd first(open("/dev/null", O_RDONLY));
  const int number = first.get();
  {
    const UniqueFd second(std::move(first));
    EXPECT_EQ(second.get(), number);
    EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): that is what is tested
  }
  EXPECT_FALSE(is_open(number));
}

TEST(UniqueFd, AssignmentClosesWhatItReplaces) {
  UniqueFd first(open("/dev/null", O_RDONLY));
  const int replaced = first.get();
  UniqueFd second(open("/dev/null", O_RDONLY));
  const int kept = second.get();
  first = std::move(second);
  EXPECT_EQ(first.get(), kept);
  EXPECT_FALSE(is_open(replaced));
  EXPECT_TRUE(is_open(kept));
}

TEST(UniqueFd, DefaultOwnsNothing) { EXPECT_FALSE(UniqueFd().valid()); }

}  // namespace
}  // namespace understudy::platform
