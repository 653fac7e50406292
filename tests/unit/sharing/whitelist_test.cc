// SPDX-License-Identifier: Apache-2.0
#include "sharing/whitelist.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <limits>

#include "unit/expect_result.h"
#include "unit/other_process.h"
#include "unit/run_on_threads.h"

namespace understudy {
namespace {

constexpr ShareToken kShare(3, 100);
constexpr ShareToken kSameShareLater(3, 101);
constexpr ShareToken kOtherShare(4, 100);

platform::ProcessIdentity own() { return platform::own_identity(); }
std::array<int32_t, 1> own_number() { return {getpid()}; }

TEST(WhitelistTest, NamesNobodyAtFirst) {
  const Whitelist list;
  EXPECT_FALSE(list.has(kShare, own()));
  EXPECT_FALSE(list.has(kShare, {}));
}

TEST(WhitelistTest, NamesProcessesPerShare) {
  Whitelist list;
  EXPECT_TRUE(is_ok(list.add(kShare, own_number())));
  EXPECT_TRUE(list.has(kShare, own()));
  EXPECT_FALSE(list.has(kOtherShare, own()));
  EXPECT_FALSE(list.has(kSameShareLater, own()));
  list.remove(kOtherShare);
  EXPECT_TRUE(list.has(kShare, own()));
  list.remove(kSameShareLater);
  EXPECT_TRUE(list.has(kShare, own()));
  list.remove(kShare);
  EXPECT_FALSE(list.has(kShare, own()));
}

TEST(WhitelistTest, GrowsAndTakesNamesTwice) {
  OtherProcess other([](const Line& line) {
    line.say(platform::own_identity().birth);
    line.hear();
  });
  const platform::ProcessIdentity second{other.id(), other.hear_word()};
  Whitelist list;
  EXPECT_TRUE(is_ok(list.add(kShare, own_number())));
  EXPECT_FALSE(list.has(kShare, second));
  EXPECT_TRUE(is_ok(list.add(kShare, std::array<int32_t, 3>{other.id(), getpid(), other.id()})));
  EXPECT_TRUE(list.has(kShare, second));
  EXPECT_TRUE(list.has(kShare, own()));
}

TEST(WhitelistTest, NumberOfALaterProcessIsNotMeant) {
  Whitelist list;
  EXPECT_TRUE(is_ok(list.add(kShare, own_number())));
  platform::ProcessIdentity later = own();
  ++later.birth;
  EXPECT_FALSE(list.has(kShare, later));
}

TEST(WhitelistTest, NumbersThatNobodyHasNameNobody) {
  OtherProcess ended([](const Line&) {});
  const int32_t number = ended.id();
  EXPECT_TRUE(ended.ended_well());
  Whitelist list;
  EXPECT_TRUE(is_ok(list.add(
      kShare, std::array<int32_t, 4>{0, -1, number, std::numeric_limits<int32_t>::max()})));
  EXPECT_FALSE(list.has(kShare, {}));
  EXPECT_FALSE(list.has(kShare, {number, 0}));
  EXPECT_TRUE(is_ok(list.add(kShare, {})));
  EXPECT_FALSE(list.has(kShare, own()));
}

TEST(WhitelistTest, LaterExportForgetsWhoWasNamedForAnEarlierOne) {
  Whitelist list;
  EXPECT_TRUE(is_ok(list.add(kShare, own_number())));
  EXPECT_TRUE(is_ok(list.add(kSameShareLater, {})));
  EXPECT_FALSE(list.has(kSameShareLater, own()));
  EXPECT_FALSE(list.has(kShare, own()));
}

// Rather an error than a list without one who was named.
TEST(WhitelistTest, ProcessThatCannotBeLookedAtIsAnErrorAndNobodyIsAdded) {
  OtherProcess child([](const Line&) {
    const platform::ProcessIdentity self = own();
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlimit none{0, limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    Whitelist list;
    EXPECT_TRUE(fails_with(list.add(kShare, own_number()), ErrorCode::kOutOfResources));
    EXPECT_FALSE(list.has(kShare, self));
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_TRUE(is_ok(list.add(kShare, own_number())));
    EXPECT_TRUE(list.has(kShare, self));
  });
  EXPECT_TRUE(child.ended_well());
}

TEST(WhitelistTest, ThreadsMayChangeAndAskAtTheSameTime) {
  Whitelist list;
  run_on_threads(4, [&](int thread) {
    const ShareToken mine(static_cast<uint32_t>(thread), 7);
    for (int round = 0; round < 50; ++round) {
      EXPECT_TRUE(is_ok(list.add(mine, own_number())));
      EXPECT_TRUE(list.has(mine, own()));
      list.remove(mine);
      EXPECT_FALSE(list.has(mine, own()));
    }
  });
}

}  // namespace
}  // namespace understudy
