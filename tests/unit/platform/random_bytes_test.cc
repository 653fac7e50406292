// SPDX-License-Identifier: Apache-2.0
#include "platform/random_bytes.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>
#include <set>

#include "support/refused_calls.h"
#include "unit/other_process.h"

namespace understudy::platform {
namespace {

void expect_all_different() {
  constexpr size_t kNumbers = 1000;
  std::set<uint64_t> numbers;
  while (numbers.size() < kNumbers && numbers.insert(random_number()).second) {
  }
  EXPECT_EQ(numbers.size(), kNumbers);
}

TEST(RandomNumber, IsAnotherOneEachTime) { expect_all_different(); }

TEST(RandomNumber, ComesFromAFileWhereTheCallIsRefused) {
  for (const int refusal : {ENOSYS, EPERM}) {
    OtherProcess child([&](const Line&) {
      ASSERT_TRUE(understudy_test::refuse_system_call(SYS_getrandom, refusal));
      expect_all_different();
    });
    EXPECT_TRUE(child.ended_well());
  }
}

TEST(RandomNumber, IsMadeUpWhereTheHostGivesNone) {
  const auto body = [](const Line& line) {
    ASSERT_TRUE(understudy_test::refuse_system_call(SYS_getrandom, ENOSYS));
    ASSERT_TRUE(understudy_test::refuse_system_call(SYS_openat, EACCES));
    expect_all_different();
    line.say(random_number());
  };
  OtherProcess one(body);
  OtherProcess other(body);
  EXPECT_NE(one.hear_word(), other.hear_word());
  EXPECT_TRUE(one.ended_well());
  EXPECT_TRUE(other.ended_well());
}

}  // namespace
}  // namespace understudy::platform
