// SPDX-License-Identifier: Apache-2.0
#include "memory/granule_states.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <thread>

#include "unit/expect_result.h"
#include "unit/platform/planned_fault.h"
#include "unit/run_on_threads.h"
#include "unit/test_server.h"

namespace understudy {
namespace {

constexpr uint64_t kGranules = 8;

class GranuleStatesTest : public testing::Test {
 protected:
  // Those of this process, as another one sees them by a ledger of its own.
  GranuleStates attach(const Ledger& ledger) {
    return value_of(GranuleStates::attach(value_of(platform::MemoryFile::open_of_process(
                                              getppid(), own_.file().descriptor(), identity_,
                                              platform::FileKind::kShared, own_.file().size())),
                                          kGranules, &ledger));
  }
  // A process that attaches, does its part, says so, and goes on when told.
  template <typename Before, typename After>
  auto attached(Before before, After after) {
    return [this, before, after](const Line& line) {
      const std::unique_ptr<Ledger> ledger = server_.join();
      GranuleStates states = attach(*ledger);
      before(states);
      line.say();
      line.hear_word();
      after(states);
      line.say();
      line.hear();
    };
  }
  static void nothing(GranuleStates&) {}
  static void claim_first(GranuleStates& states) { EXPECT_TRUE(states.claim(0)); }
  static void settle_first(GranuleStates& states) { states.settle(0, GranuleState::kSmallPages); }

  TestServer server_;
  std::unique_ptr<Ledger> ledger_ = server_.join();
  GranuleStates own_ = value_of(GranuleStates::make("unit-test", kGranules, ledger_.get()));
  platform::FileIdentity identity_ = own_.file().identity();
};

TEST_F(GranuleStatesTest, BeginCold) {
  for (uint64_t granule = 0; granule < kGranules; ++granule) {
    EXPECT_EQ(own_.at(granule), GranuleState::kCold);
    EXPECT_FALSE(own_.is_own(granule));
    EXPECT_FALSE(own_.disown(granule));
    EXPECT_FALSE(own_.chill(granule));
  }
}

TEST_F(GranuleStatesTest, GranuleIsClaimedSettledAndChilled) {
  for (const GranuleState state :
       {GranuleState::kSmallPages, GranuleState::kCollapsed, GranuleState::kPool}) {
    ASSERT_TRUE(own_.claim(3));
    EXPECT_EQ(own_.at(3), GranuleState::kWarming);
    EXPECT_FALSE(own_.claim(3));
    EXPECT_EQ(own_.at(2), GranuleState::kCold);
    EXPECT_EQ(own_.at(4), GranuleState::kCold);
    own_.settle(3, state);
    EXPECT_EQ(own_.at(3), state);
    EXPECT_TRUE(own_.is_own(3));
    EXPECT_FALSE(own_.claim(3));
    own_.wait(3);  // does not
    EXPECT_TRUE(own_.chill(3));
    EXPECT_EQ(own_.at(3), GranuleState::kCold);
  }
}

TEST_F(GranuleStatesTest, ClaimThatCameToNothingLeavesItCold) {
  ASSERT_TRUE(own_.claim(0));
  own_.settle(0, GranuleState::kCold);
  EXPECT_EQ(own_.at(0), GranuleState::kCold);
  EXPECT_FALSE(own_.is_own(0));
  EXPECT_TRUE(own_.claim(0));
}

TEST_F(GranuleStatesTest, DisownedGranuleStaysWarmAndIsNobodys) {
  ASSERT_TRUE(own_.claim(0));
  EXPECT_FALSE(own_.disown(0));  // not warm yet
  settle_first(own_);
  EXPECT_TRUE(own_.disown(0));
  EXPECT_EQ(own_.at(0), GranuleState::kSmallPages);
  EXPECT_FALSE(own_.is_own(0));
  EXPECT_FALSE(own_.disown(0));
  EXPECT_FALSE(own_.claim(0));
  EXPECT_FALSE(own_.chill(0));
  EXPECT_EQ(own_.at(0), GranuleState::kCold);
}

TEST_F(GranuleStatesTest, OneOfManyThreadsGetsAGranule) {
  for (int round = 0; round < 50; ++round) {
    std::array<std::atomic<int>, kGranules> claims{};
    run_on_threads(4, [&](int) {
      for (uint64_t granule = 0; granule < kGranules; ++granule) {
        if (own_.claim(granule)) {
          ++claims[granule];
          own_.settle(granule, GranuleState::kSmallPages);
        }
        while (!is_warm(own_.at(granule))) own_.wait(granule);
      }
    });
    for (uint64_t granule = 0; granule < kGranules; ++granule) {
      EXPECT_EQ(claims[granule], 1);
      EXPECT_TRUE(own_.chill(granule));
    }
  }
}

TEST_F(GranuleStatesTest, OtherProcessSeesAndWarmsTheSameGranules) {
  ASSERT_TRUE(own_.claim(1));
  own_.settle(1, GranuleState::kCollapsed);
  OtherProcess other(attached(
      [](GranuleStates& states) {
        EXPECT_EQ(states.at(1), GranuleState::kCollapsed);
        EXPECT_FALSE(states.is_own(1));
        EXPECT_FALSE(states.disown(1));
        EXPECT_TRUE(states.claim(0));
      },
      settle_first));
  other.hear_word();
  EXPECT_EQ(own_.at(0), GranuleState::kWarming);
  EXPECT_FALSE(own_.claim(0));
  own_.wait(0);  // a little while
  EXPECT_FALSE(own_.claim(0));
  other.say();
  while (!is_warm(own_.at(0))) own_.wait(0);
  EXPECT_FALSE(own_.is_own(0));
  EXPECT_TRUE(own_.is_own(1));
  other.hear_word();
  EXPECT_FALSE(own_.chill(0));
}

TEST_F(GranuleStatesTest, GranuleThatAProcessDiedAtIsClaimedByTheNext) {
  OtherProcess other(attached(claim_first, nothing));
  other.hear_word();
  EXPECT_FALSE(own_.claim(0));
  other.kill();
  own_.wait(0);  // does not
  EXPECT_TRUE(own_.claim(0));
  settle_first(own_);
  EXPECT_TRUE(own_.is_own(0));
}

TEST_F(GranuleStatesTest, SleeperNoticesThatTheOtherProcessDied) {
  OtherProcess other(attached(claim_first, nothing));
  other.hear_word();
  std::thread sleeper([&] {
    while (!own_.claim(0)) own_.wait(0);
    settle_first(own_);
  });
  other.kill();
  sleeper.join();
  EXPECT_EQ(own_.at(0), GranuleState::kSmallPages);
}

TEST_F(GranuleStatesTest, NextProcessOfASlotDoesNotTakeTheClaimForItsOwn) {
  OtherProcess first(attached(claim_first, nothing));
  first.hear_word();
  first.kill();
  OtherProcess second(attached(
      [](GranuleStates& states) {
        EXPECT_FALSE(states.is_own(0));
        EXPECT_TRUE(states.claim(0));
      },
      settle_first));
  second.hear_word();
  EXPECT_FALSE(own_.claim(0));
  second.say();
  second.hear_word();
  EXPECT_EQ(own_.at(0), GranuleState::kSmallPages);
}

TEST_F(GranuleStatesTest, WarmGranuleOfADeadProcessStaysWarm) {
  OtherProcess other(attached(
      [](GranuleStates& states) {
        claim_first(states);
        settle_first(states);
      },
      nothing));
  other.hear_word();
  other.kill();
  EXPECT_EQ(own_.at(0), GranuleState::kSmallPages);
  EXPECT_FALSE(own_.claim(0));
  EXPECT_FALSE(own_.is_own(0));
  EXPECT_FALSE(own_.chill(0));
}

TEST_F(GranuleStatesTest, OneOfTwoProcessesGetsAGranule) {
  constexpr int kRounds = 2000;
  const auto count_claims = [](GranuleStates& states) {
    int claims = 0;
    for (int round = 0; round < kRounds; ++round) {
      const uint64_t granule = static_cast<uint64_t>(round) % kGranules;
      if (states.claim(granule)) {
        ++claims;
        states.settle(granule, GranuleState::kCold);
      } else {
        states.wait(granule);
      }
    }
    EXPECT_GT(claims, 0);
  };
  OtherProcess other(attached(nothing, count_claims));
  other.hear_word();
  other.say();
  count_claims(own_);
  other.hear_word();
  for (uint64_t granule = 0; granule < kGranules; ++granule) {
    EXPECT_EQ(own_.at(granule), GranuleState::kCold);
  }
}

TEST(GranuleStatesAlone, NeedNoLedger) {
  GranuleStates states = value_of(GranuleStates::make("unit-test", 1, nullptr));
  ASSERT_TRUE(states.claim(0));
  EXPECT_FALSE(states.claim(0));
  states.settle(0, GranuleState::kPool);
  EXPECT_TRUE(states.is_own(0));
  EXPECT_TRUE(states.disown(0));
}

TEST(GranuleStatesAlone, FaultsOfTheHostAreErrors) {
  for (const platform::SystemCall call :
       {platform::SystemCall::kCreateFile, platform::SystemCall::kResizeFile,
        platform::SystemCall::kMapFile}) {
    const platform::PlannedFault fault(call, 1, ENOMEM);
    EXPECT_TRUE(
        fails_with(GranuleStates::make("unit-test", 1, nullptr), ErrorCode::kOutOfResources));
    EXPECT_TRUE(fault.happened());
  }
}

}  // namespace
}  // namespace understudy
